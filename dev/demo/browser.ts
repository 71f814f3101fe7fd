// A minimal browser for the demo. It keeps cookies, follows redirects, and prints each redirect. It runs no scripts,
// and refuses redirects to another origin.
import { type Conversation, type Exchange, type Reply, Surprise } from './conversation.ts';

export interface DemoBrowser {
  send(exchange: Exchange): Promise<Reply>;
  /** Sends a request, follows redirects, and returns the final page. */
  follow(exchange: Omit<Exchange, 'expect'>): Promise<Page>;
  /** Returns the value of a cookie that the site has set. */
  cookie(name: string): string | undefined;
}

export interface Page {
  path: string;
  reply: Reply;
}

interface Cookie {
  name: string;
  value: string;
  path: string;
}

const mostRedirects = 10;

/** Creates a browser for the demo. It stores cookies by path only, because the demo has one origin. */
export function createDemoBrowser(talk: Conversation, origin: string): DemoBrowser {
  let jar: Cookie[] = [];

  async function send(exchange: Exchange): Promise<Reply> {
    const [path = ''] = exchange.path.split('?');
    const cookies = jar.filter((cookie) => belongs(cookie, path)).map(({ name, value }) => `${name}=${value}`);
    const headers = { ...(cookies.length > 0 && { Cookie: cookies.join('; ') }), ...exchange.headers };
    const reply = await talk.send({ ...exchange, headers });
    for (const cookie of reply.headers.getSetCookie().map(parseCookie)) {
      jar = jar.filter(({ name, path: other }) => name !== cookie.name || other !== cookie.path);
      if (cookie.value !== '') jar.push(cookie);
    }
    return reply;
  }

  async function follow(first: Omit<Exchange, 'expect'>): Promise<Page> {
    let exchange = first;
    for (let count = 0; count < mostRedirects; count += 1) {
      const reply = await send({ ...exchange, expect: [200, 302, 303] });
      const location = reply.headers.get('Location');
      if (location === null) return { path: exchange.path, reply };
      const url = new URL(location, `${origin}${exchange.path}`);
      if (url.origin !== origin) throw new Surprise(`Unexpected redirect to ${url.origin}.`);
      exchange = { method: 'GET', path: `${url.pathname}${url.search}` };
    }
    throw new Surprise(`More than ${mostRedirects} redirects.`);
  }

  return { send, follow, cookie: (name) => jar.find((one) => one.name === name && one.path === '/')?.value };
}

// Path matching of cookies (RFC 6265, section 5.1.4).
function belongs({ path: prefix }: Cookie, path: string): boolean {
  return path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`);
}

function parseCookie(line: string): Cookie {
  const [pair = '', ...attributes] = line.split(/; */);
  const equals = pair.indexOf('=');
  const path = attributes.find((one) => /^path=/i.test(one))?.slice('path='.length) ?? '/';
  return { name: pair.slice(0, equals), value: pair.slice(equals + 1), path };
}
