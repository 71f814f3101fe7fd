// Tests the configurations in docs/frontends.md: the proxies of Vite and Angular, the page and the Ingress.
// test/faults/nginx.test.ts tests nginx.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { findFreePort } from '../../dev/ports.ts';
import { type SessionWorld, startSessionWorld } from '../support/sessions.ts';
import { createSiteBrowser } from '../support/site-browser.ts';

const root = join(import.meta.dirname, '../..');
const guide = readFileSync(join(root, 'docs/frontends.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'formgate-guide-'));

/** Returns the first code block in `language` that follows the text `after` in docs/frontends.md. */
function block(language: string, after: string): string {
  const from = guide.indexOf(after);
  const code = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\n\`\`\``).exec(guide.slice(from))?.[1];
  if (from < 0 || code === undefined) throw new Error(`no block of ${language} after ${after}`);
  return code;
}

interface ProxyEntry {
  target: string;
  pathRewrite?: Record<string, string>;
  rewrite?(path: string): string;
  ws: boolean;
  xfwd: boolean;
}
type Proxy = Record<string, ProxyEntry>;

interface DevServer {
  listen(): Promise<unknown>;
  close(): Promise<void>;
  resolvedUrls: { local: string[] } | null;
}
interface Vite {
  createServer(config: object): Promise<DevServer>;
}

let world: SessionWorld;
let port: number;
let origin: string;
beforeAll(async () => {
  port = await findFreePort();
  origin = `http://127.0.0.1:${port}`;
  world = await startSessionWorld({ sites: [origin] });
});
afterAll(async () => {
  await world?.close();
  rmSync(folder, { recursive: true });
});

/** Signs in through a development server of Vite. Angular's development server is based on Vite. */
async function signInThrough(proxy: Proxy): Promise<void> {
  const entries = Object.entries(proxy).map(([path, { pathRewrite, ...entry }]) => {
    expect(entry.target).toBe('http://localhost:8080');
    const [[pattern, text] = ['^', '']] = Object.entries(pathRewrite ?? {});
    // @angular/build converts pathRewrite to a function like this one.
    const rewrite = entry.rewrite ?? ((url: string) => url.replace(new RegExp(pattern), text));
    return [path, { ...entry, rewrite, target: world.site }];
  });
  // The name is in a variable, so that the compiler does not look for Vite, which is installed only in web/.
  const name = 'vite';
  const vite = (await import(name)) as Vite;
  const server = await vite.createServer({
    configFile: false,
    root: folder,
    logLevel: 'error',
    server: { host: '127.0.0.1', port, strictPort: true, ws: false, proxy: Object.fromEntries(entries) },
  });
  try {
    await server.listen();
    const browser = createSiteBrowser();
    const start = world.authUrl({ returnTo: '/app?x=1' }, { site: origin });
    const { landed, handle } = await world.signIn(browser, { start });
    expect([landed.location?.href, handle]).toEqual([`${origin}/app?x=1`, expect.stringMatching(/./)]);
    expect(landed.setCookies.join()).not.toContain('Secure');
  } finally {
    await server.close();
  }
}

it('a person signs in through the proxy of Vite', async () => {
  const file = join(folder, 'vite.config.mjs');
  writeFileSync(file, block('js', 'Vite (`vite.config.js`)'));
  const { default: config } = (await import(pathToFileURL(file).href)) as { default: { server: { proxy: Proxy } } };
  await signInThrough(config.server.proxy);
});

it('a person signs in through the proxy of Angular, which the sample has, too', async () => {
  const text = block('json', 'Angular (`proxy.conf.json`');
  expect(JSON.parse(readFileSync(join(root, 'web/samples/angular/proxy.conf.json'), 'utf8'))).toEqual(JSON.parse(text));
  await signInThrough(JSON.parse(text));
});

it('the scripts and commands are valid', () => {
  const page =
    /<script type="module">([\s\S]*)<\/script>/.exec(block('html', 'This is a complete frontend'))?.[1] ?? '';
  for (const code of [page, block('js', '## CSRF')]) {
    writeFileSync(join(folder, 'script.mjs'), code);
    execFileSync(process.execPath, ['--check', join(folder, 'script.mjs')]);
  }
  execFileSync('sh', ['-n'], { input: block('sh', '## Before you start') });
});

it('the Ingress leads to both Services', () => {
  const { spec } = parse(block('yaml', '### Ingress'));
  const paths = spec.rules[0].http.paths.map(({ path, backend }: { path: string; backend: { service: object } }) => [
    path,
    backend.service,
  ]);
  expect(paths).toEqual([
    ['/token-handler', { name: 'formgate-token-handler', port: { name: 'http' } }],
    ['/', { name: 'my-app', port: { name: 'http' } }],
  ]);
});
