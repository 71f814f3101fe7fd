// Downloads the key set of a realm (RFC 7517 section 5), and keeps the keys that can verify signatures. The download
// fails if the response is too large or malformed, or contains no such key. A key set is therefore never empty.
import * as jose from 'jose';
import { createByteCollector } from '../http/body-bytes.ts';
import { tracedProviderCall } from '../tracing/provider-call.ts';
import { fetchFromProvider } from './provider-fetch.ts';

/** The usable public keys of a realm, from one response. */
export interface KeySet {
  /**
   * Finds the key of a token. Throws JWKSNoMatchingKey of jose if no key has the `kid` and the algorithm of the token.
   */
  find: ReturnType<typeof jose.createLocalJWKSet>;
  /** Two responses with the same usable keys have the same fingerprint. */
  fingerprint: string;
}

/** Thrown if the response of the identity provider has no usable keys. */
class UnusableKeys extends Error {
  override name = 'UnusableKeys';
}

/** Maximum size of a response in bytes. A key has about 500 bytes, or 3,000 with its certificates. */
const largest = 262_144;

export interface DownloadOptions {
  /** Milliseconds within which the response must be complete. */
  timeout: number;
  /** Accepted algorithms. Keys for other algorithms are left out. */
  algorithms: readonly string[];
}

/** Downloads the key set from `url`. Rejects if the response is not a usable key set, or arrives too late. */
export async function downloadKeySet(url: string, { timeout, algorithms }: DownloadOptions): Promise<KeySet> {
  const headers = { Accept: 'application/jwk-set+json, application/json' };
  const response = await tracedProviderCall('GET', 'keys', () =>
    fetchFromProvider(url, { signal: AbortSignal.timeout(timeout), headers }),
  );
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new UnusableKeys(`the identity provider responded with ${response.status}`);
  }
  const published = keysOf(parsedKeys(await readText(response)));
  return createKeySet(published.filter((key) => isForSignatures(key, algorithms)));
}

async function createKeySet(published: PublishedKey[]): Promise<KeySet> {
  const usable = await Promise.all(published.map(usableKey));
  const keys = usable.flat();
  if (keys.length === 0) throw new UnusableKeys('the key set has no key that verifies signatures');
  const fingerprint = keys
    .map((key) => JSON.stringify(key))
    .sort()
    .join('\n');
  return { find: jose.createLocalJWKSet({ keys }), fingerprint };
}

type PublishedKey = jose.JWK & { kty: string };

/**
 * The algorithm for each `kty` or `crv` of a key. A key without `alg` is imported with this algorithm, to check that
 * the key is valid.
 */
const keyTypes: Record<string, string> = { RSA: 'RS256', EC: 'ES256', OKP: 'EdDSA' };
const curves: Record<string, string> = { 'P-384': 'ES384', 'P-521': 'ES512' };

/**
 * True for a key that verifies signatures with an accepted algorithm (RFC 7517 sections 4.2 and 4.4; jose checks
 * `key_ops`). A set may also contain keys that encrypt, or that use other algorithms.
 */
function isForSignatures(key: unknown, algorithms: readonly string[]): key is PublishedKey {
  if (typeof key !== 'object' || key === null) return false;
  const { kty, use = 'sig', alg } = key as Record<string, unknown>;
  const isAccepted = alg === undefined || algorithms.includes(String(alg));
  return typeof kty === 'string' && Object.hasOwn(keyTypes, kty) && use === 'sig' && isAccepted;
}

/**
 * Returns the key in a list, or an empty list if jose cannot import the key. One bad key does not make the other keys
 * of the set unusable.
 */
async function usableKey(key: PublishedKey): Promise<jose.JWK[]> {
  // A symmetric or private key must not be published. If the provider publishes one, it is ignored.
  if ('d' in key || 'k' in key) return [];
  try {
    await jose.importJWK(key, key.alg ?? curves[key.crv ?? ''] ?? keyTypes[key.kty]);
    return [key];
  } catch {
    return [];
  }
}

function keysOf(document: unknown): unknown[] {
  const keys = typeof document === 'object' && document !== null && 'keys' in document ? document.keys : undefined;
  if (!Array.isArray(keys)) throw new UnusableKeys('the response is not a key set');
  return keys;
}

function parsedKeys(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UnusableKeys('the response is not JSON', { cause: error });
  }
}

async function readText({ body }: Response): Promise<string> {
  const collected = createByteCollector();
  for await (const chunk of body ?? []) {
    // Throwing ends the loop, which closes the connection.
    if (collected.length + chunk.length > largest)
      throw new UnusableKeys(`the key set is larger than ${largest} bytes`);
    collected.add(chunk);
  }
  return collected.bytes().toString('utf8');
}
