// Tests in a real browser that a cached response of an upstream is shown only to the person who received it, if several
// people use the same browser.
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launchChromium } from '../../../test/support/chromium.ts';
import { type Person, startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';

let world: TargetWorld;
let browser: Browser;
let context: BrowserContext;
let page: Page;
beforeAll(async () => {
  [world, browser] = await Promise.all([startTargetWorld(), launchChromium()]);
  context = await browser.newContext();
  page = await context.newPage();
  await page.goto(`${world.site}/health`);
});
afterAll(async () => {
  await browser.close();
  await world.close();
});

/** Signs the browser in as a person, in place of the previous person. */
async function enter({ cookie }: Person): Promise<void> {
  const pairs = cookie.split('; ').map((pair) => pair.split('='));
  await context.addCookies(pairs.map(([name = '', value = '']) => ({ name, value, url: world.site })));
}

it.each([
  ['private, max-age=300', 'Authorization'],
  ['max-age=300', 'Accept'],
])(
  'the next person in the same browser does not see the cached data of the previous one (%s)',
  async (control, vary) => {
    world.upstream.answer = ({ headers }, response) =>
      void response.writeHead(200, { 'Cache-Control': control, Vary: vary }).end(headers.authorization);
    const path = `/token-handler/v1/targets/api/${encodeURIComponent(control)}`;
    const show = () => page.evaluate<string>(`fetch(${JSON.stringify(path)}).then((response) => response.text())`);
    await enter(world.person);
    world.upstream.forget();
    const first = await show();
    expect(first).toMatch(/^Bearer /);
    // The same person gets the data from the browser's cache.
    expect(await show()).toBe(first);
    expect(world.upstream.seen).toHaveLength(1);
    await enter(await world.enter('admin@example.com'));
    const next = await show();
    expect(next).toMatch(/^Bearer /);
    expect(next).not.toBe(first);
  },
);
