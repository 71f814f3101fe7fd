// Translates between the public address of the identity provider, which tokens and browsers use, and the address that
// this process calls. Returns only URLs of the identity provider that the caller names, because requests to these URLs
// carry secrets (decision 0046).
import type { CustomFetchOptions } from 'openid-client';
import { fetchFromProvider, type ProviderRequest } from '../service/auth/provider-fetch.ts';
import { noTenantIssuers, type TenantIssuers } from '../service/auth/tenant-issuers.ts';
import { type ProviderOperation, tracedProviderCall } from '../service/tracing/provider-call.ts';
import { withoutTrailingSlashes } from '../service/url-text.ts';

/** The identity provider of a tenant. */
export interface Provider {
  realm: string;
  /** The issuer that TENANT_ISSUERS maps to the tenant. Null for a realm of the platform's identity provider. */
  issuer: string | null;
}

export interface ProviderAddresses {
  /** Returns the identity provider of the tenant with this realm. */
  providerOf(realm: string): Provider;
  /** Returns the issuer of the realm's tokens, which is also the base URL of the realm's discovery document. */
  issuer(realm: string): URL;
  /**
   * Returns the issuer that TENANT_ISSUERS maps to the tenant of this realm. The returned string equals the `iss` claim
   * of the issuer's tokens.
   */
  mappedIssuer(realm: string): string | undefined;
  /** Returns the realm whose issuer is exactly `issuer`, or undefined if there is none. */
  realmOf(issuer: string): string | undefined;
  /**
   * Translates `url`, which an identity provider has returned, to the address that this process calls. For a realm of
   * the platform's identity provider, compares only paths, because it may copy the host of a request into its URLs. A
   * mapped identity provider is called at the host of its issuer. Throws TypeError for a URL that does not belong to
   * the provider, or if TENANT_ISSUERS does not contain its issuer any more.
   */
  rebase(provider: Provider, url: string): URL;
  /**
   * The `fetch` function for OpenID libraries. Rebases `url`, which comes from a discovery document, and follows no
   * redirects.
   */
  fetch(provider: Provider, url: string, request: CustomFetchOptions, operation: ProviderOperation): Promise<Response>;
  /** True if an address of an identity provider uses http, as is common on a single machine or inside a cluster. */
  readonly insecure: boolean;
}

export interface ProviderAddressesOptions {
  accessUrl: string;
  accessPublicUrl?: string | undefined;
  tenantIssuers?: TenantIssuers;
  /** Receives the outcome of each call of `fetch`, and the seconds until the response headers arrived. */
  called?: (outcome: 'ok' | 'failed' | 'unreachable' | 'timeout', seconds: number) => void;
}

export function createProviderAddresses(options: ProviderAddressesOptions): ProviderAddresses {
  const { tenantIssuers: mapped = noTenantIssuers, called = () => undefined } = options;
  const inner = new URL(options.accessUrl);
  const outer = new URL(options.accessPublicUrl ?? options.accessUrl);
  const mappedUrls = new Map(mapped.issuers.map((issuer) => [issuer, new URL(issuer)]));
  const rebase = ({ realm, issuer }: Provider, url: string): URL => {
    const given = new URL(url);
    if (issuer !== null && mappedUrls.get(issuer)?.origin === given.origin) return given;
    const path = `/realms/${encodeURIComponent(realm)}/`;
    const base = [outer, inner].find((address) => given.pathname.startsWith(`${rootOf(address)}${path}`));
    if (issuer !== null || base === undefined || !/^https?:$/.test(given.protocol))
      throw new TypeError('the URL is outside the identity provider');
    return new URL(`${rootOf(inner)}${given.pathname.slice(rootOf(base).length)}${given.search}`, inner);
  };
  const realmIssuer = (realm: string) => new URL(`${rootOf(outer)}/realms/${encodeURIComponent(realm)}`, outer);
  return {
    providerOf: (realm) => ({ realm, issuer: mapped.issuerOf(realm) ?? null }),
    issuer: (realm) => new URL(mapped.issuerOf(realm) ?? realmIssuer(realm)),
    mappedIssuer: mapped.issuerOf,
    realmOf(issuer) {
      const own = mapped.realmOf(issuer);
      if (own !== undefined) return own;
      const realm = /\/realms\/([\w.-]{1,50})$/.exec(issuer)?.[1];
      const isOwn = realm !== undefined && mapped.issuerOf(realm) === undefined && realmIssuer(realm).href === issuer;
      return isOwn ? realm : undefined;
    },
    rebase,
    async fetch(provider, url, request, operation) {
      const target = rebase(provider, url);
      const began = performance.now();
      const seconds = () => (performance.now() - began) / 1_000;
      try {
        const response = await tracedProviderCall(request.method, operation, () =>
          fetchFromProvider(target, request as ProviderRequest),
        );
        called(response.status < 500 ? 'ok' : 'failed', seconds());
        return response;
      } catch (error) {
        called(error instanceof DOMException && error.name === 'TimeoutError' ? 'timeout' : 'unreachable', seconds());
        throw error;
      }
    },
    insecure: [inner, outer, ...mappedUrls.values()].some(({ protocol }) => protocol === 'http:'),
  };
}

/** Returns the path of `url` without trailing slashes. The path is empty for the root of the host. */
function rootOf(url: URL): string {
  return withoutTrailingSlashes(url.pathname);
}
