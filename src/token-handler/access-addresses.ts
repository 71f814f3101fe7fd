// Where the access service is: what its addresses say (issuers, what browsers see) and where calls go. It hands no URL
// on that lies outside the access service: what goes there carries secrets.

export interface AccessAddresses {
  /** What tokens of the realm name as `iss`, and where its discovery begins. */
  issuer(realm: string): URL;
  /**
   * The same resource where this process reaches it. A URL under neither address is taken by its path, because a server
   * names itself by the host that it was called at. Throws TypeError for one that is not below the access service.
   */
  rebase(url: string): URL;
  /** `fetch` for OpenID libraries, which call what discovery says: rebased, and never following a redirect. */
  fetch(url: string, options: RequestInit): Promise<Response>;
  /** Whether any of the addresses is http, as on one machine or inside a cluster. */
  readonly insecure: boolean;
}

export function createAccessAddresses(options: {
  accessUrl: string;
  accessPublicUrl?: string | undefined;
}): AccessAddresses {
  const inner = new URL(options.accessUrl);
  const outer = new URL(options.accessPublicUrl ?? options.accessUrl);
  const rebase = (url: string): URL => {
    const given = new URL(url);
    for (const base of [outer, inner]) {
      const root = `${rootOf(base)}/realms/`;
      if (/^https?:$/.test(given.protocol) && given.pathname.startsWith(root))
        return new URL(`${rootOf(inner)}/realms/${given.pathname.slice(root.length)}${given.search}`, inner);
    }
    throw new TypeError('the URL is not one of the access service');
  };
  return {
    issuer: (realm) => new URL(`${rootOf(outer)}/realms/${encodeURIComponent(realm)}`, outer),
    rebase,
    fetch: (url, init) => fetch(rebase(url), { ...init, redirect: 'manual' }),
    insecure: [inner, outer].some(({ protocol }) => protocol === 'http:'),
  };
}

/** Path without trailing slash: empty for an access service at the root of its host. */
function rootOf(url: URL): string {
  return url.pathname.replace(/\/+$/, '');
}
