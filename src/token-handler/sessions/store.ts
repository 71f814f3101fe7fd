// The store of sessions: one contract for Redis and for memory. It holds encrypted texts and opens none. A session exists
// only while its tokens do. Every change requires that they still exist, so nothing brings an ended session back.
import { ConfigError } from '../../service/operations/config.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createRedis, type Redis } from '../../service/redis/redis.ts';
import { redisSettings } from '../../service/redis/redis-fields.ts';
import type { TokenHandlerConfig } from '../config.ts';
import type { SessionState } from './session.ts';

export interface SealedTokens {
  sealed: string;
  /** See SessionState. Milliseconds since 1970, like every time here. */
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
  /** Makes the session whose record is stored a live one. */
  start(handle: string, tokens: SealedTokens, now: number): Promise<void>;
  load(handle: string): Promise<StoredSession | undefined>;
  /** Whether a result of `load` may be cached until `onChange` reports a change. */
  readonly isTracked: boolean;
  /** While `isTracked`: all changes until this time of `performance.now()` have been reported. */
  readonly trackedUntil: number;
  /** The listener gets null if any session may have changed. */
  onChange(listener: (handle: string | null) => void): void;
  /** Records a request, unless one was recorded less than `interval` ago. False if the session has ended. */
  touch(handle: string, now: number, interval: number): Promise<boolean>;
  /**
   * Writes the intent to refresh this version of the set. `held`: another attempt has done so; `changed`: the set has
   * another version; `gone`: the session has ended. Repeating a successful claim succeeds again.
   */
  claim(handle: string, version: number, intentId: string): Promise<'claimed' | 'held' | 'changed' | 'gone'>;
  /** Milliseconds since the intent was written, by the store's clock; 0 without an intent. */
  intentAge(handle: string): Promise<number>;
  /**
   * Removes the intent, and replaces the set; without a new set, the refresh token was certainly not used. False if the
   * session does not have this intent; then nothing changes.
   */
  conclude(handle: string, intentId: string, now: number, tokens?: SealedTokens): Promise<boolean>;
  /** Removes record and tokens. False if the session had ended already. */
  end(handle: string): Promise<boolean>;
}

/** The sessions of a person, of a tenant, and of a session at the identity provider. No index is ever scanned. */
export interface SessionIndex {
  /** `until`: when the entry may be dropped. */
  enter(indexes: string[], handle: string, until: number, now: number): Promise<void>;
  /** At most `top` handles, latest first; `after`: the last handle of the page before. */
  entries(index: string, top: number, after?: string): Promise<string[]>;
  /** `until`: entries that are kept for longer stay. */
  remove(indexes: string[], handle: string, until?: number): Promise<void>;
}

/** Numbers that are kept for a time. */
export interface Marks {
  /** Keeps the greatest value. */
  raise(name: string, value: number, milliseconds: number): Promise<void>;
  value(name: string): Promise<number | undefined>;
}

export interface SessionStore {
  records: RecordClient;
  tokens: TokenStore;
  index: SessionIndex;
  marks: Marks;
}

/** Undefined if sessions are kept in memory. Throws ConfigError if the configuration does not decide. */
export function connectRedis(config: TokenHandlerConfig, log: Logger, metrics: Metrics): Redis | undefined {
  const settings = redisSettings(config);
  if (settings && config.SESSION_STORE === 'memory')
    throw new ConfigError([{ name: 'SESSION_STORE', problem: 'is memory, but a Redis is configured' }]);
  if (settings) return createRedis({ settings, log, metrics });
  if (config.SESSION_STORE === 'redis')
    throw new ConfigError([{ name: 'REDIS_URL', problem: 'is required, unless SESSION_STORE is memory' }]);
  log.warn('sessions are kept in memory: they end with this process, and other replicas do not know them');
  return undefined;
}

/** Undefined if Redis is reachable, or sessions are kept in memory. */
export async function redisProblem(redis: Redis | undefined): Promise<string | undefined> {
  return (await redis?.isReachable()) === false ? 'Redis does not respond' : undefined;
}
