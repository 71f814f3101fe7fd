// The addresses of the identity provider: the public one, which tokens and browsers see, and the one that this process
// calls. It returns no URL outside the identity provider, because the requests carry secrets.

export interface ProviderAddresses {
  /** The issuer of the realm's tokens, and the base of its discovery. */
  issuer(realm: string): URL;
  /**
   * The same resource at the address that this process calls. Only the path counts, because an identity provider may name
   * itself by the host of the request. Throws TypeError for a URL outside the identity provider.
   */
  rebase(url: string): URL;
  /** `fetch` for OpenID libraries, which call the URLs of discovery: rebased, and without following redirects. */
  fetch(url: string, options: RequestInit): Promise<Response>;
  /** Whether one of the addresses is http, as on one machine or inside a cluster. */
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
    insecure: [inner, outer].some(({ protocol }) => protocol === 'http:'),
  };
}

/** The path without trailing slash: empty at the root of the host. */
function rootOf(url: URL): string {
  return url.pathname.replace(/\/+$/, '');
}
