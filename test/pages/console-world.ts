// Starts `npm start` and a browser for tests of the console. Every page that the browser opens is watched for
// violations of the content security policy, errors of scripts, and tokens in anything that the page can read.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { findFreePort } from '../../dev/ports.ts';
import { noticeLogs } from '../support/captured-log.ts';
import { launchChromium } from '../support/chromium.ts';

const project = join(import.meta.dirname, '../..');
const longestStart = 90_000;

export interface ConsoleWorld {
  url: string;
  /** Pool of connections to the form service's database. */
  pool: pg.Pool;
  /** Pool of connections to the token handler's database. */
  handlerPool: pg.Pool;
  /** Errors and violations of the watched pages so far. */
  complaints: string[];
  /** Opens a browser context, and watches its pages. */
  context(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** Opens a page of the console, and signs in. `path` is below `/console/demo`. */
  signIn(context: BrowserContext, path?: string, person?: Person): Promise<Page>;
  /** Calls an API with the token of a service account of the demo. Throws if the call fails. */
  api(account: 'demo-admin' | 'demo-intake', method: string, path: string, body?: unknown): Promise<unknown>;
  /** Reads an API with the token of an operator of the realm core. */
  coreApi(path: string): Promise<unknown>;
  /** Creates a form of the demo's definition, and returns its id. */
  form(data?: object): Promise<string>;
  close(): Promise<void>;
}

type Person = 'admin' | 'alice';

/** `onContext` is called with each context before it opens a page. */
export async function startConsoleWorld(onContext?: (context: BrowserContext) => void): Promise<ConsoleWorld> {
  const directory = await mkdtemp(join(tmpdir(), 'formgate-console-'));
  // If root runs the test, Postgres runs as another account, which must be able to enter the folder.
  await chmod(directory, 0o755);
  const port = await findFreePort();
  const [child, browser] = await Promise.all([startFormgate(directory, port), launchChromium(['--disable-lcd-text'])]);
  const url = `http://localhost:${port}`;
  const complaints: string[] = [];
  const environment = await readFile(join(directory, 'reconciler.env'), 'utf8');
  const [, databaseUrl] = /^DATABASE_URL=["']?([^"'\n]+)/m.exec(environment) ?? [];
  const poolOf = (name?: string) => {
    const address = new URL(databaseUrl ?? '');
    if (name !== undefined) address.pathname = name;
    return new pg.Pool({ connectionString: address.href, max: 1 });
  };
  const [pool, handlerPool] = [poolOf(), poolOf('token_handler')];
  const api = createApi(url);
  return {
    url,
    ...{ pool, handlerPool },
    complaints,
    api,
    async context(options) {
      const context = await openContext(browser, complaints, options);
      onContext?.(context);
      return context;
    },
    signIn: (context, path = '', person = 'admin') => signIn(context, `${url}/console/demo${path}`, person),
    coreApi: (path) => readAsOperator(url, path),
    form: (data = {}) => createForm(api, data),
    async close() {
      await Promise.all([pool.end(), handlerPool.end(), browser.close()]);
      child.kill('SIGTERM');
      if (child.exitCode === null) await new Promise((done) => child.on('close', done));
      await noticeLogs(join(directory, 'logs'));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function startFormgate(directory: string, port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [join(project, 'dev/main.ts')], {
    env: { ...process.env, PORT: String(port), FORMGATE_DATA: directory },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(output)), longestStart);
    const read = (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes('Ctrl-C stops everything')) settle(resolve);
    };
    const settle = (end: () => void) => {
      clearTimeout(timer);
      end();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('close', () => settle(() => reject(new Error(output))));
  });
  return child;
}

function createApi(url: string): ConsoleWorld['api'] {
  const tokens = new Map<string, { token: string; renewAt: number }>();
  const tokenOf = async (account: string) => {
    const known = tokens.get(account);
    if (known && Date.now() < known.renewAt) return known.token;
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: account,
      client_secret: `${account}-secret`,
    });
    const response = await fetch(`${url}/auth/realms/demo/protocol/openid-connect/token`, { method: 'POST', body });
    const { access_token: token, expires_in: lifetime } = (await response.json()) as {
      access_token: string;
      expires_in: number;
    };
    // On a busy machine, the tests of a file can last longer than a token.
    tokens.set(account, { token, renewAt: Date.now() + lifetime * 500 });
    return token;
  };
  return async (account, method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${await tokenOf(account)}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  };
}

