// Fetches and caches the public keys of realms, and distinguishes invalid tokens from failures of the identity
// provider.
import * as jose from 'jose';
import { LRUCache } from 'lru-cache';
import { createKeysUrl, type TenantIssuers } from './tenant-issuers.ts';

export interface SigningKeys {
  /**
   * Returns the keys of a realm. They are fetched on first use, every 10 hours, and for an unknown `kid` at most every
   * 30 s.
   */
  ofRealm(realm: string): jose.JWTVerifyGetKey;
}

/** `accessUrl` is the URL from which keys are fetched, such as `http://keycloak:8080/auth`. */
export function createSigningKeys(accessUrl: string, mapped?: TenantIssuers): SigningKeys {
  const urlOf = createKeysUrl(accessUrl, mapped);
  const times = { cooldownDuration: 30_000, cacheMaxAge: 36_000_000, timeoutDuration: 10_000 };
  const fetchKeys = (realm: string): jose.JWTVerifyGetKey => {
    let opening: Promise<jose.JWTVerifyGetKey> | undefined;
    const open = () => urlOf(realm).then((url) => jose.createRemoteJWKSet(new URL(url), times));
    return async (...token) => {
      opening ??= open();
      const keys = await opening.catch((error: unknown) => {
        opening = undefined;
        throw error;
      });
      return keys(...token);
    };
  };
  const keySets = new LRUCache<string, jose.JWTVerifyGetKey>({ max: 5_000, memoMethod: fetchKeys });
  return { ofRealm: (realm) => keySets.memo(realm) };
}

/** True if the token is invalid; false if the identity provider or the network failed. */
export function isTokenFault(error: unknown): boolean {
  const { JOSEError, JWKSTimeout, JWKSInvalid } = jose.errors;
  if (!(error instanceof JOSEError) || error instanceof JWKSTimeout || error instanceof JWKSInvalid) return false;
  // jose throws the base class with this code if the response with the keys is not a 200 with JSON.
  return error.code !== 'ERR_JOSE_GENERIC';
}
