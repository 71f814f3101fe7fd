// Runs commands, scripts and tracked reads on Redis. A command fails within 2.5 s with Problem `unavailable`. Commands
// are neither queued while Redis is down nor retried. Values of tracked reads may be cached until they are invalidated.
import type { PeerCertificate } from 'node:tls';
import { ErrorReply } from '@redis/client';
import { Problem } from '../http/problem.ts';
import { createDependencyState, type DependencyStatus } from '../operations/dependency-state.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { within } from '../time-limit.ts';
import { redisSpan } from '../tracing/database-span.ts';
import { traced } from '../tracing/tracing.ts';
import { type ConnectionWatch, createRawClient, watchConnection } from './redis-connection.ts';
import { isDefect, isRefused } from './redis-errors.ts';
import type { RedisSettings } from './redis-fields.ts';
import { createRedisMetrics, type RedisMetrics } from './redis-metrics.ts';
import { NotRun, type RedisScript } from './redis-script.ts';
import type { ClientKind, RawClient } from './redis-server-client.ts';
import { Invalidations } from './redis-tracking.ts';
import { createRunningReads } from './running-reads.ts';

export interface RedisReads {
  get(key: string): Promise<string | null>;
  hGetAll(key: string): Promise<Record<string, string>>;
}

/**
 * Commands with the signatures of node-redis, for libraries. Each command throws Problem `unavailable` if Redis is
 * down.
 */
export type RedisCommands = RedisReads & Pick<RawClient, 'set' | 'del' | 'eval'>;

