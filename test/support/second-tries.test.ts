import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

it('a run lists the tests that passed at their second try only', async () => {
  const args = [
    ...[join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--no-color'],
    ...['--config', 'test/fixtures/second-tries/vitest.config.ts'],
  ];
  const { stderr } = await promisify(execFile)(process.execPath, args, {
    ...{ cwd: root, timeout: 100_000, env: { ...process.env, VITEST: undefined } },
  });
  expect(stderr).toContain('1 tests needed a second try:\n  tries.test.ts > passes at its second try\n    expected');
});
