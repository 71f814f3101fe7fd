// Tests the pages of failed sign-ins and logouts in a real browser, as a real token handler serves them. With
// FORMGATE_WRITE_SCREENS set (`npm run screens`), also takes the pictures of docs/screens.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { RunningService } from '../../src/service/operations/serve.ts';
import { type PageName, pageNames } from '../../src/token-handler/pages/catalogue.ts';
import { defaultTexts } from '../../src/token-handler/pages/texts.ts';
import { accessibilityViolations, launchChromium } from '../support/chromium.ts';
import { type FailedSignIns, startFailedSignIns } from '../support/failed-sign-ins.ts';
import { cookieName } from '../support/sessions.ts';
import { fileOf, operatorExample, screenIndex, screensFolder, type View, views } from './screen-index.ts';
import { smallPng } from './small-png.ts';

/** Smooths the edges of text in grey instead of colours, which makes the pictures smaller. */
const greyText = ['--disable-lcd-text'];

let failed: FailedSignIns;
let operated: RunningService;
let browser: Browser;
beforeAll(async () => {
  [failed, browser] = await Promise.all([startFailedSignIns(), launchChromium(greyText)]);
  operated = await failed.world.handler.startReplica({ env: { SIGN_IN_PAGES: JSON.stringify(operatorExample) } });
});
afterAll(async () => {
  await browser?.close();
  await operated?.close();
  await failed?.close();
  if (isWriting) writeFileSync(join(screensFolder, 'README.md'), screenIndex());
});

/** Fixes everything that could make the pictures of two runs differ. */
const fixed = {
  reducedMotion: 'reduce',
  deviceScaleFactor: 1,
  timezoneId: 'UTC',
  extraHTTPHeaders: { 'X-Request-Id': '0d6b2c6e-51a4-4f0e-9f5e-7c1e3f0c8e2d' },
} as const;

async function openPage(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ ...fixed, ...options });
  onTestFinished(() => context.close());
  await context.addCookies([{ name: cookieName, value: failed.cookie, url: failed.world.site }]);
  return context.newPage();
}

async function keep(page: Page, name: string): Promise<void> {
  if (!isWriting) return;
  const picture = await page.screenshot({ fullPage: true, animations: 'disabled', caret: 'hide' });
  writeFileSync(join(screensFolder, name), smallPng(picture));
}

const fits = (page: Page) => page.evaluate('document.documentElement.scrollWidth <= innerWidth');
const expired = (site: string) => failed.world.clientUrl('callback', { state: 'x', code: 'x' }, { site });

const isWriting = process.env.FORMGATE_WRITE_SCREENS !== undefined;
/** The two pages with the longest texts. The pages differ only in their texts. */
const longest: readonly PageName[] = ['client-not-registered', 'sign-out-failed'];

describe.each(views)('the page of a failed sign-in or logout, $name', (view: View) => {
  const { colorScheme, locale, viewport } = view;
  const shown = isWriting || view.name === 'light' ? pageNames : longest;

  it('has no accessibility violation that axe finds, fits the screen, and has its language and title', async () => {
    // Bypass the pages' content security policy, because it allows no scripts, and axe is a script.
    const page = await openPage({ colorScheme, locale, viewport, bypassCSP: true });
    const language = locale === 'fr-CA' ? 'fr' : 'en';
    for (const name of shown)
      await failed.during(name, async (url) => {
        await page.goto(url);
        await keep(page, fileOf(name, view));
        expect([await page.title(), await page.locator('h1').textContent()]).toEqual([
          defaultTexts[name][language].title,
          defaultTexts[name][language].title,
        ]);
        expect(await page.locator('html').getAttribute('lang')).toBe(language);
        expect(await fits(page), name).toBe(true);
        await page.locator('summary').click();
        expect(await fits(page), name).toBe(true);
        expect(await accessibilityViolations(page), name).toEqual([]);
      });
  });

  it('has the operator’s texts, logo and colours without violations', async () => {
    const page = await openPage({ colorScheme, locale, viewport, bypassCSP: true });
    await page.goto(expired(operated.url));
    await keep(page, fileOf('operator', view));
    expect(await page.evaluate('document.querySelector("header img").naturalWidth')).toBeGreaterThan(0);
    const ground = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    expect(ground).toBe(colorScheme === 'light' ? 'rgb(251, 243, 246)' : 'rgb(28, 18, 22)');
    expect(await fits(page)).toBe(true);
    expect(await accessibilityViolations(page)).toEqual([]);
  });
});

it('loads only itself, under its own policy, without a warning of the browser', async () => {
  const page = await openPage();
  const complaints: string[] = [];
  const requested: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => requested.push(request.url()));
  await page.goto(expired(operated.url), { waitUntil: 'networkidle' });
  expect(await page.evaluate('getComputedStyle(document.querySelector("main")).borderTopColor')).toBe(
    'rgb(155, 28, 77)',
  );
  expect(await page.evaluate('document.querySelector("header img").naturalWidth')).toBeGreaterThan(0);
  // Chromium reports the status of a page as an error.
  expect(complaints.filter((text) => !text.includes('status of 400'))).toEqual([]);
  expect(requested.filter((url) => !url.startsWith('data:'))).toEqual([expired(operated.url)]);
});

it('reads and tabs in order: the link, then the other language and its link', async () => {
  const page = await openPage();
  await page.goto(expired(failed.world.site));
  const focused = () => page.evaluate('document.activeElement.textContent');
  const order: unknown[] = [];
  for (const key of ['Tab', 'Tab', 'Enter', 'Tab']) {
    await page.keyboard.press(key);
    order.push(await focused());
  }
  expect(order).toEqual(['Go to the start page', 'En français', 'En français', 'Aller à la page d’accueil']);
  const outline = 'getComputedStyle(document.activeElement).outlineStyle';
  expect(await page.evaluate(outline)).toBe('solid');
});

it('can be used with text at 200 %, and with forced colours', async () => {
  const page = await openPage({ viewport: { width: 640, height: 480 }, forcedColors: 'active', bypassCSP: true });
  await page.goto(expired(operated.url));
  await page.evaluate('document.documentElement.style.fontSize = "200%"');
  expect(await fits(page)).toBe(true);
  expect(await page.evaluate('getComputedStyle(document.querySelector(".action a")).borderTopWidth')).toBe('2px');
  expect(await accessibilityViolations(page)).toEqual([]);
});

it('starts the sign-in again when the link of an expired one is followed', async () => {
  const { site } = failed.world;
  const page = await openPage();
  const states: string[] = [];
  page.on('request', (request) => states.push(new URL(request.url()).searchParams.get('state') ?? ''));
  await page.goto(failed.world.authUrl());
  const form = page.url();
  const state = states.find((text) => text !== '') ?? '';
  const { origin, pathname } = new URL(failed.world.handler.platform.access.issuer('demo'));
  expect(form.startsWith(origin + pathname.split('/realms/')[0])).toBe(true);
  await page.goto(failed.world.clientUrl('callback', { state, code: 'x', iss: `${site}/another` }));
  expect(await page.locator('h1').textContent()).toBe(defaultTexts['sign-in-expired'].en.title);
  await page.getByRole('link', { name: 'Sign in again' }).first().click();
  expect(new URL(page.url()).origin).toBe(new URL(form).origin);
  expect(await page.locator('input[type=password]').count()).toBe(1);
});
