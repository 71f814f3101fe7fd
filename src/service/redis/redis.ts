// Runs commands, scripts and tracked reads on Redis. A command fails within 2.5 s with Problem `unavailable`. Commands
// are neither queued while Redis is down nor retried. Values of tracked reads may be cached until they are invalidated.
import { ErrorReply } from '@redis/client';
import { Problem } from '../http/problem.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { within } from '../time-limit.ts';
import { type ClientKind, type ConnectionWatch, createRawClient, watchConnection } from './redis-connection.ts';
import type { RedisSettings } from './redis-fields.ts';
import type { RedisScript } from './redis-script.ts';
import type { RawClient } from './redis-server-client.ts';
import { Invalidations } from './redis-tracking.ts';

export interface RedisReads {
  get(key: string): Promise<string | null>;
  hGetAll(key: string): Promise<Record<string, string>>;
}

/** Commands with the signatures of node-redis, for libraries. Each throws Problem `unavailable` if Redis is down. */
export type RedisCommands = RedisReads & Pick<RawClient, 'set' | 'del' | 'eval'>;

export interface Redis {
  commands: RedisCommands;
  /** Runs a script, which returns numbers, strings, arrays and null (nil). */
  run(script: RedisScript, keys: string[], args: (string | number)[]): Promise<unknown>;
  /**
   * Reads whose values may be cached. While `isLive` is true, `onInvalid` reports changes of keys that were read this
   * way. While it is false (Redis before 6, an ACL without CLIENT TRACKING, a broken connection), no value may be
   * cached.
   */
  tracked: {
    readonly isLive: boolean;
    /** All changes before this time, by `performance.now()`, have been reported. */
    readonly toldUntil: number;
    reads: RedisReads;
    /**
     * Calls `listener` with each changed key, or with null if any key may have changed. Returns a function that
     * unsubscribes.
     */
    onInvalid(listener: (key: string | null) => void): () => void;
  };
  isReachable(): Promise<boolean>;
  close(): void;
}

export interface RedisOptions {
  settings: RedisSettings;
  log: Logger;
  metrics: Metrics;
}

/** Milliseconds that a command may take. */
const commandDeadline = 2_500;

/** Connects in the background. */
export function createRedis({ settings, log, metrics }: RedisOptions): Redis {
  const listeners = new Set<(key: string | null) => void>();
  const tell = (key: string | null) => {
    for (const listener of listeners) listener(key);
  };
  let tracking: { reads: RedisReads; watch: ConnectionWatch } | undefined;
  let isClosed = false;

  const open = (kind: ClientKind, name: string, onChange: (isUp: boolean) => void = () => undefined) => {
    kind.client.on('error', () => metrics.dependencyFailures.inc({ dependency: 'redis', kind: 'connection' }));
    return watchConnection(kind, (state, error) => {
      if (state === 'up') log.info({ connection: name }, 'Redis is reachable');
      else if (state === 'refused') log.error({ connection: name, err: error }, 'Redis refuses the credentials');
      else log.error({ connection: name, err: error }, 'Redis is unreachable');
      onChange(state === 'up');
    });
  };
  const main = createRawClient(settings);
  const watch = open(main, 'commands', (isUp) => {
    if (isUp && !tracking) startTracking().catch(() => undefined);
  });

  async function startTracking(): Promise<void> {
    if (!(await canTrack(main))) {
      log.warn('Redis allows no client tracking for this user; every request reads its session from Redis');
      return;
    }
    if (isClosed || tracking) return;
    const kind = createRawClient(settings, new Invalidations(tell));
    const trackedWatch = open(kind, 'tracked reads', () => tell(null));
    tracking = { reads: guard(kind.client, () => trackedWatch.isUp, metrics), watch: trackedWatch };
  }

  const isUp = () => watch.isUp;
  const commands = guard(main.client, isUp, metrics);
  return {
    commands,
    run: async ({ lua, sha1 }, keys, args) => {
      const options = { keys, arguments: args.map(String) };
      const call = () =>
        main.client.evalSha(sha1, options).catch((error: unknown) => {
          if (error instanceof ErrorReply && error.message.startsWith('NOSCRIPT'))
            return main.client.eval(lua, options);
          throw error;
        });
      return attempt(call, isUp, metrics);
    },
    tracked: {
      get isLive() {
        return tracking?.watch.isUp ?? false;
      },
      get toldUntil() {
        return tracking?.watch.lastResponse ?? Number.NEGATIVE_INFINITY;
      },
      get reads() {
        return tracking?.watch.isUp ? tracking.reads : commands;
      },
      onInvalid(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    isReachable: () => Promise.resolve(watch.isUp),
    close() {
      isClosed = true;
      watch.close();
      tracking?.watch.close();
    },
  };
}

/** True if the server supports both commands (Redis 6) and no ACL denies CLIENT TRACKING. */
async function canTrack({ send }: ClientKind): Promise<boolean> {
  try {
    await send(['HELLO']);
    await send(['CLIENT', 'TRACKING', 'OFF']);
    return true;
  } catch (error) {
    if (error instanceof ErrorReply) return false;
    throw error;
  }
}

function guard(client: RawClient, isUp: () => boolean, metrics: Metrics): RedisCommands {
  const within = <T>(work: () => Promise<T>) => attempt(work, isUp, metrics);
  return {
    get: (key) => within(() => client.get(key)),
    hGetAll: (key) => within(() => client.hGetAll(key)),
    set: (key, value, options) => within(() => client.set(key, value, options)),
    del: (keys) => within(() => client.del(keys)),
    eval: (script, options) => within(() => client.eval(script, options)),
  };
}

async function attempt<T>(work: () => Promise<T>, isUp: () => boolean, metrics: Metrics): Promise<T> {
  if (!isUp()) throw unavailable(new Error('Redis is unreachable'));
  try {
    return await within(work(), commandDeadline, new Error(`no response in ${commandDeadline} ms`));
  } catch (error) {
    // These errors are bugs in the caller's command, not an outage.
    if (error instanceof ErrorReply && /^(ERR|WRONGTYPE|CROSSSLOT) /.test(error.message)) throw error;
    metrics.dependencyFailures.inc({ dependency: 'redis', kind: 'command' });
    throw unavailable(error);
  }
}

function unavailable(cause: unknown): Problem {
  const headers = { 'Retry-After': '5' };
  return new Problem('unavailable', 'The session store cannot be reached at the moment.', { cause, headers });
}
