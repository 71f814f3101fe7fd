// Tests the console in a browser against `npm start`: the paths that people take most. all/console-pages.test.ts tests
// these paths and all others.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { testPaths } from './console-paths.ts';
import { useConsole } from './console-suite.ts';

testPaths(useConsole({ isSignedIn: false }));

it('the first load has less than 60 KB of compressed scripts, and the editor is not among them', () => {
  const folder = join(import.meta.dirname, '../../web/dist/console/assets');
  const files = readdirSync(folder).filter((name) => name.endsWith('.js.gz'));
  const first = files.filter((name) => name.startsWith('index-'));
  expect(first).toHaveLength(1);
  expect(statSync(join(folder, first[0] ?? '')).size).toBeLessThan(60_000);
  expect(files.some((name) => name.startsWith('definition-editor-'))).toBe(true);
});