async function readAsOperator(url: string, path: string): Promise<unknown> {
  const body = new URLSearchParams({
    ...{ grant_type: 'password', client_id: 'demo-cli' },
    ...{ username: 'core@example.com', password: 'core' },
  });
  const token = await fetch(`${url}/auth/realms/core/protocol/openid-connect/token`, { method: 'POST', body });
  const { access_token: accessToken } = (await token.json()) as { access_token: string };
  const response = await fetch(url + path, { headers: { Authorization: `Bearer ${accessToken}` } });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function createForm(api: ConsoleWorld['api'], data: object): Promise<string> {
  const applicant = { addressAs: 'Ana', channels: [{ channel: 'email', address: 'ana@example.org' }] };
  const body = { definitionId: 'business-licence', applicant };
  const { id } = (await api('demo-intake', 'POST', '/form/v1/forms', body)) as { id: string };
  await api('demo-intake', 'PUT', `/form/v1/forms/${id}/data`, { data, files: {} });
  return id;
}

/** Matches data that must not reach a page: a JSON Web Token, or a JSON member that contains a token. */
const tokenPattern = /eyJ[\w-]{10,}\.eyJ|"(?:access|refresh|id)_token"/;

async function openContext(browser: Browser, complaints: string[], options: BrowserContextOptions = {}) {
  const context = await browser.newContext({
    reducedMotion: 'reduce',
    locale: 'en-CA',
    timezoneId: 'UTC',
    viewport: { width: 1000, height: 800 },
    ...options,
  });
  await context.exposeBinding('reportViolation', (_source, text: string) => void complaints.push(`policy: ${text}`));
  const report = 'reportViolation(event.violatedDirective + " " + event.blockedURI)';
  await context.addInitScript(`addEventListener('securitypolicyviolation', (event) => ${report})`);
  context.on('console', (message) => {
    // Chromium reports the status of each failed request as an error.
    const isOurs = !message.text().startsWith('Failed to load resource');
    if (isOurs && ['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  context.on('weberror', (error) => complaints.push(`script: ${error.error().message}`));
  context.on('response', async (response) => {
    const text = await response.text().catch(() => '');
    if (tokenPattern.test(text)) complaints.push(`token in ${response.url()}`);
  });
  return context;
}

async function signIn(context: BrowserContext, address: string, person: Person): Promise<Page> {
  const page = await context.newPage();
  await page.goto(address);
  await page.getByRole('link', { name: /^Sign in/ }).click();
  await enterPassword(page, person);
  return page;
}

/** Fills in the form of the identity provider, and waits until the browser is back in the console and signed in. */
export async function enterPassword(page: Page, person: Person = 'admin'): Promise<void> {
  await page.locator('#username').fill(`${person}@example.com`);
  await page.locator('#password').fill(person);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}

let axe: Promise<string> | undefined;

/** Returns the violations that axe finds, and whether the page scrolls sideways. Waits until everything is loaded. */
export async function findFaults(page: Page): Promise<string[]> {
  await settled(page);
  axe ??= readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
  await page.evaluate(await axe);
  const found = await page.evaluate<Violation[]>('axe.run().then(({ violations }) => violations)');
  const isTooWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
  const faults = found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  return isTooWide ? [...faults, 'scrolls sideways'] : faults;
}

interface Violation {
  id: string;
  nodes: { html: string }[];
}

/** Resolves when the page no longer shows that something is loading or being checked. */
export async function settled(page: Page): Promise<void> {
  const text = "document.querySelector('#page')?.textContent || 'Loading …'";
  // Poll, because the content security policy forbids `waitForFunction`, which evaluates its text in the page.
  for (const deadline = Date.now() + 30_000; ; await delay(20)) {
    const shown = await page.evaluate<string>(text);
    if (!/Loading …|Checking …|One moment/.test(shown)) return;
    if (Date.now() > deadline) throw new Error(`still loading: ${shown}`);
  }
}
