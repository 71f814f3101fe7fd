// Tests the start page in a real browser.
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { accessibilityViolations, launchChromium } from '../test/support/chromium.ts';
import { homePage } from './home-page.ts';
import { renderPage } from './pages/layout.ts';

let browser: Awaited<ReturnType<typeof launchChromium>>;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser?.close());

it.each([
  ['light', 1200, true],
  ['dark', 1200, false],
  ['light', 360, false],
] as const)(
  'the start page has no accessibility violation that axe finds, in %s at %i pixels, ready or not',
  async (colorScheme, width, isReady) => {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
    onTestFinished(() => context.close());
    const page = await context.newPage();
    const parts = { postgres: true, 'form service': isReady };
    await page.setContent(renderPage(homePage({ publicUrl: 'http://localhost:8080', parts })));
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    expect(await page.locator('a').allTextContents()).toContain('API of the token handler');
  },
);

it.each([
  ['http://localhost:8080', '<code>npm run demo</code>'],
  ['http://localhost:9000', '<code>PORT=9000 npm run demo</code>'],
])('the start page of %s shows the command of the demo with its port', (publicUrl, command) => {
  expect(renderPage(homePage({ publicUrl, parts: {} }))).toContain(command);
});
