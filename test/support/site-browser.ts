// A browser for tests of a frontend's site. It keeps cookies by host and path, makes one request at a time, follows
// redirects only when told to, and lets a test read and change its state. It runs no scripts.
export interface Visit {
  url: URL;
  status: number;
  headers: Headers;
  /** The redirect target, as an absolute URL. */
  location: URL | undefined;
  text: string;
  /** The `Set-Cookie` lines. */
  setCookies: string[];
}

export interface SiteBrowser {
  request(
    url: string | URL,
    init?: { method?: string; headers?: Record<string, string>; body?: URLSearchParams | string },
  ): Promise<Visit>;
  /** Follows redirects to a page, or stops before an address that `stopAt` matches, without fetching it. */
  follow(visit: Visit, stopAt?: (url: URL) => boolean): Promise<Visit>;
  /** Submits the page's form with these fields and its hidden ones. */
  submit(visit: Visit, fields: Record<string, string>): Promise<Visit>;
  cookie(url: string | URL, name: string): string | undefined;
  /** Returns the cookies that a request to this address would send, oldest first. */
  cookies(url: string | URL): { name: string; value: string }[];
  /** Sets a cookie, or removes it if `value` is undefined. */
  setCookie(url: string | URL, name: string, value: string | undefined): void;
  /** Returns another browser with the same cookies. */
  copy(): SiteBrowser;
}

interface Cookie {
  host: string;
  path: string;
  name: string;
  value: string;
}

/** Milliseconds after which a person gives up waiting for a page. Longer than a platform call may take (10 s). */
const patience = 25_000;

/**
 * If `keepsConnections` is false, each request opens a new connection. Use this in a test that makes open connections
 * hang, because a real browser would replace them.
 */
export function createSiteBrowser(initial: Cookie[] = [], { keepsConnections = true } = {}): SiteBrowser {
  let jar = [...initial];
  const matching = (url: URL) =>
    jar.filter(
      ({ host, path }) =>
        host === url.host && (url.pathname === path || url.pathname.startsWith(path.endsWith('/') ? path : `${path}/`)),
    );
  const put = (cookie: Cookie, isGone: boolean) => {
    const { host, path, name } = cookie;
    jar = jar.filter((other) => !(other.host === host && other.path === path && other.name === name));
    if (!isGone) jar.push(cookie);
  };

  function keep(url: URL, line: string): void {
    const [pair = '', ...attributes] = line.split(/;\s*/);
    const attribute = (wanted: string) =>
      attributes.find((one) => one.toLowerCase().startsWith(`${wanted}=`))?.slice(wanted.length + 1);
    const equals = pair.indexOf('=');
    const expires = attribute('expires');
    const isGone = (expires !== undefined && Date.parse(expires) <= Date.now()) || attribute('max-age') === '0';
    const path = attribute('path') ?? '/';
    put({ host: url.host, path, name: pair.slice(0, equals), value: pair.slice(equals + 1) }, isGone);
  }

  const browser: SiteBrowser = {
    async request(address, { headers = {}, ...init } = {}) {
      const url = new URL(address);
      const cookie = matching(url)
        .map(({ name, value }) => `${name}=${value}`)
        .join('; ');
      const response = await fetch(url, {
        ...init,
        redirect: 'manual',
        signal: AbortSignal.timeout(patience),
        headers: { ...(!keepsConnections && { Connection: 'close' }), ...(cookie && { Cookie: cookie }), ...headers },
      });
      const setCookies = response.headers.getSetCookie();
      for (const line of setCookies) keep(url, line);
      const location = response.headers.get('Location');
      return {
        url,
        status: response.status,
        headers: response.headers,
        location: location === null ? undefined : new URL(location, url),
        text: await response.text(),
        setCookies,
      };
    },
    async follow(visit, stopAt = () => false) {
      let current = visit;
      for (let redirects = 0; current.location && !stopAt(current.location); redirects += 1) {
        if (redirects > 20) throw new Error('more than 20 redirects');
        current = await browser.request(current.location);
      }
      return current;
    },
    submit(visit, fields) {
      const form = /<form[^>]*>/.exec(visit.text)?.[0] ?? '';
      const action = /action="([^"]*)"/.exec(form)?.[1] ?? visit.url.href;
      const hidden = [...visit.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
      const body = new URLSearchParams({
        ...Object.fromEntries(hidden.map(([, name, value]) => [name, value])),
        ...fields,
      });
      return browser.request(new URL(action, visit.url), { method: 'POST', body });
    },
    cookie: (address, name) => matching(new URL(address)).find((cookie) => cookie.name === name)?.value,
    cookies: (address) => matching(new URL(address)).map(({ name, value }) => ({ name, value })),
    setCookie(address, name, value) {
      const { host } = new URL(address);
      put({ host, path: '/', name, value: value ?? '' }, value === undefined);
    },
    copy: () => createSiteBrowser(jar),
  };
  return browser;
}
