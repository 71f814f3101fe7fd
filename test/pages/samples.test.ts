// Tests the samples for frontend developers in Chromium, with a real token handler and identity provider, under a
// strict content security policy. Angular's packages are large, so only `npm run test:pages` tests the sample for
// Angular.
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { buildPages } from '../../web/build.ts';
import { accessibilityViolations, launchChromium } from '../support/chromium.ts';
import { type FrontendSite, startFrontendSite } from '../support/frontend-site.ts';
import { startTargetWorld, type TargetWorld, targetUrn } from '../support/targets.ts';

const web = join(import.meta.dirname, '../../web');
const vite = join(import.meta.dirname, '../../node_modules/vite/bin/vite.js');
const folder = mkdtempSync(join(tmpdir(), 'formgate-samples-'));

/** Each function builds a sample, and returns the folder with the files of its site. */
const samples = {
  async plain() {
    await buildPages();
    cpSync(join(web, 'samples/plain'), join(folder, 'plain'), { recursive: true });
    cpSync(join(web, 'dist/token-handler-client'), join(folder, 'plain'), { recursive: true });
    return join(folder, 'plain');
  },
  async react() {
    const outDir = join(folder, 'react');
    const root = join(web, 'samples/react');
    const run = promisify(execFile);
    const env = { ...process.env, NODE_ENV: 'production' };
    await run(process.execPath, [vite, 'build', root, '--outDir', outDir, '--emptyOutDir'], { env });
    return outDir;
  },
  async angular() {
    const root = join(folder, 'samples/angular');
    const without = (name: string) => !/node_modules|dist/.test(name);
    for (const name of ['samples/angular', 'token-handler-client'])
      cpSync(join(web, name), join(folder, name), { recursive: true, filter: without });
    const run = promisify(execFile);
    const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}`, NG_CLI_ANALYTICS: 'false' };
    const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline'];
    await run('npm', install, { cwd: root, env });
    await run(process.execPath, ['node_modules/@angular/cli/bin/ng.js', 'build'], { cwd: root, env });
    return join(root, 'dist');
  },
};

let world: TargetWorld;
let browser: Browser;
const sites = new Map<string, FrontendSite>();
const tested = (Object.keys(samples) as (keyof typeof samples)[]).filter(
  (name) => name !== 'angular' || process.env.FORMGATE_ALL_PAGES !== undefined,
);
beforeAll(async () => {
  for (const name of tested) sites.set(name, await startFrontendSite(filesOf(await samples[name]())));
  [world, browser] = await Promise.all([startTargetWorld(), launchChromium()]);
  const redirectUris = [...sites.values()].map(({ url }) => `${url}/token-handler/clients/my-app/callback`);
  const targets = [{ id: 'form-service', upstream: targetUrn('api:v1') }];
  await world.handler.configure({ 'my-app': { redirectUris, targets } });
  expect((await world.handler.register('my-app')).status).toBe(200);
  for (const site of sites.values()) site.forwardTo(world.site);
}, 600_000);
afterAll(async () => {
  await browser?.close();
  await Promise.all([...sites.values()].map((site) => site.close()));
  await world?.close();
  rmSync(folder, { recursive: true });
});

function filesOf(root: string): Record<string, string> {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(?:js|html)$/.test(name));
  const files = names.map((name) => [`/${name}`, readFileSync(join(root, name), 'utf8')]);
  return { ...Object.fromEntries(files), '/': readFileSync(join(root, 'index.html'), 'utf8') };
}

async function signIn(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.fill('input[name=username]', 'alice@example.com');
  await page.fill('input[name=password]', 'alice');
  await page.press('input[name=password]', 'Enter');
}

it.each(tested)(
  'the sample %s signs in, calls an API, survives the end of the session, and signs out',
  async (name) => {
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    const created: string[] = [];
    world.upstream.answer = async (request, response) => {
      const text = (await request.toArray()).join('');
      if (request.method === 'POST') created.push(JSON.parse(text).definitionId);
      // Imitates the form service, which lists other people's forms only for administrators.
      const isRefused = request.method === 'GET' && !request.url?.endsWith('?mine=true');
      if (isRefused) return void response.writeHead(403).end();
      const results = created.map((definitionId) => ({ id: definitionId, definitionId, status: 'Draft' }));
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ results }));
    };
    const status = page.getByRole('status');
    const waitForStatus = (text: string) =>
      status
        .getByText(text)
        .or(status.filter({ hasText: text }))
        .first()
        .waitFor();

    await page.goto(`${sites.get(name)?.url}/`);
    await waitForStatus('Nobody is signed in');
    await page.getByLabel('Kind of form').fill('<b>licence</b>');
    await signIn(page);
    await waitForStatus('Signed in as Alice');
    await expect.poll(() => page.getByLabel('Kind of form').inputValue()).toBe('<b>licence</b>');
    await page.getByRole('button', { name: 'Create draft' }).click();
    await page.getByText('<b>licence</b>: Draft').waitFor();

    const [session] = await (await context.request.get(`${sites.get(name)?.url}/token-handler/sessions`)).json();
    const token = await world.handler.adminToken();
    await world.handler.api(`/sessions/${session.id}`, { method: 'DELETE', token });
    await page.getByLabel('Kind of form').fill('permit');
    await page.getByRole('button', { name: 'Create draft' }).click();
    await waitForStatus('Your session has ended');
    await expect.poll(() => page.getByRole('listitem').count()).toBe(0);
    // The identity provider shows no sign-in page, because the person is still signed in there.
    await page.getByRole('button', { name: 'Sign in' }).click();
    await waitForStatus('Signed in as Alice');
    await expect.poll(() => page.getByLabel('Kind of form').inputValue()).toBe('permit');

    await page.getByRole('button', { name: 'Sign out' }).click();
    await waitForStatus('Nobody is signed in');
    expect(complaints.filter((text) => !text.includes('status of 401'))).toEqual([]);
    expect(created).toEqual(['<b>licence</b>']);
  },
);

it.each(tested)('the sample %s has no accessibility violation that axe finds', async (name) => {
  const context = await browser.newContext({ bypassCSP: true });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(`${sites.get(name)?.url}/`);
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
});
