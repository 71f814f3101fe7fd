// Fetches and caches the public keys of realms, and tells invalid tokens from failures of the identity provider.
import * as jose from 'jose';
import { LRUCache } from 'lru-cache';

export interface SigningKeys {
  /** The keys of a realm: fetched when first used, every 10 hours, and for an unknown `kid` at most every 30 s. */
  ofRealm(realm: string): jose.JWTVerifyGetKey;
}

/** `accessUrl`: where keys are fetched, such as `http://keycloak:8080/auth`. */
export function createSigningKeys(accessUrl: string): SigningKeys {
  const fetchKeys = (realm: string) =>
    jose.createRemoteJWKSet(new URL(`${accessUrl}/realms/${encodeURIComponent(realm)}/protocol/openid-connect/certs`), {
      cooldownDuration: 30_000,
      cacheMaxAge: 36_000_000,
      timeoutDuration: 10_000,
    });
  const keySets = new LRUCache<string, jose.JWTVerifyGetKey>({ max: 5_000, memoMethod: fetchKeys });
  return { ofRealm: (realm) => keySets.memo(realm) };
}

/** Whether the token itself is at fault; any other failure is that of the identity provider or the network. */
export function isTokenFault(error: unknown): boolean {
  const { JOSEError, JWKSTimeout, JWKSInvalid } = jose.errors;
  if (!(error instanceof JOSEError) || error instanceof JWKSTimeout || error instanceof JWKSInvalid) return false;
  // The base class has this code: the response with the keys was not 200 and JSON.
  return error.code !== 'ERR_JOSE_GENERIC';
}
