// Caches each realm's discovery document (OpenID Connect Discovery 1.0). A document that is older than an hour is still
// used while a new one is fetched, and while the identity provider cannot be reached.
import { LRUCache } from 'lru-cache';
import * as oidc from 'openid-client';
import type { ProviderAddresses } from '../provider-addresses.ts';
import type { DiscoverProvider } from '../provider-discovery.ts';

const lifetime = 3_600_000;
const mostRealms = 5_000;

export interface ProviderCacheOptions {
  addresses: ProviderAddresses;
  discover: DiscoverProvider;
  /** Timeout of one call to the identity provider, in milliseconds. */
  timeout: number;
}

export type ProviderCache = ReturnType<typeof createProviderCache>;

export function createProviderCache({ addresses, discover, timeout }: ProviderCacheOptions) {
  const providers = new LRUCache<string, oidc.ServerMetadata>({
    max: mostRealms,
    ttl: lifetime,
    allowStale: true,
    noDeleteOnFetchRejection: true,
    // Without this option, a read by `keysUrl` would delete an outdated document, which is still needed while the
    // identity provider cannot be reached.
    noDeleteOnStaleGet: true,
    fetchMethod: discover,
  });
  const metadataOf = (realm: string) => providers.forceFetch(realm);

  return {
    /** Returns an openid-client configuration for one call to the identity provider on behalf of a client. */
    async configuration(realm: string, clientId: string, authentication: oidc.ClientAuth) {
      const metadata = await metadataOf(realm);
      const configuration = new oidc.Configuration(metadata, clientId, { [oidc.clockTolerance]: 5 }, authentication);
      configuration.timeout = timeout / 1_000;
      const provider = addresses.providerOf(realm);
      configuration[oidc.customFetch] = (url, init) => addresses.fetch(provider, url, init, 'token');
      if (addresses.insecure) oidc.allowInsecureRequests(configuration);
      return configuration;
    },
    /**
     * Returns the URL of the realm's key set, at the address that this process calls. The URL is the `jwks_uri` of the
     * discovery document. Every sign-in and every refresh reads the document before verifying tokens. While the
     * document of a realm of the platform's identity provider is not cached, returns Keycloak's path instead, so that
     * bearer tokens of callers can be verified without discovery.
     */
    async keysUrl(realm: string): Promise<string> {
      const isMapped = addresses.mappedIssuer(realm) !== undefined;
      const metadata = isMapped ? await metadataOf(realm) : providers.get(realm);
      const url = metadata ? metadata.jwks_uri : `${addresses.issuer(realm).href}/protocol/openid-connect/certs`;
      if (url === undefined) throw new TypeError('the identity provider publishes no keys');
      return addresses.rebase(addresses.providerOf(realm), url).href;
    },
    /** Translates a URL of the identity provider into the address that browsers use. */
    publicUrl(realm: string, url: URL): URL {
      const inner = addresses.rebase(addresses.providerOf(realm), url.href);
      if (addresses.mappedIssuer(realm) !== undefined) return url;
      const marker = `/realms/${encodeURIComponent(realm)}`;
      const rest = inner.pathname.slice(inner.pathname.indexOf(marker) + marker.length);
      return new URL(`${addresses.issuer(realm).href}${rest}${url.search}`);
    },
  };
}
