// Tests the page /docs/try in Chromium: calls run with the session of the token handler, under a strict content
// security policy.
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { documentRoutes } from '../../src/service/openapi/openapi.ts';
import { buildPages } from '../../web/build.ts';
import { accessibilityViolations, launchChromium } from '../support/chromium.ts';
import { documentedRoutes } from '../support/documented-routes.ts';
import { type FrontendSite, startFrontendSite } from '../support/frontend-site.ts';
import { type ListeningApp, startApp } from '../support/listening-app.ts';
import { startTargetWorld, type TargetWorld, targetUrn } from '../support/targets.ts';

let app: ListeningApp;
let site: FrontendSite;
let world: TargetWorld;
let browser: Browser;
beforeAll(async () => {
  await buildPages();
  const tryScript = join(import.meta.dirname, '../../web/dist/try/try.js');
  const about = { title: 'Form service', version: '1', description: 'Drafts' };
  app = await startApp(documentRoutes({ ...about, routes: documentedRoutes, tryScript }));
  site = await startFrontendSite({}, { '/docs': app.url });
  [world, browser] = await Promise.all([startTargetWorld(), launchChromium()]);
  const redirectUris = [`${site.url}/token-handler/clients/formgate-console/callback`];
  const targets = [{ id: 'form-service', upstream: targetUrn('api:v1') }];
  await world.handler.configure({ 'formgate-console': { redirectUris, targets } });
  expect((await world.handler.register('formgate-console')).status).toBe(200);
  site.forwardTo(world.site);
});
afterAll(async () => {
  await browser?.close();
  await Promise.all([site, app].map((one) => one?.close()));
  await world?.close();
});

async function open(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext(options);
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(`${site.url}/docs/try?tenant=demo`);
  await page.getByText('Nobody is signed in.').waitFor();
  return page;
}

async function signIn(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.fill('input[name=username]', 'alice@example.com');
  await page.fill('input[name=password]', 'alice');
  await page.press('input[name=password]', 'Enter');
  await page.getByText('Signed in as Alice').waitFor();
}

it('sends calls with the session, shows responses as text, and knows no token', async () => {
  const page = await open();
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await signIn(page);
  world.upstream.answer = (request, response) => {
    request.resume();
    response.writeHead(201, { 'Content-Type': 'application/json' }).end('{"name":"<img src=x onerror=alert(1)>"}');
  };
  await page.locator('summary', { hasText: 'Replace a form' }).click();
  const form = page.locator('form[data-method=PUT]');
  await form.getByLabel('formId (path)').fill('a b');
  expect(JSON.parse(await form.locator('textarea').inputValue())).toMatchObject({ name: 'text' });
  await form.locator('textarea').fill('{"name": "x"}');
  await form.getByRole('button', { name: 'Send' }).click();
  await form.getByText('201 Created').waitFor();
  expect(await form.locator('pre').textContent()).toContain('"name": "<img src=x onerror=alert(1)>"');
  expect(await page.locator('main img').count()).toBe(0);
  const { method, target, headers, body } = world.upstream.last();
  expect({ method, target, body }).toEqual({
    method: 'PUT',
    target: '/base/v1/form/v1/forms/a%20b',
    body: '{"name": "x"}',
  });
  const token = headers.authorization?.replace('Bearer ', '') ?? 'missing';
  const known = await page.evaluate(
    'document.documentElement.outerHTML + document.cookie + JSON.stringify({ ...sessionStorage, ...localStorage })',
  );
  expect(known).not.toContain(token);
  // A session of another tenant than that of the address counts as signed out.
  await page.goto(`${site.url}/docs/try?tenant=springfield`);
  await page.getByText('Nobody is signed in.').waitFor();
  // Without a tenant in the address, every session counts as signed out.
  await page.goto(`${site.url}/docs/try`);
  await page.getByText('Enter the tenant, and sign in.').waitFor();
  await page.goto(`${site.url}/docs/try?tenant=demo`);
  await page.getByText(/Signed in as Alice.*, tenant demo\./i).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Enter the tenant, and sign in.').waitFor();
  expect(complaints.filter((text) => !text.includes('status of 401'))).toEqual([]);
});

it('sends a call once although the button is pressed twice', async () => {
  const page = await open();
  await signIn(page);
  let calls = 0;
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  world.upstream.answer = (request, response) => {
    request.resume();
    calls += 1;
    void released.then(() => response.writeHead(201).end(String(calls)));
  };
  await page.locator('summary', { hasText: 'Replace a form' }).click();
  const form = page.locator('form[data-method=PUT]');
  await form.getByLabel('formId (path)').fill('x');
  for (let press = 0; press < 2; press += 1) await form.getByLabel('formId (path)').press('Enter');
  await expect.poll(() => calls).toBe(1);
  release();
  await form.getByText('201 Created').waitFor();
  expect(calls).toBe(1);
  await form.getByRole('button', { name: 'Send' }).click();
  await expect.poll(() => calls).toBe(2);
});

it('no longer warns of the end of a session that a call has extended', async () => {
  const page = await open();
  await signIn(page);
  let isEnding = true;
  // The test changes only the reported expiry.
  await page.route('**/token-handler/sessions', async (route) => {
    const response = await route.fetch();
    const sessions = (await response.json()) as object[];
    const expiry = new Date(Date.now() + 90_000).toISOString();
    await route.fulfill({ response, json: sessions.map((one) => (isEnding ? { ...one, expiry } : one)) });
  });
  await page.reload();
  await page.getByText('Your session ends soon. Any call extends it.').waitFor();
  isEnding = false;
  await page.locator('summary', { hasText: 'Read a form' }).click();
  const form = page.locator('form[data-method=GET]');
  await form.getByLabel('formId (path)').fill('x');
  await form.getByRole('button', { name: 'Send' }).click();
  await page.getByText('Signed in as Alice').waitFor();
});

it.each(['.', '..'])('sends nothing if a part of the path is %s, which the browser would resolve', async (part) => {
  const page = await open();
  const sent: string[] = [];
  page.on('request', (request) => sent.push(request.url()));
  await page.locator('summary', { hasText: 'Replace a form' }).click();
  const form = page.locator('form[data-method=PUT]');
  await form.getByLabel('formId (path)').fill(part);
  await form.getByRole('button', { name: 'Send' }).click();
  await form.getByText(`A path cannot contain the part "${part}". Nothing was sent.`).waitFor();
  expect(sent).toEqual([]);
});

it('offers only the calls that need a token, and says who may not call them', async () => {
  const page = await open();
  expect(await page.locator('form[data-path]').count()).toBe(2);
  await page.locator('summary', { hasText: 'Read a form' }).click();
  const form = page.locator('form[data-method=GET]');
  await form.getByLabel('formId (path)').fill('x');
  await form.getByRole('button', { name: 'Send' }).click();
  await form.getByText('401 Unauthorized').waitFor();
  expect(page.url()).toBe(`${site.url}/docs/try?tenant=demo`);
});

it.each([
  ['light', 1200],
  ['dark', 320],
] as const)('has no accessibility violation that axe finds, in %s at %i pixels', async (colorScheme, width) => {
  const page = await open({ colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
  for (const summary of await page.locator('summary').all()) await summary.click();
  expect(await accessibilityViolations(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
});
