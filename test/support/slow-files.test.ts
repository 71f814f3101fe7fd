// Tests which runs include the slow test files.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { slowFiles, withoutSlowFiles } from './slow-files.ts';

it('the slow files exist, and each is listed once', () => {
  expect(slowFiles.filter((file) => !existsSync(join(import.meta.dirname, '../..', file)))).toEqual([]);
  expect(new Set(slowFiles).size).toBe(slowFiles.length);
});

it.each([
  ['npm test', [], {}, slowFiles.length],
  ['with reporters', ['--reporter=default', '--outputFile.json=x.json'], {}, slowFiles.length],
  ['with all files', ['--reporter=default'], { TEST_SIZES: 'all' }, 0],
  ['with full sizes', ['--reporter=default'], { TEST_SIZES: 'full' }, 0],
  ['that names a file', ['test/faults/crash.test.ts'], {}, 0],
  ['that names a folder', ['src/forms', '--reporter=default'], {}, 0],
  ['that names a test', ['-t', 'drafts'], {}, 0],
])('a run %s leaves out %j', (_name, args, env, count) => {
  expect(withoutSlowFiles(args, env)).toHaveLength(count);
});
