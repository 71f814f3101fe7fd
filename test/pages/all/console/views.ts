// Tests every page of the console in every view. With FORMGATE_WRITE_SCREENS set (`npm run screens`), also takes the
// pictures of docs/screens.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { consolePages, consoleViews, fileOfConsole } from '../../../screens/console-screens.ts';
import { screensFolder } from '../../../screens/screen-index.ts';
import { smallPng } from '../../../screens/small-png.ts';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults, settled } from '../../console-world.ts';
import { viewsOfRun } from '../../selection.ts';

const isWriting = process.env.FORMGATE_WRITE_SCREENS !== undefined;

export function testViews(suite: ConsoleSuite): void {
  describe.each(viewsOfRun(consoleViews))('in the view $name', (view) => {
    it('has no violations, fits the screen, and keeps its header at 200 % text', { timeout: 240_000 }, async () => {
      const { colorScheme, viewport } = view;
      const own = await suite.world.context({
        colorScheme,
        viewport,
        storageState: await suite.context.storageState(),
      });
      onTestFinished(() => own.close());
      const page = await own.newPage();
      for (const { name, path, prepare } of consolePages) {
        await page.goto(`${suite.world.url}/console/demo${path.replace('{form}', suite.formId)}`);
        await settled(page);
        await prepare?.(page);
        expect(await findFaults(page), name).toEqual([]);
        await keep(page, fileOfConsole(name, view));
        await page.evaluate('document.documentElement.style.fontSize = "200%"');
        expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${name} at 200 %`).toBe(
          true,
        );
      }
    });
  });

  it('can be used by keyboard alone: the skip link, the areas, and an action', async () => {
    const page = await suite.open('/forms');
    const focused = () => page.evaluate<string>('document.activeElement.textContent.trim()');
    await page.keyboard.press('Tab');
    await expect.poll(() => focused()).toBe('Skip to content');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('main');
    const order: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      await page.keyboard.press('Shift+Tab');
      order.push(await focused());
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
    }
    expect(order).toEqual(['Operations', 'Sessions', 'Clients']);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Clients', level: 1 }).waitFor();
    await expect.poll(() => focused()).toBe('Clients');
  });
}

async function keep(page: Page, name: string): Promise<void> {
  if (!isWriting) return;
  const [width = 0, whole = 0] = await page.evaluate<number[]>('[innerWidth, document.documentElement.scrollHeight]');
  // The picture shows only the top of a long page, such as the editor.
  const clip = { x: 0, y: 0, width, height: Math.min(whole, 1_500) };
  const picture = await page.screenshot({ fullPage: true, clip, animations: 'disabled', caret: 'hide' });
  writeFileSync(join(screensFolder, name), smallPng(picture));
}
