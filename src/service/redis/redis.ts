// Redis as the services use it: commands that fail within 2.5 s as a Problem `unavailable`, scripts, and tracked reads
// whose values may be kept until told otherwise. It queues nothing while Redis is away, and never retries a command.
import { hash } from 'node:crypto';
import { ErrorReply } from '@redis/client';
import { Problem } from '../http/problem.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { type ClientKind, type ConnectionWatch, createRawClient, watchConnection } from './redis-connection.ts';
import type { RedisSettings } from './redis-fields.ts';
import type { RawClient } from './redis-server-client.ts';
import { Invalidations } from './redis-tracking.ts';

export interface RedisScript {
  /** Lua. All its keys in one slot of a Cluster. */
  lua: string;
  sha1: string;
}

export function defineScript(lua: string): RedisScript {
  return { lua, sha1: hash('sha1', lua) };
}

export interface RedisReads {
  get(key: string): Promise<string | null>;
  hGetAll(key: string): Promise<Record<string, string>>;
}

/** Commands as node-redis writes them, for libraries; each fails with Problem `unavailable` when Redis cannot be had. */
export type RedisCommands = RedisReads & Pick<RawClient, 'set' | 'del' | 'eval'>;

export interface Redis {
  commands: RedisCommands;
  /** Runs a script; its numbers come as numbers, its texts as texts, nil as null. */
  run(script: RedisScript, keys: string[], args: (string | number)[]): Promise<unknown>;
  /**
   * For reads of which something is kept. While `isLive`, changes of the keys that were read this way are told to
   * `onInvalid`; without it (Redis before 6, an ACL without CLIENT TRACKING, a broken connection) nothing may be kept.
   */
  tracked: {
    readonly isLive: boolean;
    /** All changes until then have been told, by `performance.now()`. */
    readonly toldUntil: number;
    reads: RedisReads;
    /** With null, any key may have changed. The function that it answers stops listening. */
    onInvalid(listener: (key: string | null) => void): () => void;
  };
  /** Whether Redis answers now. */
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
    return watchConnection(kind, (isUp, error) => {
      if (isUp) log.info({ connection: name }, 'Redis answers');
      else log.error({ connection: name, err: error }, 'Redis does not answer');
      onChange(isUp);
    });
  };
  const main = createRawClient(settings);
  const watch = open(main, 'commands', (isUp) => {
    if (isUp && !tracking) startTracking().catch(() => undefined);
  });

  async function startTracking(): Promise<void> {
    if (!(await canTrack(main))) {
      log.warn('Redis has no client tracking for this user: sessions are read from Redis at every request');
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
        return tracking?.watch.lastAnswer ?? Number.NEGATIVE_INFINITY;
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

/** Redis 6 knows both commands; an ACL may deny the second. */
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
  if (!isUp()) throw unavailable(new Error('Redis does not answer'));
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer in ${commandDeadline} ms`)), commandDeadline);
  try {
    return await Promise.race([work(), late]);
  } catch (error) {
    // Our own mistake, not an outage.
    if (error instanceof ErrorReply && /^(ERR|WRONGTYPE|CROSSSLOT) /.test(error.message)) throw error;
    metrics.dependencyFailures.inc({ dependency: 'redis', kind: 'command' });
    throw unavailable(error);
  } finally {
    clearTimeout(timer);
  }
}

function unavailable(cause: unknown): Problem {
  const headers = { 'Retry-After': '5' };
  return new Problem('unavailable', 'The session store cannot be reached at the moment.', { cause, headers });
}
