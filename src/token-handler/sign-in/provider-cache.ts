// Caches each realm's discovery document (OpenID Connect Discovery 1.0) for an hour, and the keys that it names. Uses an
// older document while the identity provider cannot be reached.
import * as jose from 'jose';
import { LRUCache } from 'lru-cache';
import * as oidc from 'openid-client';
import type { ProviderAddresses } from '../provider-addresses.ts';
import type { VerifyJwt } from './id-token.ts';

interface Provider {
  metadata: oidc.ServerMetadata;
  keys: jose.JWTVerifyGetKey;
}

const lifetime = 3_600_000;
const mostRealms = 5_000;

/** `timeout` is in milliseconds. */
export function createProviderCache({ addresses, timeout }: { addresses: ProviderAddresses; timeout: number }) {
  const fetch: oidc.CustomFetch = (url, init) => addresses.fetch(url, init as RequestInit);
  const providers = new LRUCache<string, Provider>({
    max: mostRealms,
    ttl: lifetime,
    allowStale: true,
    noDeleteOnFetchRejection: true,
    allowStaleOnFetchRejection: true,
    async fetchMethod(realm, stale) {
      const found = await oidc.discovery(addresses.issuer(realm), 'discovery', undefined, oidc.None(), {
        timeout: timeout / 1_000,
        [oidc.customFetch]: fetch,
        ...(addresses.insecure && { execute: [oidc.allowInsecureRequests] }),
      });
      const metadata = { ...found.serverMetadata() };
      const isSame = stale !== undefined && stale.metadata.jwks_uri === metadata.jwks_uri;
      return { metadata, keys: isSame ? stale.keys : remoteKeys(metadata) };
    },
  });

  /**
   * The token endpoint names the keys, not the caller. An ID token with an unknown key therefore always causes a
   * download, so that the first sign-in after a key rotation succeeds (OpenID Connect Core, section 10.1.1).
   */
  function remoteKeys({ jwks_uri: url }: oidc.ServerMetadata): jose.JWTVerifyGetKey {
    if (url === undefined) return () => Promise.reject(new TypeError('the identity provider publishes no keys'));
    const pace = { cooldownDuration: 0, cacheMaxAge: 600_000, timeoutDuration: timeout };
    return jose.createRemoteJWKSet(new URL(url), { ...pace, [jose.customFetch]: addresses.fetch });
  }

  return {
    /** Returns a configuration of openid-client for one call on behalf of one client. */
    async configuration(realm: string, clientId: string, authentication: oidc.ClientAuth) {
      const provider = await providers.forceFetch(realm);
      const configuration = new oidc.Configuration(
        provider.metadata,
        clientId,
        { [oidc.clockTolerance]: 5 },
        authentication,
      );
      configuration.timeout = timeout / 1_000;
      configuration[oidc.customFetch] = fetch;
      if (addresses.insecure) oidc.allowInsecureRequests(configuration);
      return configuration;
    },
    /** Returns a function that verifies ID tokens with the realm's keys. */
    async verifier(realm: string): Promise<VerifyJwt> {
      const { keys } = await providers.forceFetch(realm);
      return (token, options) => jose.jwtVerify(token, keys, options);
    },
    /** Translates a URL of the identity provider to the address that browsers use. */
    publicUrl(realm: string, url: URL): URL {
      const inner = addresses.rebase(url.href);
      const marker = `/realms/${encodeURIComponent(realm)}`;
      const rest = inner.pathname.slice(inner.pathname.indexOf(marker) + marker.length);
      return new URL(`${addresses.issuer(realm).href}${rest}${url.search}`);
    },
  };
}