export interface Redis {
  commands: RedisCommands;
  /** Runs a script. Its result consists of numbers, strings, arrays and null (nil in Lua). See also `NotRun`. */
  run(script: RedisScript, keys: string[], args: (string | number)[]): Promise<unknown>;
  /**
   * Reads with change notifications, so that callers may cache the values. While `isLive` is true, `onInvalid` reports
   * changes of the keys that were read. While `isLive` is false, no value may be cached. `isLive` is false while the
   * connection is broken, if an ACL forbids CLIENT TRACKING, and for Redis before version 6.
   */
  tracked: {
    readonly isLive: boolean;
    /** All changes up to this time, by `performance.now()`, have been reported. */
    readonly toldUntil: number;
    reads: RedisReads;
    /**
     * Calls `listener` with each changed key, or with null if any key may have changed. Also calls it with null
     * whenever Redis becomes unreachable or reachable, even if `isLive` is never true. Returns a function that
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

type CommandRecorders = Pick<Metrics, 'dependencyFailures'> & RedisMetrics;

/** Milliseconds that a command may take. */
const commandDeadline = 2_500;

/** Creates the object immediately, and connects to Redis in the background. */
export function createRedis({ settings, log, metrics }: RedisOptions): Redis {
  const listeners = new Set<(key: string | null) => void>();
  const tell = (key: string | null) => {
    for (const listener of listeners) listener(key);
  };
  const state = createDependencyState({ dependency: 'redis', name: 'Redis', log, metrics });
  const recorders = { dependencyFailures: metrics.dependencyFailures, ...createRedisMetrics(metrics) };
  const onCertificate = (certificate: PeerCertificate) => metrics.certificates.recordServer('redis', certificate);
  const main = createRawClient(settings, onCertificate);
  const isUp = () => watch.isUp;
  const tracking = createTracking({ settings, onCertificate, main, log, recorders, isRedisUp: isUp, tell });
  // Only the main connection decides whether Redis is up. The connection of tracked reads would log each outage a
  // second time.
  const watch: ConnectionWatch = openConnection(main, recorders, (status, error) => {
    // Without client tracking, only this connection reports outages.
    tell(null);
    if (status !== 'up') state.down(status, { err: error });
    else {
      state.up();
      tracking.begin().catch(() => undefined);
    }
  });
  const commands = guard(main.client, isUp, recorders);
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
      return attempt(call, isUp, recorders);
    },
    tracked: {
      get isLive() {
        return tracking.reads() !== undefined;
      },
      get toldUntil() {
        return tracking.lastResponse();
      },
      get reads() {
        return tracking.reads() ?? commands;
      },
      onInvalid(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    isReachable: () => Promise.resolve(watch.isUp),
    close() {
      watch.close();
      tracking.close();
    },
  };
}

type Report = (status: DependencyStatus, error?: unknown) => void;

function openConnection(kind: ClientKind, { dependencyFailures }: CommandRecorders, onChange: Report): ConnectionWatch {
  kind.client.on('error', () => dependencyFailures.inc({ dependency: 'redis', kind: 'connection' }));
  return watchConnection(kind, onChange);
}

interface TrackingOptions extends Pick<RedisOptions, 'settings' | 'log'> {
  onCertificate(certificate: PeerCertificate): void;
  main: ClientKind;
  recorders: CommandRecorders;
  isRedisUp(): boolean;
  tell(key: string | null): void;
}

/** Manages the second connection, over which Redis reports changes of the keys that were read. */
function createTracking({ settings, onCertificate, main, log, recorders, isRedisUp, tell }: TrackingOptions) {
  let opened: { reads: RedisReads; watch: ConnectionWatch } | undefined;
  let isClosed = false;
  return {
    /** Opens the connection. Does nothing if it was opened before or if Redis does not allow tracking. */
    async begin(): Promise<void> {
      if (opened) return;
      if (!(await canTrack(main))) {
        log.warn('Redis allows no client tracking for this user; every request reads its session from Redis');
        return;
      }
      if (isClosed || opened) return;
      const kind = createRawClient(settings, onCertificate, new Invalidations(tell));
      const report = reportLostTracking(log, isRedisUp);
      const running = createRunningReads();
      const watch = openConnection(kind, recorders, (status, error) => {
        if (status !== 'up') running.fail(error);
        tell(null);
        report(status, error);
      });
      opened = { reads: guard(kind.client, () => watch.isUp, recorders, running.run), watch };
    },
    /** Returns the reads over the second connection; undefined while Redis does not report changes. */
    reads: () => (opened?.watch.isUp ? opened.reads : undefined),
    lastResponse: () => opened?.watch.lastResponse ?? Number.NEGATIVE_INFINITY,
    close() {
      isClosed = true;
      opened?.watch.close();
    },
  };
}

/**
 * If the connection of tracked reads is down for this many milliseconds while Redis is up, the loss is logged. After an
 * outage, this connection may come back later than the main connection.
 */
const trackingPause = 5_000;

/**
 * Logs once if Redis is up but the connection of tracked reads stays down. Every request then reads its session from
 * Redis.
 */
function reportLostTracking(log: Logger, isRedisUp: () => boolean): Report {
  let timer: NodeJS.Timeout | undefined;
  return (status, error) => {
    clearInterval(timer);
    if (status === 'up') return;
    timer = setInterval(() => {
      if (!isRedisUp()) return;
      clearInterval(timer);
      log.warn({ err: error }, 'Redis reports no changes of sessions; every request reads its session from Redis');
    }, trackingPause).unref();
  };
}

/** True if the server supports HELLO and CLIENT TRACKING (Redis 6), and no ACL denies CLIENT TRACKING. */
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

function guard(client: RawClient, isUp: () => boolean, recorders: CommandRecorders, run: Run = runNow): RedisCommands {
  const guarded = <T>(work: () => Promise<T>) => attempt(() => run(work), isUp, recorders);
  return {
    get: (key) => guarded(() => client.get(key)),
    hGetAll: (key) => guarded(() => client.hGetAll(key)),
    set: (key, value, options) => guarded(() => client.set(key, value, options)),
    del: (keys) => guarded(() => client.del(keys)),
    eval: (script, options) => guarded(() => client.eval(script, options)),
  };
}

type Run = <T>(work: () => Promise<T>) => Promise<T>;
const runNow: Run = (work) => work();

async function attempt<T>(work: () => Promise<T>, isUp: () => boolean, recorders: CommandRecorders): Promise<T> {
  if (!isUp()) throw unavailable(new NotRun('Redis is unreachable'));
  const began = performance.now();
  try {
    return await within(traced(redisSpan, work), commandDeadline, new Error(`no response in ${commandDeadline} ms`));
  } catch (error) {
    if (isDefect(error)) throw error;
    recorders.dependencyFailures.inc({ dependency: 'redis', kind: 'command' });
    throw unavailable(isRefused(error) ? new NotRun('Redis did not run the command', { cause: error }) : error);
  } finally {
    recorders.commandDuration.observe((performance.now() - began) / 1_000);
  }
}

function unavailable(cause: unknown): Problem {
  const headers = { 'Retry-After': '5' };
  return new Problem('unavailable', 'The session store cannot be reached at the moment.', { cause, headers });
}
