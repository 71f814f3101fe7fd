// Defines the interface of the session store. One implementation uses Redis, the other the memory of the process. The
// store cannot decrypt the texts that it holds. A session exists only while its tokens exist. No change creates the
// tokens again, so an ended session stays ended.
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createRedis, type Redis } from '../../service/redis/redis.ts';
import { redisSettings } from '../../service/redis/redis-fields.ts';
import type { TokenHandlerConfig } from '../config.ts';
import type { SessionState } from './session.ts';

export interface SealedTokens {
  sealed: string;
  /** See SessionState. Milliseconds since 1970, like every time in this file. */
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

export interface TokenStore {
  /** Stores the tokens of a session whose record is stored already, which makes the session live. */
  start(handle: string, tokens: SealedTokens, now: number): Promise<void>;
  load(handle: string): Promise<StoredSession | undefined>;
  /** True if a result of `load` may be cached until `onChange` reports a change. */
  readonly isTracked: boolean;
  /** While `isTracked`, all changes until this time (as `performance.now()`) have been reported. */
  readonly trackedUntil: number;
  /** The listener gets null if any session may have changed. */
  onChange(listener: (handle: string | null) => void): void;
  /** Records a request, unless one was recorded less than `interval` ago. Returns false if the session has ended. */
  touch(handle: string, now: number, interval: number): Promise<boolean>;
  /**
   * Writes the intent to refresh this version of the token set. Repeating a successful claim succeeds again.
   * - `held`: another attempt has written its intent
   * - `changed`: the token set has another version
   * - `gone`: the session has ended
   */
  claim(handle: string, version: number, intentId: string): Promise<'claimed' | 'held' | 'changed' | 'gone'>;
  /**
   * Writes a heartbeat, which shows that the attempt is running. The store keeps it for 5 s. `claim` also writes a
   * heartbeat. Does nothing if the session does not have this intent.
   */
  showLife(handle: string, intentId: string): Promise<void>;
  /**
   * Ends the session and returns true if its refresh attempt has written no heartbeat for 5 s, by the store's clock.
   * Returns false if the attempt is running or has concluded. Also returns false soon after the store was unreachable,
   * because the attempt could not write heartbeats during that time.
   */
  abandon(handle: string, intentId: string): Promise<boolean>;
  /**
   * Removes the intent and, if `tokens` is given, replaces the token set. Omit `tokens` only if the refresh token was
   * certainly not used. Changes nothing and returns false if the session does not have this intent.
   */
  conclude(handle: string, intentId: string, now: number, tokens?: SealedTokens): Promise<boolean>;
  /** Removes record and tokens. Returns false if the session had ended already. */
  end(handle: string): Promise<boolean>;
  /** Returns the number of sessions. It may lag behind changes by a moment. */
  count(now: number): Promise<number>;
}

/** Lists the sessions of a person, of a tenant, or of a session at the identity provider. */
export interface SessionIndex {
  /** Adds an entry, which may be dropped after `until`. */
  enter(indexes: string[], handle: string, until: number, now: number): Promise<void>;
  /** Returns at most `top` handles, latest first. `after` is the last handle of the previous page. */
  entries(index: string, top: number, after?: string): Promise<string[]>;
  /** Removes an entry. If `until` is given, keeps an entry that expires later. */
  remove(indexes: string[], handle: string, until?: number): Promise<void>;
}

/** Named numbers that are kept for a limited time. */
export interface Marks {
  /** Stores the value if no greater value is stored. */
  raise(name: string, value: number, milliseconds: number): Promise<void>;
  value(name: string): Promise<number | undefined>;
  /** Stores a value if there is none. Returns true if this call stored the value. */
  claim(name: string, milliseconds: number): Promise<boolean>;
}

export interface SessionStore {
  records: RecordClient;
  tokens: TokenStore;
  index: SessionIndex;
  marks: Marks;
}

/** Returns undefined if sessions are kept in memory. */
export function connectRedis(config: TokenHandlerConfig, log: Logger, metrics: Metrics): Redis | undefined {
  const settings = redisSettings(config);
  if (settings) return createRedis({ settings, log, metrics });
  log.warn('sessions are kept in memory: they end with this process, and other replicas do not know them');
  return undefined;
}

/** Returns undefined if Redis is reachable, or if sessions are kept in memory. */
export async function redisProblem(redis: Redis | undefined): Promise<string | undefined> {
  return (await redis?.isReachable()) === false ? 'Redis does not respond' : undefined;
}
