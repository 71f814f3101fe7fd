// Translates between the public address of the identity provider, which tokens and browsers use, and the address that
// this process calls. Returns only URLs of the platform's identity provider and of mapped issuers (TENANT_ISSUERS),
// because requests to these URLs carry secrets.
import type { CustomFetchOptions } from 'openid-client';
import { fetchFromProvider, type ProviderRequest } from '../service/auth/provider-fetch.ts';
import { noTenantIssuers, type TenantIssuers } from '../service/auth/tenant-issuers.ts';
import { type ProviderOperation, tracedProviderCall } from '../service/tracing/provider-call.ts';
import { withoutTrailingSlashes } from '../service/url-text.ts';

export interface ProviderAddresses {
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
   * Translates `url`, which an identity provider has returned, to the address that this process calls. Compares only
   * paths, because an identity provider may copy the host of a request into its URLs. A mapped identity provider is
   * called at the host of its issuer. Throws TypeError for a URL that belongs to no identity provider.
   */
  rebase(url: string): URL;
  /**
   * The `fetch` function for OpenID libraries. Rebases `url`, which comes from a discovery document, and follows no
   * redirects.
   */
  fetch(url: string, request: CustomFetchOptions, operation: ProviderOperation): Promise<Response>;
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
  const mappedUrls = mapped.issuers.map((issuer) => new URL(issuer));
  const rebase = (url: string): URL => {
    const given = new URL(url);
    const isMapped = mappedUrls.some(({ origin }) => origin === given.origin);
    // Compares origins first, because a mapped identity provider may have the same paths as the platform's identity
    // provider. Both may even be on the same host.
    const isOwnHost = [outer, inner].some(({ origin }) => origin === given.origin);
    for (const base of isMapped && !isOwnHost ? [] : [outer, inner]) {
      const root = `${rootOf(base)}/realms/`;
      if (/^https?:$/.test(given.protocol) && given.pathname.startsWith(root))
        return new URL(`${rootOf(inner)}/realms/${given.pathname.slice(root.length)}${given.search}`, inner);
    }
    if (isMapped) return given;
    throw new TypeError('the URL is outside the identity provider');
  };
  const realmIssuer = (realm: string) => new URL(`${rootOf(outer)}/realms/${encodeURIComponent(realm)}`, outer);
  return {
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
    async fetch(url, request, operation) {
      const target = rebase(url);
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
    insecure: [inner, outer, ...mappedUrls].some(({ protocol }) => protocol === 'http:'),
  };
}

/** Returns the path of `url` without trailing slashes. The path is empty for the root of the host. */
function rootOf(url: URL): string {
  return withoutTrailingSlashes(url.pathname);
}
