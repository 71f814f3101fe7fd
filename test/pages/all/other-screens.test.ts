// Tests all pages except the applicant's pages and the areas of the console: axe finds no violation, and each page fits
// the screen. `npm run screens` also takes a picture of each page.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  fileOfOther,
  type OtherScreen,
  otherIndex,
  otherScreens,
  otherViews,
  shown,
} from '../../screens/other-screens.ts';
import { screensFolder } from '../../screens/screen-index.ts';
import { smallPng } from '../../screens/small-png.ts';
import { startTestApply, type TestApply } from '../../support/apply.ts';
import { launchChromium } from '../../support/chromium.ts';
import { until } from '../../support/until.ts';
import { type WarnedDraft, warnedDraft } from '../../support/warned-draft.ts';
import { faultsOf } from '../applicant-world.ts';
import { type ConsoleWorld, startConsoleWorld } from '../console-world.ts';
import { viewsOfRun } from '../selection.ts';

const isWriting = process.env.FORMGATE_WRITE_SCREENS !== undefined;
const index = join(screensFolder, 'other.md');
/** Maximum height of a picture in pixels. A picture of a long page, such as an API document, shows only the top. */
const tallest = 1_500;

let world: ConsoleWorld;
let apply: TestApply;
let draft: WarnedDraft;
let browser: Browser;
beforeAll(async () => {
  [world, apply, browser] = await Promise.all([
    startConsoleWorld(),
    startTestApply(),
    launchChromium(['--disable-lcd-text']),
  ]);
  draft = await warnedDraft(apply);
  const id = await world.form({ businessName: 'Northern Lights Bakery' });
  await world.api('demo-intake', 'POST', `/form/v1/forms/${id}`, { operation: 'send-code' });
  await until('the mail', async () => (await (await fetch(`${world.url}/mailbox/messages`)).text()) !== '[]');
});
afterAll(async () => {
  await browser?.close();
  await Promise.all([world?.close(), apply?.close()]);
});

const addressOf = ({ path, link }: OtherScreen) => (link ? draft[link] : world.url + path);

describe.each(viewsOfRun(otherViews))(
  'no violation that axe finds, and nothing wider than the screen, $name',
  (view) => {
    it.each(otherScreens)('$title', async (screen) => {
      const { colorScheme, viewport } = view;
      const context = await browser.newContext({
        ...{ colorScheme, viewport, bypassCSP: true, reducedMotion: 'reduce', locale: 'en-CA', timezoneId: 'UTC' },
      });
      onTestFinished(() => context.close());
      const page = await context.newPage();
      await page.goto(addressOf(screen));
      await shown(page);
      await screen.prepare?.(page);
      const file = join(screensFolder, fileOfOther(screen.name, view));
      if (isWriting) writeFileSync(file, await pictureOf(page));
      expect(existsSync(file)).toBe(true);
      if (screen.checkedIn === undefined) expect(await faultsOf(page)).toEqual([]);
    });
  },
);

async function pictureOf(page: Page): Promise<Buffer> {
  const [width = 0, whole = 0] = await page.evaluate<number[]>('[innerWidth, document.documentElement.scrollHeight]');
  const clip = { x: 0, y: 0, width, height: Math.min(whole, tallest) };
  return smallPng(await page.screenshot({ fullPage: true, clip, animations: 'disabled', caret: 'hide' }));
}

it('the page of the pictures names all of them', () => {
  if (isWriting) writeFileSync(index, otherIndex());
  expect(readFileSync(index, 'utf8')).toBe(otherIndex());
});
