// Verifies callers' tokens and ID tokens with the public keys of the realms that issued them. Finds a newly published
// key within 2 s, even while many tokens name keys that their realm has not published. For each realm, such tokens
// cause at most one download per second. Two more limits hold for all realms together: on the number of these
// downloads, and on the number of tokens that wait for them.
import { hash } from 'node:crypto';
import * as jose from 'jose';
import { LRUCache } from 'lru-cache';
import { Problem } from '../http/problem.ts';
import { startBudget } from '../limits/paced-call.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { downloadKeySet, type KeySet } from './key-set.ts';
import { createRealmKeys, type KeyPace, type KeyQuery, type RealmKeys, type TokenSender } from './realm-keys.ts';

/** Algorithms that a token of a caller may be signed with; all of them are asymmetric (RFC 8725 section 3.1). */
export const signatureAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/**
 * Algorithms that an ID token or a logout token may be signed with. HMAC is excluded, because a forger would need only
 * the client's secret.
 */
export const idTokenAlgorithms = ['RS', 'PS', 'ES'].flatMap((family) =>
  ['256', '384', '512'].map((size) => family + size),
);
idTokenAlgorithms.push('EdDSA', 'Ed25519');

export interface SigningKeysPace extends KeyPace {
  /** Timeout of a download in milliseconds. */
  timeout: number;
  /** Maximum number of downloads per second for all realms together. */
  perSecond: number;
}

const seconds = 1_000;
const minutes = 60_000;

const usualPace: SigningKeysPace = {
  spacing: 1 * seconds,
  missed: 1.5 * seconds,
  fresh: 5 * minutes,
  removed: 10 * minutes,
  oldest: 600 * minutes,
  retry: 10 * seconds,
  patience: 6 * seconds,
  timeout: 5 * seconds,
  perSecond: 100,
};

/** Maximum number of tokens of one sender that may wait for a download, for one realm and in total. */
const mostWaiting = { realm: 250, total: 1_000 };
/** Maximum number of realms, and of missing keys, that are remembered. */
const mostRealms = 5_000;
const mostMisses = 10_000;

export interface SigningKeysOptions {
  /** Returns the URL of a realm's key set at the address that this process calls. */
  urlOf(realm: string): string | Promise<string>;
  log: Logger;
  metrics: Pick<Metrics, 'dependencyFailures' | 'dependencyCalled'>;
  /** Replaces some of the usual times in tests. */
  pace?: Partial<SigningKeysPace> | undefined;
  /** Returns the time of a monotonic clock in milliseconds. */
  now?: (() => number) | undefined;
}

export interface VerifiedJwt extends jose.JWTVerifyResult {
  /**
   * False if the realm may have removed the signing key since the verification. The token must then be verified again.
   */
  isCurrent(): boolean;
}

export interface SigningKeys {
  /**
   * Verifies the signature of a realm's token, and the claims that `options` names. Throws an error for which
   * `isTokenFault` is true if the token is invalid, and KeysUnavailable if the keys of the realm cannot be downloaded.
   */
  verify(realm: string, token: string, options: Omit<jose.JWTVerifyOptions, 'algorithms'>): Promise<VerifiedJwt>;
  /**
   * Returns the function with which jose finds the key of a realm's token. That function throws the same errors as
   * `verify`.
   */
  ofRealm(realm: string, sender?: TokenSender): jose.JWTVerifyGetKey;
}

/**
 * Creates the verifier of signatures. Create only one per process, so that all code of the process shares the downloads
 * and their limits.
 */
export function createSigningKeys(options: SigningKeysOptions): SigningKeys {
  const { now = () => performance.now() } = options;
  const pace = { ...usualPace, ...options.pace };
  const reserve = startBudget(pace.perSecond, now);
  const misses = new LRUCache<string, number>({ max: mostMisses });
  const waiting = { caller: 0, provider: 0 };

  function openRealm(realm: string): RealmKeys {
    const waitingHere = { caller: 0, provider: 0 };
    return createRealmKeys({
      ...{ reserve, pace, now },
      download: () => downloadFor(realm, pace.timeout, options),
      misses: {
        get: (query) => misses.get(missOf(realm, query)),
        set: (query, at) => void misses.set(missOf(realm, query), at),
      },
      enter(sender) {
        if (waitingHere[sender] >= mostWaiting.realm || waiting[sender] >= mostWaiting.total) return false;
        waitingHere[sender] += 1;
        waiting[sender] += 1;
        return true;
      },
      leave(sender) {
        waitingHere[sender] -= 1;
        waiting[sender] -= 1;
      },
    });
  }
  const realms = new LRUCache<string, RealmKeys>({ max: mostRealms, memoMethod: openRealm });

  return {
    ofRealm:
      (realm, sender = 'caller') =>
      async (...query) =>
        (await realms.memo(realm).find(sender, ...query)).key,
    async verify(realm, token, claims) {
      const realmKeys = realms.memo(realm);
      let used: KeySet | undefined;
      const findKey = async (...query: KeyQuery) => {
        const { key, keys } = await realmKeys.find('caller', ...query);
        used = keys;
        return key;
      };
      const verified = await jose.jwtVerify(token, findKey, { ...claims, algorithms: signatureAlgorithms });
      return { ...verified, isCurrent: () => used !== undefined && realmKeys.areCurrent(used) };
    },
  };
}

/** True if the error means that the token is invalid; false if the identity provider or the network failed. */
export function isTokenFault(error: unknown): error is jose.errors.JOSEError {
  return error instanceof jose.errors.JOSEError;
}

/** Returns the Problem for an error of a verification that is no fault of the token. */
export function keysProblem(cause: unknown): Problem {
  const headers = { 'Retry-After': '5' };
  return new Problem('unavailable', 'The identity provider cannot be reached at the moment.', { cause, headers });
}

const dependency = 'identity-provider';

async function downloadFor(realm: string, timeout: number, options: SigningKeysOptions): Promise<KeySet> {
  const began = performance.now();
  const called = (outcome: string) =>
    options.metrics.dependencyCalled(dependency, outcome, (performance.now() - began) / 1_000);
  try {
    const keys = await downloadKeySet(await options.urlOf(realm), { timeout, algorithms: idTokenAlgorithms });
    called('ok');
    return keys;
  } catch (error) {
    called('failed');
    options.metrics.dependencyFailures.inc({ dependency, kind: 'keys' });
    options.log.warn({ err: error, realm }, 'keys of a realm could not be fetched');
    throw error;
  }
}

/**
 * Returns the cache key for a missing signing key. The cache key is a digest, because a token may contain a key id of
 * any length.
 */
function missOf(realm: string, [header]: KeyQuery): string {
  return hash('sha256', JSON.stringify([realm, header?.alg, header?.kid]), 'base64');
}
