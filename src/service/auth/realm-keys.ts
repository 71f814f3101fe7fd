// Keeps the public keys of one realm. Downloads the keys, refreshes them while they are used, and downloads them again
// if a token names a missing key. A failed download never removes keys.
import * as jose from 'jose';
import { pacedCall } from '../limits/paced-call.ts';
import { within } from '../time-limit.ts';
import type { KeySet } from './key-set.ts';

/** Times in milliseconds. */
export interface KeyPace {
  /** Minimum time between the starts of two downloads of one realm. */
  spacing: number;
  /**
   * Time after the start of a download that did not contain a token's key. During this time, tokens that name this key
   * cause no further download.
   */
  missed: number;
  /** Age at which keys are downloaded again in the background. */
  fresh: number;
  /**
   * Age at which verification waits for a new download, so that tokens are refused if the identity provider has removed
   * the key that signed them.
   */
  removed: number;
  /** Age up to which keys are used while they cannot be downloaded. */
  oldest: number;
  /** Minimum time between two background downloads after one has failed. */
  retry: number;
  /** Longest time that a token waits for a download. */
  patience: number;
}

/** Thrown if the keys of a realm cannot be downloaded. Whether the token is valid is then unknown. */
export class KeysUnavailable extends Error {
  override name = 'KeysUnavailable';
}

/**
 * Who sent a token: a caller of this service, or the identity provider, from its token endpoint. Each sender has its
 * own limit of waiting tokens. Callers whose tokens name invented keys therefore cannot make a sign-in fail.
 */
export type TokenSender = 'caller' | 'provider';

export interface RealmKeys {
  /**
   * Returns the key of a token, and the key set that contains the key. Downloads the keys first if they are old or lack
   * the key. Throws JWKSNoMatchingKey of jose if the realm does not publish the key, and KeysUnavailable if the keys
   * cannot be downloaded in time.
   */
  find(sender: TokenSender, ...query: KeyQuery): Promise<FoundKey>;
  /**
   * False if the realm may have published different keys since `keys` were downloaded. A token that was verified with
   * `keys` must then be verified again.
   */
  areCurrent(keys: KeySet): boolean;
}

export interface FoundKey {
  key: jose.CryptoKey;
  keys: KeySet;
}

/** The header of a token, and the token. */
export type KeyQuery = Parameters<KeySet['find']>;

export interface RealmKeysOptions {
  download(): Promise<KeySet>;
  /** Reserves one download in the budget of all realms. Returns the milliseconds until the download may start. */
  reserve(): number;
  /** Counts a token that waits for a download. Returns false if too many wait already. */
  enter(sender: TokenSender): boolean;
  leave(sender: TokenSender): void;
  /** For each missing key that a token has named: the start time of the last download without this key. */
  misses: { get(query: KeyQuery): number | undefined; set(query: KeyQuery, at: number): void };
  pace: KeyPace;
  /** Returns the time of a monotonic clock in milliseconds. */
  now(): number;
}

export function createRealmKeys(options: RealmKeysOptions): RealmKeys {
  const { enter, leave, misses, pace, now } = options;
  const kept = keepKeys(options);
  const { downloads } = kept;

  /**
   * Looks for the key again after the running download. If the key is still missing, waits for one more download,
   * because the first one may have begun before the key was published.
   */
  async function findAfterDownload(query: KeyQuery): Promise<FoundKey> {
    for (const ended of [() => downloads.running, () => downloads.next()]) {
      const failure = await ended()?.then(noFailure, (error: unknown) => ({ error }));
      const found = await lookFor(query, kept.usable());
      if (found) return found;
      if (failure) throw failure.error;
    }
    misses.set(query, kept.downloadedAt());
    throw new jose.errors.JWKSNoMatchingKey();
  }

  return {
    areCurrent: (keys) => kept.usable() === keys,
    async find(sender, ...query) {
      const usable = kept.usable();
      const found = await lookFor(query, usable);
      if (found) return found;
      const missedAt = usable ? misses.get(query) : undefined;
      if (missedAt !== undefined && now() - missedAt < pace.missed) throw new jose.errors.JWKSNoMatchingKey();
      if (!enter(sender)) {
        // The download still happens: if it finds the key, the next token with this key is accepted.
        downloads.request();
        throw usable ? new jose.errors.JWKSNoMatchingKey() : new KeysUnavailable('too many tokens wait for keys');
      }
      const late = new KeysUnavailable('the download of the keys takes too long');
      // Calls `leave` when the search ends, not when the caller stops waiting. Otherwise the count of waiting tokens
      // would be too low.
      return within(
        findAfterDownload(query).finally(() => leave(sender)),
        pace.patience,
        late,
      );
    },
  };
}

type KeptOptions = Pick<RealmKeysOptions, 'download' | 'reserve' | 'pace' | 'now'>;

/** Keeps the keys of the last successful download, and decides how long they may be used. */
function keepKeys({ download, reserve, pace, now }: KeptOptions) {
  let known: KeySet | undefined;
  /** Time at which the last successful download began. */
  let downloadedAt = Number.NEGATIVE_INFINITY;
  /** Time at which the last download began, successful or not. */
  let triedAt = Number.NEGATIVE_INFINITY;
  let hasFailed = false;

  async function replace(): Promise<void> {
    const began = now();
    triedAt = began;
    try {
      const found = await download();
      downloadedAt = began;
      hasFailed = false;
      // Keeps the old object if the keys are the same: tokens that were verified with that object then stay verified.
      if (found.fingerprint !== known?.fingerprint) known = found;
    } catch (error) {
      hasFailed = true;
      throw new KeysUnavailable('the keys of the realm cannot be downloaded', { cause: error });
    }
  }
  const downloads = pacedCall(replace, () => Math.max(triedAt + pace.spacing - now(), reserve()));

  return {
    downloads,
    downloadedAt: () => downloadedAt,
    /**
     * Returns the keys that may be used now, and requests a download if they are no longer fresh. Returns undefined if
     * the keys are so old that the realm may have removed some. While downloads fail, older keys may be used too.
     */
    usable(): KeySet | undefined {
      const age = now() - downloadedAt;
      if (age < pace.fresh) return known;
      if (known && now() - triedAt >= (hasFailed ? pace.retry : pace.spacing)) downloads.request();
      return age < pace.removed || (hasFailed && age < pace.oldest) ? known : undefined;
    },
  };
}

async function lookFor(query: KeyQuery, keys: KeySet | undefined): Promise<FoundKey | undefined> {
  try {
    return keys && { key: await keys.find(...query), keys };
  } catch (error) {
    if (error instanceof jose.errors.JWKSNoMatchingKey) return undefined;
    throw error;
  }
}

const noFailure = () => undefined;
