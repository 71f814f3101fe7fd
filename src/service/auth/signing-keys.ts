// The public keys of realms, fetched from the access service and kept; and which failures are the token's fault and
// which the access service's.
import * as jose from 'jose';
import { LRUCache } from 'lru-cache';

export interface SigningKeys {
  /** The keys of a realm: fetched when first used, every 10 hours, and for an unknown `kid` at most every 30 s. */
  ofRealm(realm: string): jose.JWTVerifyGetKey;
}

/** `accessUrl`: where keys are fetched, such as `http://keycloak:8080/auth`. */
export function createSigningKeys(accessUrl: string): SigningKeys {
  const keySets = new LRUCache<string, jose.JWTVerifyGetKey>({ max: 5_000 });
  return {
    ofRealm(realm) {
      const known = keySets.get(realm);
      if (known) return known;
      const url = new URL(`${accessUrl}/realms/${encodeURIComponent(realm)}/protocol/openid-connect/certs`);
      const keys = jose.createRemoteJWKSet(url, {
        cooldownDuration: 30_000,
        cacheMaxAge: 36_000_000,
        timeoutDuration: 10_000,
      });
      keySets.set(realm, keys);
      return keys;
    },
  };
}

/** Whether verification failed for the token itself; whatever else fails is the access service's or the network's. */
export function isTokenFault(error: unknown): boolean {
  const { errors } = jose;
  if (!(error instanceof errors.JOSEError)) return false;
  // jose answers with its base class when the keys' endpoint answers with anything but 200 and JSON.
  return (
    !(error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid) && error.code !== 'ERR_JOSE_GENERIC'
  );
}
