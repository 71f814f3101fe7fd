// A form service with the intake application, and simulated browsers that call it as the applicant's pages do. Each
// browser has its own cookies, and sends the headers of same-origin requests.
import { randomUUID } from 'node:crypto';
import { applyClientId } from '../../dev/access/default-realms.ts';
import { findFreePort } from '../../dev/ports.ts';
import { testServiceSecret } from './access.ts';
import { startTestForms, type TestForms, type TestFormsOptions } from './forms.ts';

export interface PageResponse {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
  text: string;
}

export interface PageCall {
  body?: unknown;
  headers?: Record<string, string | undefined>;
}

export interface ApplicantBrowser {
  /** The browser's cookies, keyed by name. */
  jar: Map<string, string>;
  /**
   * Sends a request of the page. `path` is below `/apply/api/tenants/{realm}`. Headers that are undefined are not sent.
   */
  ask(method: string, path: string, call?: PageCall): Promise<PageResponse>;
  /** Starts a draft for a new address, and returns its id and ETag. */
  start(email?: string, more?: object): Promise<{ id: string; etag: string; email: string }>;
  /** Saves the data if `etag` is the ETag of the stored version. Returns the new ETag. */
  save(id: string, data: object, etag: string): Promise<string>;
  enter(id: string, code: string): Promise<PageResponse>;
}

export interface TestApply {
  forms: TestForms;
  origin: string;
  /** `realm` is that of the tenant whose pages the browser shows; by default `demo`. */
  browser(realm?: string): ApplicantBrowser;
  /** Asks for a code in the browser, and reads it from the mail to this address. */
  code(browser: ApplicantBrowser, id: string, email: string): Promise<string>;
  close(): Promise<void>;
}

export const applyKeyRing = `tests:${Buffer.alloc(32, 7).toString('base64')}`;
/** The settings that switch the intake application on. */
export const applySettings = {
  APPLY_CLIENT_ID: applyClientId,
  APPLY_CLIENT_SECRET: testServiceSecret(applyClientId),
  APPLY_KEY_RING: applyKeyRing,
};
const codePattern = /^\s*([A-Z0-9]{6,})\s*$/m;

export async function startTestApply(options: TestFormsOptions = {}): Promise<TestApply> {
  const port = await findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  const forms = await startTestForms({
    coreTokenLifetime: 30 * 24 * 3600,
    ...options,
    env: async (platform) => ({
      ...applySettings,
      PORT: String(port),
      PUBLIC_URL: origin,
      ...(await options.env?.(platform)),
    }),
  });
  return {
    forms,
    origin,
    browser: (realm = 'demo') => createApplicantBrowser(`${forms.url}/apply/api/tenants/${realm}`, origin),
    async code(browser, id, email) {
      const { mailbox } = forms.platform;
      const before = new Set(mailbox.messages().map((message) => message.id));
      const { status, text } = await browser.ask('POST', `/forms/${id}/codes`);
      if (status !== 202) throw new Error(`The code was not sent: ${status} ${text}`);
      const mail = await mailbox.waitFor(
        (message) => !before.has(message.id) && message.to.includes(email) && codePattern.test(message.text),
      );
      return codePattern.exec(mail.text)?.[1] ?? '';
    },
    close: forms.close,
  };
}

function createApplicantBrowser(url: string, origin: string): ApplicantBrowser {
  const jar = new Map<string, string>();
  const browser: ApplicantBrowser = {
    jar,
    async ask(method, path, { body, headers } = {}) {
      const all = {
        'x-formgate-apply': method === 'GET' ? undefined : '1',
        origin: method === 'GET' ? undefined : origin,
        'sec-fetch-site': 'same-origin',
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') || undefined,
        'content-type': body === undefined ? undefined : 'application/json',
        ...headers,
      };
      const response = await fetch(`${url}${path}`, {
        method,
        headers: Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined),
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      for (const line of response.headers.getSetCookie()) keep(jar, line);
      const text = await response.text();
      const isJson = /json/.test(response.headers.get('content-type') ?? '');
      return { status: response.status, headers: response.headers, text, body: isJson && text ? JSON.parse(text) : {} };
    },
    async start(email = `${randomUUID()}@example.org`, more = {}) {
      const answer = await browser.ask('POST', '/definitions/permit/forms', {
        body: { email, language: 'en', ...more },
        headers: { 'idempotency-key': randomUUID() },
      });
      if (answer.status !== 201) throw new Error(`The draft was not started: ${answer.status} ${answer.text}`);
      return { id: String(answer.body.id), etag: String(answer.body.etag), email };
    },
    async save(id, data, etag) {
      const answer = await browser.ask('PUT', `/forms/${id}/data`, {
        body: { data, files: {} },
        headers: { 'if-match': etag },
      });
      if (answer.status !== 200) throw new Error(`The data was not saved: ${answer.status} ${answer.text}`);
      return answer.headers.get('etag') ?? '';
    },
    enter: (id, code) => browser.ask('POST', `/forms/${id}/code-checks`, { body: { code } }),
  };
  return browser;
}

function keep(jar: Map<string, string>, line: string): void {
  const [pair = ''] = line.split(';');
  const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
  const expires = /expires=([^;]+)/i.exec(line)?.[1];
  if (expires !== undefined && Date.parse(expires) <= Date.now()) jar.delete(name);
  else jar.set(name, value);
}
