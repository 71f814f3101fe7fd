// Translates between the public address of the identity provider, which tokens and browsers use, and the address that
// this process calls. Never returns a URL outside the identity provider, because the requests carry secrets.

export interface ProviderAddresses {
  /** Returns the issuer of the realm's tokens, which is also the base URL of the realm's discovery document. */
  issuer(realm: string): URL;
  /**
   * Returns the URL of the same resource at the address that this process calls. Compares paths only, because an
   * identity provider may copy the host of a request into its URLs. Throws TypeError for a URL outside the identity
   * provider.
   */
  rebase(url: string): URL;
  /** `fetch` for OpenID libraries: rebases the URL, which comes from discovery, and does not follow redirects. */
  fetch(url: string, options: RequestInit): Promise<Response>;
  /** Returns the issuer that the operator has mapped to the tenant of this realm. */
  mappedIssuer(realm: string): string | undefined;
  /** True if one of the addresses is http, as on one machine or inside a cluster. */
  readonly insecure: boolean;
}

export function createProviderAddresses(options: {
  accessUrl: string;
  accessPublicUrl?: string | undefined;
}): ProviderAddresses {
  const inner = new URL(options.accessUrl);
  const outer = new URL(options.accessPublicUrl ?? options.accessUrl);
  const rebase = (url: string): URL => {
    const given = new URL(url);
    for (const base of [outer, inner]) {
      const root = `${rootOf(base)}/realms/`;
      if (/^https?:$/.test(given.protocol) && given.pathname.startsWith(root))
        return new URL(`${rootOf(inner)}/realms/${given.pathname.slice(root.length)}${given.search}`, inner);
    }
    throw new TypeError('the URL is outside the identity provider');
  };
  return {
    issuer: (realm) => new URL(`${rootOf(outer)}/realms/${encodeURIComponent(realm)}`, outer),
    rebase,
    fetch: (url, init) => fetch(rebase(url), { ...init, redirect: 'manual' }),
    mappedIssuer: () => undefined,
    insecure: [inner, outer].some(({ protocol }) => protocol === 'http:'),
  };
}

/** Returns the path without trailing slashes; empty for the root of the host. */
function rootOf(url: URL): string {
  return url.pathname.replace(/\/+$/, '');
}
