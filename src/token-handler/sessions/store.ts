// Defines the interface of the session store, which has two implementations: Redis, and the memory of the process. The
// store cannot decrypt the strings that it holds. A session exists only while its tokens exist. No change recreates the
// tokens, so an ended session stays ended.
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createRedis, type Redis } from '../../service/redis/redis.ts';
import { redisSettings } from '../../service/redis/redis-fields.ts';
import type { TokenHandlerConfig } from '../config.ts';
import type { SessionState } from './session.ts';

export interface SealedTokens {
  sealed: string;
  /** The `limit` of SessionState, in milliseconds since 1970, like every time in this file. */
  limit: number;
}

export interface StoredSession {
  /** The encrypted record of express-session. */
  record: string;
  tokens: SealedTokens & SessionState;
}

/** The commands that connect-redis sends. */
export interface RecordClient {
  get(key: string): Promise<string | null>;
  /** The expiration is in seconds. */
  set(key: string, text: string, options: { expiration: { type: 'EX'; value: number } }): Promise<unknown>;
  del(keys: string[]): Promise<unknown>;
}

/**
 * - `claimed`: the intent to refresh the tokens is written
 * - `held`: another attempt has already written its intent
 * - `changed`: the token set has another version
 * - `gone`: the session has ended
 */
export type ClaimResult = 'claimed' | 'held' | 'changed' | 'gone';

export interface TokenStore {
  /** Stores the tokens of a session whose record is already stored. This makes the session live. */
  start(handle: string, tokens: SealedTokens, now: number): Promise<void>;
  load(handle: string): Promise<StoredSession | undefined>;
  /** True if the result of `load` may be cached until `onChange` reports a change. */
  readonly isTracked: boolean;
  /** While `isTracked` is true, the store has reported all changes up to this time, a value of `performance.now()`. */
  readonly trackedUntil: number;
  /** Calls the listener with the handle of each changed session, or with null if any session may have changed. */
  onChange(listener: (handle: string | null) => void): void;
  /**
   * Records a request of the session. Does nothing if a request was recorded less than `interval` ago. Returns false if
   * the session has ended.
   */
  touch(handle: string, now: number, interval: number): Promise<boolean>;
  /**
   * Writes the intent to refresh this version of the token set, and returns `claimed`. A repeated claim with the same
   * `intentId` also returns `claimed`.
   */
  claim(handle: string, version: number, intentId: string): Promise<ClaimResult>;
  /**
   * Writes a heartbeat, which shows that the refresh attempt is running. The store keeps a heartbeat for 5 s. `claim`
   * writes the first heartbeat. Does nothing if the session does not have this intent.
   */
  heartbeat(handle: string, intentId: string): Promise<void>;
  /**
   * Ends the session and returns true if its refresh attempt has written no heartbeat for 5 s, by the store's clock.
   * Returns false if the attempt is running or has ended. Also returns false shortly after the store was unreachable,
   * because the attempt could not write heartbeats in the meantime.
   */
  abandon(handle: string, intentId: string): Promise<boolean>;
  /**
   * Removes the intent and, if `tokens` is given, replaces the token set. Omit `tokens` only if the refresh token was
   * certainly not used. Returns false and changes nothing if the session does not have this intent.
   */
  conclude(handle: string, intentId: string, now: number, tokens?: SealedTokens): Promise<boolean>;
  /** Removes the record and the tokens. Returns false if the session had already ended. */
  end(handle: string): Promise<boolean>;
  /** Returns the number of live sessions. The number may be slightly out of date. */
  count(now: number): Promise<number>;
}

/** Lists the sessions of a person, of a tenant, or of a session at the identity provider. */
export interface SessionIndex {
  /**
   * Adds the session to indexes. The entries may be dropped after `until`. Returns the number of entries of each index,
   * including entries of sessions that have ended.
   */
  enter(indexes: string[], handle: string, until: number, now: number): Promise<Map<string, number>>;
  /**
   * Returns at most `top` handles, latest first. `after` is the last handle of the previous page. The entry of `after`
   * may have been removed. Returns undefined if that entry was removed more than an hour ago, or never existed.
   */
  entries(index: string, top: number, after?: string): Promise<string[] | undefined>;
  /** Returns at most `count` handles of the index, the earliest first. */
  oldest(index: string, count: number): Promise<string[]>;
  /** Removes the session from indexes. If `until` is given, keeps entries that expire later. */
  remove(indexes: string[], handle: string, until?: number): Promise<void>;
}

/** Named numbers that are stored for a limited time. */
export interface Marks {
  /** Returns the store's time in milliseconds since 1970. It is the same for all replicas, whose clocks may differ. */
  time(): Promise<number>;
  /** Stores the value for `milliseconds`. Does nothing if an equal or greater value is already stored. */
  raise(name: string, value: number, milliseconds: number): Promise<void>;
  value(name: string): Promise<number | undefined>;
  /** Creates the mark with this value if it does not exist. Returns true if this call has created it. */
  claim(name: string, value: number, milliseconds: number): Promise<boolean>;
  /** Removes the mark if it has this value. */
  remove(name: string, value: number): Promise<void>;
}

export interface SessionStore {
  records: RecordClient;
  tokens: TokenStore;
  index: SessionIndex;
  marks: Marks;
}

/** Creates the Redis client, or returns undefined if sessions are kept in memory. */
export function connectRedis(config: TokenHandlerConfig, log: Logger, metrics: Metrics): Redis | undefined {
  const settings = redisSettings(config);
  if (settings) return createRedis({ settings, log, metrics });
  log.warn('sessions are kept in memory: they end with this process, and other replicas do not know them');
  return undefined;
}

/** Says why Redis is unusable. Returns undefined if Redis is reachable, or if sessions are kept in memory. */
export async function redisProblem(redis: Redis | undefined): Promise<string | undefined> {
  return (await redis?.isReachable()) === false ? 'Redis does not respond' : undefined;
}
