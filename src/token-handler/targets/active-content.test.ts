// Tests in a real browser whether scripts in an upstream's documents run in the frontend's origin. Tries different
// response headers.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { launchChromium } from '../../../test/support/chromium.ts';
import { basePath, startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';

let world: TargetWorld;
let browser: Browser;
let page: Page;
beforeAll(async () => {
  [world, browser] = await Promise.all([startTargetWorld({ store: 'redis' }), launchChromium()]);
  const context = await browser.newContext();
  const cookies = world.person.cookie.split('; ').map((pair) => pair.split('='));
  await context.addCookies(cookies.map(([name = '', value = '']) => ({ name, value, url: world.site })));
  page = await context.newPage();
});
afterAll(async () => {
  await browser.close();
  await world.close();
});
beforeEach(() => world.upstream.forget());

/** Response header lines: names and values alternate. */
type Lines = string[];

const beacon = (xmlns = '') => `<script${xmlns}>fetch('/token-handler/v1/targets/api/ran').catch(() => 0)</script>`;
const html = `<!doctype html><title>x</title>${beacon()}`;
const xhtml = `<html xmlns="http://www.w3.org/1999/xhtml"><body>${beacon()}</body></html>`;
const svg = `<svg xmlns="http://www.w3.org/2000/svg">${beacon()}</svg>`;
const parts = `--x\r\nContent-Type: text/html\r\n\r\n${html}\r\n--x--\r\n`;
const type = (...values: string[]): Lines => values.flatMap((value) => ['Content-Type', value]);

/** True if the script in the document runs. The script calls the upstream, so the upstream shows whether it ran. */
async function runs(lines: Lines, body: string, origin = world.site): Promise<boolean> {
  world.upstream.forget();
  world.upstream.answer = ({ url = '' }, response) =>
    void (url.endsWith('/document') ? response.writeHead(200, lines).end(body) : response.end());
  const path = origin === world.site ? '/token-handler/v1/targets/api/document' : '/document';
  // `goto` rejects if the browser downloads the response as a file.
  await page.goto(`${origin}${path}`, { waitUntil: 'load' }).catch(() => undefined);
  await page.waitForTimeout(100);
  return world.upstream.seen.some(({ target }) => target.endsWith('/ran'));
}

const attacks: [string, Lines, string][] = [
  ['HTML', type('text/html'), html],
  ['HTML in capitals with a charset', type('TEXT/HTML;charset=utf-8'), html],
  ['a list of types that ends with HTML', type('image/png, text/html'), html],
  ['a list of types with HTML in the middle', type('image/png, text/html, nonsense'), html],
  ['two types on lines of their own', type('image/png', 'text/html'), html],
  ['HTML and a word behind it', type('text/html xxx'), html],
  ['HTML behind a comma in quotes', type('text/plain; a=", text/html'), html],
  ['XSL', type('text/xsl'), xhtml],
  ['XML', type('application/xml'), xhtml],
  ['XHTML', type('application/xhtml+xml'), xhtml],
  ['a made-up type of XML', type('image/made-up+xml'), svg],
  ['SVG', type('image/svg+xml'), svg],
  ['documents that replace one another', type('multipart/x-mixed-replace; boundary=x'), parts],
  ['no type', [], html],
  ['an empty type', type(''), html],
  ['any type', type('*/*'), html],
  ['a type that is none', type('nonsense'), html],
  ['HTML that may be sniffed', [...type('text/plain'), 'X-Content-Type-Options', 'none'], html],
  ['HTML with an empty policy', [...type('text/html'), 'Content-Security-Policy', ''], html],
  ['HTML with a lax policy', [...type('text/html'), 'Content-Security-Policy', "script-src 'unsafe-inline'"], html],
  [
    'HTML with a sandbox that lets scripts run',
    [...type('text/html'), 'Content-Security-Policy', 'sandbox allow-scripts allow-same-origin'],
    html,
  ],
];

describe('a document that comes through a target', () => {
  it.each(attacks)('runs no scripts in the frontend’s origin as %s', async (_name, lines, body) => {
    expect(await runs(lines, body)).toBe(false);
    expect(world.upstream.last().target).toBe(`${basePath}/document`);
  });

  it('would run its scripts if the browser loaded it from the upstream directly', async () => {
    const own = html.replace('/token-handler/v1/targets/api/ran', '/ran');
    await expect.poll(() => runs(type('text/html'), own, world.upstream.url)).toBe(true);
    await expect.poll(() => runs(type('text/html xxx'), own, world.upstream.url)).toBe(true);
  });

  it('cannot be the script of a service worker', async () => {
    world.upstream.answer = (_request, response) =>
      void response.writeHead(200, { 'Content-Type': 'text/javascript', 'Service-Worker-Allowed': '/' }).end('/**/');
    await page.goto(`${world.site}/health`);
    const register = `navigator.serviceWorker.register('/token-handler/v1/targets/api/sw.js')`;
    const registered = await page.evaluate(`${register}.then(() => 'registered', ({ message }) => message)`);
    expect(registered).toContain('403');
    expect(world.upstream.seen).toEqual([]);
    for (const headers of [{ 'Service-Worker': 'script' }, { 'Sec-Fetch-Dest': 'serviceworker' }]) {
      const { status, problem } = await world.send({ headers: headers as Record<string, string> });
      expect([status, problem]).toEqual([403, 'forbidden']);
    }
  });

  it('of a type that browsers do not show is still saved as a file', async () => {
    world.upstream.answer = (_request, response) =>
      void response.writeHead(200, { 'Content-Type': 'application/x-tar' }).end('file');
    const saved = page.waitForEvent('download');
    await page.goto(`${world.site}/token-handler/v1/targets/api/file.tar`).catch(() => undefined);
    expect((await saved).suggestedFilename()).toBe('file.tar');
    expect(await (await saved).failure()).toBeNull();
  });
});

describe('the Content-Security-Policy of a response', () => {
  const policyOf = async (lines: Lines, status = 200) => {
    world.upstream.answer = (_request, response) => void response.writeHead(status, lines).end();
    const { headers } = await world.send();
    return [headers['content-security-policy'], headers['x-content-type-options']];
  };
  const lax = [
    'Content-Security-Policy',
    "default-src 'self'",
    'Content-Security-Policy',
    '',
    'X-Content-Type-Options',
    'none',
  ];

  it('is the token handler’s for a document, whatever policies the upstream sends', async () => {
    for (const [, lines] of attacks.filter(([, sent]) => !sent.includes('X-Content-Type-Options')))
      expect([lines, await policyOf([...lines, ...lax])]).toEqual([lines, ['sandbox', 'nosniff']]);
  });

  it('is the upstream’s for data, images, media and PDF', async () => {
    const inert = [
      'application/json',
      'application/problem+json; charset=utf-8',
      'text/plain',
      'application/pdf',
      'image/png',
    ];
    inert.push('text/event-stream', 'video/mp4', 'Image/JPEG ; x=y', 'font/woff2', 'text/csv', 'image/png, image/png');
    for (const value of inert) {
      expect([value, await policyOf(type(value))]).toEqual([value, [undefined, 'nosniff']]);
      expect(await policyOf([...type(value), 'Content-Security-Policy', 'sandbox allow-forms'])).toEqual([
        'sandbox allow-forms',
        'nosniff',
      ]);
    }
  });

  it('is not overwritten by a 304, whose headers update the response in the browser’s cache', async () => {
    expect(await policyOf([], 304)).toEqual([undefined, 'nosniff']);
    expect(await policyOf(lax, 304)).toEqual([undefined, 'nosniff']);
    expect(await policyOf([...type('application/pdf'), ...lax], 304)).toEqual([undefined, 'nosniff']);
    expect(await policyOf([...type('text/html'), ...lax], 304)).toEqual(['sandbox', 'nosniff']);
  });

  it('is absent if there is no document', async () => {
    expect(await policyOf([], 204)).toEqual([undefined, 'nosniff']);
  });
});
