// Caches each realm's discovery document (OpenID Connect Discovery 1.0) and keys for an hour. Uses an older document
// while the identity provider cannot be reached.
import { LRUCache } from 'lru-cache';
import * as oidc from 'openid-client';
import type { ProviderAddresses } from '../provider-addresses.ts';
import type { DiscoverProvider } from '../provider-discovery.ts';

interface Provider {
  metadata: oidc.ServerMetadata;
  keys?: ReturnType<typeof oidc.getJwksCache>;
}

const lifetime = 3_600_000;
const mostRealms = 5_000;

export interface ProviderCacheOptions {
  addresses: ProviderAddresses;
  discover: DiscoverProvider;
  /** Timeout of one call, in milliseconds. */
  timeout: number;
}

export function createProviderCache({ addresses, discover, timeout }: ProviderCacheOptions) {
  const fetch: oidc.CustomFetch = (url, init) => addresses.fetch(url, init as RequestInit);
  const providers = new LRUCache<string, Provider>({
    max: mostRealms,
    ttl: lifetime,
    allowStale: true,
    noDeleteOnFetchRejection: true,
    allowStaleOnFetchRejection: true,
    async fetchMethod(realm) {
      return { metadata: await discover(realm) };
    },
  });

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
      if (provider.keys) oidc.setJwksCache(configuration, provider.keys);
      return configuration;
    },
    /** Caches the realm's keys that a call has fetched. */
    keepKeys(realm: string, configuration: oidc.Configuration): void {
      const provider = providers.peek(realm);
      const keys = oidc.getJwksCache(configuration);
      if (provider && keys) provider.keys = keys;
    },
    /** Translates a URL of the identity provider to the address that browsers use. */
    publicUrl(realm: string, url: URL): URL {
      const inner = addresses.rebase(url.href);
      if (addresses.mappedIssuer(realm) !== undefined) return url;
      const marker = `/realms/${encodeURIComponent(realm)}`;
      const rest = inner.pathname.slice(inner.pathname.indexOf(marker) + marker.length);
      return new URL(`${addresses.issuer(realm).href}${rest}${url.search}`);
    },
  };
}
