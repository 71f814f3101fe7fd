// Tests the page /docs in a real browser.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { accessibilityViolations, launchChromium } from '../../../test/support/chromium.ts';
import { documentedRoutes as routes } from '../../../test/support/documented-routes.ts';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { documentRoutes } from './openapi.ts';

let app: ListeningApp;
let browser: Browser;
beforeAll(async () => {
  const document = documentRoutes({ title: 'Form service', version: '1', description: 'Drafts', routes });
  app = await startApp([...routes, ...document]);
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await app.close();
});

describe('the page /docs', () => {
  async function open(options: { colorScheme?: 'light' | 'dark'; width?: number } = {}) {
    const context = await browser.newContext({
      colorScheme: options.colorScheme ?? 'light',
      viewport: { width: options.width ?? 1200, height: 800 },
      // The test injects axe, which is a script. The page's policy allows no scripts.
      bypassCSP: true,
    });
    const page = await context.newPage();
    await page.goto(`${app.url}/docs`);
    return { page, close: () => context.close() };
  }

  it('allows only its own stylesheet and loads without a browser warning', async () => {
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    const response = await page.goto(`${app.url}/docs`, { waitUntil: 'networkidle' });
    expect(response?.headers()['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:;/,
    );
    expect(await page.evaluate('getComputedStyle(document.body).display')).toBe('grid');
    expect([complaints, asked.filter((path) => path.startsWith('/'))]).toEqual([[], ['/docs']]);
  });

  it('shows the parameters, bodies and responses of every call, and escapes them', async () => {
    const { page, close } = await open();
    const headings = await page.locator('article h3 .method').allTextContents();
    expect(headings).toHaveLength(routes.length);
    const text = await page.locator('main').textContent();
    for (const part of [
      '/form/v1/forms/{formId}',
      'integer, 1 to 100',
      'If-None-Match',
      'list (at least 1) of object',
      'pattern ^[a-z]+$',
      '<script>alert(1)</script>',
      'A form <b>& its</b> "fields"',
      'default 25',
    ])
      expect(text).toContain(part);
    expect(await page.locator('main script, main b').count()).toBe(0);
    expect(await page.locator('main p code').allTextContents()).toContain(
      'urn:example:platform:configuration:v2:/configuration/data-register/<name>',
    );
    await close();
  });

  it('shows each call as a command, with the body and the response as examples', async () => {
    const { page, close } = await open();
    const examples = await page.locator('article pre').allTextContents();
    expect(examples).toContain(`curl "$BASE/form/v1/forms/$FORM_ID" \\\n  -H "Authorization: Bearer $TOKEN"`);
    const put = examples.find((text) => text.startsWith('curl -X PUT')) ?? '';
    const body = /-d '([\s\S]*)'$/.exec(put)?.[1] ?? '';
    expect(JSON.parse(body)).toEqual({ name: 'text', channels: [{ channel: 'email', address: 'text' }], any: {} });
    expect(put).toContain(`-H 'Content-Type: application/json'`);
    const form = examples.find((text) => text.includes('"createdBy"')) ?? '';
    expect(JSON.parse(form)).toMatchObject({ status: 'Draft', createdBy: { id: 'text' } });
    await close();
  });

  it.each([
    ['light', 1200],
    ['dark', 1200],
    ['light', 360],
  ] as const)('has no accessibility violation that axe finds, in %s at %i pixels', async (colorScheme, width) => {
    const { page, close } = await open({ colorScheme, width });
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await close();
  });

  it('can be used by keyboard: the first tab stop skips to the calls', async () => {
    const { page, close } = await open();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the calls');
    await page.keyboard.press('Enter');
    expect(new URL(page.url()).hash).toBe('#calls');
    await close();
  });
});
