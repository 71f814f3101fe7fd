// A browser of a frontend's site for a test: it keeps cookies as browsers do (by host and path), makes one request at a
// time, follows redirects when told to, and lets a test see and change everything. It runs no scripts.
export interface Visit {
  url: URL;
  status: number;
  headers: Headers;
  /** Where it wants to go on, absolute. */
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
  /** Follows redirects until there is none, or one that `stopAt` names: that one is not asked for. */
  follow(visit: Visit, stopAt?: (url: URL) => boolean): Promise<Visit>;
  /** Sends the form of the page with these fields, hidden ones included. */
  submit(visit: Visit, fields: Record<string, string>): Promise<Visit>;
  cookie(url: string | URL, name: string): string | undefined;
  /** Plants a cookie, or with undefined removes it. */
  setCookie(url: string | URL, name: string, value: string | undefined): void;
  /** Another browser with the same cookies. */
  copy(): SiteBrowser;
}

interface Cookie {
  host: string;
  path: string;
  name: string;
  value: string;
}

export function createSiteBrowser(initial: Cookie[] = []): SiteBrowser {
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
        headers: { ...(cookie && { Cookie: cookie }), ...headers },
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
    setCookie(address, name, value) {
      const { host } = new URL(address);
      put({ host, path: '/', name, value: value ?? '' }, value === undefined);
    },
    copy: () => createSiteBrowser(jar),
  };
  return browser;
}
