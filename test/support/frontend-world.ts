// A frontend's site with the browser module, a real token handler and identity provider, and Chromium.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { buildPages } from '../../web/build.ts';
import { launchChromium } from './chromium.ts';
import { startFrontendSite } from './frontend-site.ts';
import { startTargetWorld, type TargetWorld } from './targets.ts';

/** The file of the browser module that pages without a build step import. */
export const clientFile = join(import.meta.dirname, '../../web/dist/token-handler-client/token-handler-client.js');
const script = join(import.meta.dirname, '../fixtures/frontend/app.js');
/** Page of the frontend. Its script keeps the text of the field across a sign-in, and records the module's events. */
const page = '<!doctype html><title>Frontend</title><input id="typed"><script type="module" src="/app.js"></script>';

export interface FrontendWorld {
  world: TargetWorld;
  /** Origin of the frontend. */
  site: string;
  /** Origin of the same frontend with a token handler that ends sessions after 8 s without requests to targets. */
  short: string;
  /** Returns a browser profile for one test, and a function that opens a page in a tab of it. */
  newProfile(): Promise<{ context: BrowserContext; open(path?: string, origin?: string): Promise<Page> }>;
  close(): Promise<void>;
}

export async function startFrontendWorld(): Promise<FrontendWorld> {
  await buildPages();
  const files = {
    '/app.js': readFileSync(script, 'utf8'),
    '/app*': page,
    '/client.js': readFileSync(clientFile, 'utf8'),
  };
  const [site, short] = await Promise.all([startFrontendSite(files), startFrontendSite(files)]);
  const [world, browser] = await Promise.all([startTargetWorld({ sites: [site.url, short.url] }), launchChromium()]);
  const replica = await world.replica({ SESSION_IDLE: 'PT8S' });
  site.forwardTo(world.site);
  short.forwardTo(replica.url);
  return {
    world,
    site: site.url,
    short: short.url,
    async newProfile() {
      const context = await browser.newContext();
      context.setDefaultTimeout(60_000);
      onTestFinished(() => context.close());
      return {
        context,
        async open(path = '/app', origin = site.url) {
          const tab = await context.newPage();
          await tab.goto(origin + path);
          await until(tab, 'client.session !== undefined');
          return tab;
        },
      };
    },
    async close() {
      await browser.close();
      await Promise.all([site, short, replica].map((one) => one.close()));
      await world.close();
    },
  };
}

/**
 * Waits until a JavaScript expression is true in the page. The expression may use the variables `client` and `events`,
 * which the page's script sets.
 */
export async function until(tab: Page, expression: string): Promise<void> {
  // The page's policy forbids `waitForFunction`. An evaluation that fails because the page changes counts as false.
  const isTrue = () => tab.evaluate(`globalThis.client !== undefined && Boolean(${expression})`).catch(() => false);
  await expect.poll(isTrue, { interval: 20 }).toBe(true);
}

/** Returns the types of the module's events so far. */
export const events = (tab: Page): Promise<string[]> => tab.evaluate<string[]>('events');
export const hasEvent = (tab: Page, type: string): Promise<void> => until(tab, `events.includes('${type}')`);

/** Signs in with the identity provider's form, and returns when the frontend has the session. */
export async function signIn(tab: Page, person = 'alice', options = {}): Promise<void> {
  await tab.evaluate(`client.signIn(${JSON.stringify(options)})`);
  await tab.fill('input[name=username]', `${person}@example.com`);
  await tab.fill('input[name=password]', person);
  await tab.press('input[name=password]', 'Enter');
  await tab.waitForURL((url) => url.pathname === '/app');
  await until(tab, 'client.session');
}
