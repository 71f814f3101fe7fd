// What is known of the access service by realm: its discovery document (OpenID Connect Discovery 1.0) and its keys.
// Fetched when first needed and every hour; an older one serves while the access service is away.
import { LRUCache } from 'lru-cache';
import * as oidc from 'openid-client';
import type { ProviderAddresses } from '../provider-addresses.ts';

export interface ProviderCache {
  /** A configuration for one call, of one client. */
  configuration(realm: string, clientId: string, authentication: oidc.ClientAuth): Promise<oidc.Configuration>;
  /** Keeps the keys that a call has fetched for the next one. */
  keepKeys(realm: string, configuration: oidc.Configuration): void;
  /** An address of the access service as browsers have to see it. */
  publicUrl(realm: string, url: URL): URL;
}

interface Provider {
  metadata: oidc.ServerMetadata;
  keys?: ReturnType<typeof oidc.getJwksCache>;
}

const lifetime = 3_600_000;
const mostRealms = 5_000;

export function createProviderCache({
  addresses,
  timeout,
}: {
  addresses: ProviderAddresses;
  /** Milliseconds */
  timeout: number;
}): ProviderCache {
  const fetch: oidc.CustomFetch = (url, init) => addresses.fetch(url, init as RequestInit);
  const providers = new LRUCache<string, Provider>({
    max: mostRealms,
    ttl: lifetime,
    allowStale: true,
    noDeleteOnFetchRejection: true,
    allowStaleOnFetchRejection: true,
    async fetchMethod(realm) {
      const found = await oidc.discovery(addresses.issuer(realm), 'discovery', undefined, oidc.None(), {
        timeout: timeout / 1_000,
        [oidc.customFetch]: fetch,
        ...(addresses.insecure && { execute: [oidc.allowInsecureRequests] }),
      });
      return { metadata: { ...found.serverMetadata() } };
    },
  });

  return {
    async configuration(realm, clientId, authentication) {
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
    keepKeys(realm, configuration) {
      const provider = providers.peek(realm);
      const keys = oidc.getJwksCache(configuration);
      if (provider && keys) provider.keys = keys;
    },
    publicUrl(realm, url) {
      const inner = addresses.rebase(url.href);
      const marker = `/realms/${encodeURIComponent(realm)}`;
      const rest = inner.pathname.slice(inner.pathname.indexOf(marker) + marker.length);
      return new URL(`${addresses.issuer(realm).href}${rest}${url.search}`);
    },
  };
}
