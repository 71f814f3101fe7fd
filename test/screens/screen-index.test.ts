// Tests that docs/screens has a picture of every page in every view, and that the pages have not changed since the
// pictures were taken. Needs no browser.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { pageNames } from '../../src/token-handler/pages/catalogue.ts';
import { consolePages, consoleViews, fileOfConsole } from './console-screens.ts';
import { fileOfOther, otherScreens, otherViews } from './other-screens.ts';
import { fileOf, screenIndex, screensFolder, views } from './screen-index.ts';

const read = (name: string) => readFileSync(join(screensFolder, name));

it('docs/screens has a picture of every page in every view, and nothing else (npm run screens takes them)', () => {
  const expected = [...pageNames, 'operator' as const].flatMap((page) => views.map((view) => fileOf(page, view)));
  const ofConsole = consolePages.flatMap(({ name }) => consoleViews.map((view) => fileOfConsole(name, view)));
  // The index of the applicant's pages is written with their pictures.
  const index = read('applicant.md').toString('utf8');
  const ofApplicants = new Set([...index.matchAll(/\((apply-[\w-]+\.png)\)/g)].map(([, file = '']) => file));
  expect(ofApplicants.size).toBeGreaterThanOrEqual(24);
  const others = otherScreens.flatMap(({ name }) => otherViews.map((view) => fileOfOther(name, view)));
  const all = ['README.md', 'applicant.md', 'other.md', ...expected, ...ofConsole, ...ofApplicants, ...others];
  expect(readdirSync(screensFolder).sort()).toEqual(all.sort());
});

it('every picture is a PNG as wide as its view, and all of them together are small', () => {
  let total = 0;
  for (const page of [...pageNames, 'operator' as const])
    for (const view of views) {
      const file = fileOf(page, view);
      const bytes = read(file);
      // PNG specification, sections 5.2 and 11.2.1: the signature, then IHDR with width and height.
      expect(bytes.subarray(0, 8).toString('latin1'), file).toBe('\x89PNG\r\n\x1a\n');
      expect(bytes.readUInt32BE(16), file).toBe(view.viewport.width);
      expect(bytes.readUInt32BE(20), file).toBeGreaterThanOrEqual(view.viewport.height);
      total += statSync(join(screensFolder, file)).size;
    }
  expect(total).toBeLessThan(2_500_000);
});

it('the pages have not changed since the pictures were taken (npm run screens takes new ones)', () => {
  expect(read('README.md').toString('utf8')).toBe(screenIndex());
});
