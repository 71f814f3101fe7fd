// A browser that renders nothing, for tests of the redirects, cookies and forms between pages. It keeps cookies by host
// and path, follows redirects one at a time, and submits forms. It runs no scripts.
export interface View {
  /** The final URL, after redirects. */
  url: URL;
  status: number;
  text: string;
  headers: Headers;
}

export interface HttpBrowser {
  /**
   * Opens `url`, and follows redirects to a page. Stops before an address that `stopAt` matches, without fetching it.
   */
  open(url: string | URL): Promise<View>;
  /** Submits the page's form with these fields and its hidden ones, and follows redirects. */
  submit(view: View, fields: Record<string, string>): Promise<View>;
  /** Returns the names of the cookies that would be sent to this address. */
  cookies(url: string | URL): string[];
}

interface Cookie {
  host: string;
  path: string;
  name: string;
  value: string;
}

const mostRedirects = 20;

/** Creates a browser. `stopAt` matches addresses not to fetch, such as a client's callback that nothing serves. */
export function createHttpBrowser(options: { stopAt?: (url: URL) => boolean } = {}): HttpBrowser {
  let jar: Cookie[] = [];
  const cookiesFor = (url: URL) =>
    jar.filter(
      ({ host, path }) =>
        host === url.host && (url.pathname === path || url.pathname.startsWith(path.endsWith('/') ? path : `${path}/`)),
    );

  function keep(url: URL, headers: Headers): void {
    for (const line of headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(/;\s*/);
      const [name = '', value = ''] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
      const attribute = (wanted: string) =>
        attributes.find((one) => one.toLowerCase().startsWith(`${wanted}=`))?.slice(wanted.length + 1);
      const path = attribute('path') ?? '/';
      jar = jar.filter((cookie) => !(cookie.host === url.host && cookie.path === path && cookie.name === name));
      const expires = attribute('expires');
      const isGone = (expires !== undefined && Date.parse(expires) <= Date.now()) || attribute('max-age') === '0';
      if (!isGone) jar.push({ host: url.host, path, name, value });
    }
  }

  async function request(start: URL, init: RequestInit): Promise<View> {
    let url = start;
    let current = init;
    for (let redirects = 0; redirects < mostRedirects; redirects += 1) {
      if (options.stopAt?.(url)) return { url, status: 0, text: '', headers: new Headers() };
      const cookie = cookiesFor(url)
        .map(({ name, value }) => `${name}=${value}`)
        .join('; ');
      const response = await fetch(url, { ...current, redirect: 'manual', headers: cookie ? { Cookie: cookie } : {} });
      keep(url, response.headers);
      const location = response.headers.get('Location');
      const text = await response.text();
      if (location === null) return { url, status: response.status, text, headers: response.headers };
      url = new URL(location, url);
      current = { method: 'GET' };
    }
    throw new Error(`More than ${mostRedirects} redirects, the last to ${url}`);
  }

  return {
    open: (url) => request(new URL(url), { method: 'GET' }),
    submit: (view, fields) => {
      const form = /<form[^>]*>/.exec(view.text)?.[0] ?? '';
      const action = /action="([^"]*)"/.exec(form)?.[1] ?? view.url.href;
      const hidden = [...view.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
      const body = new URLSearchParams({
        ...Object.fromEntries(hidden.map(([, name, value]) => [name, value])),
        ...fields,
      });
      return request(new URL(action, view.url), { method: 'POST', body });
    },
    cookies: (url) => cookiesFor(new URL(url)).map(({ name }) => name),
  };
}
