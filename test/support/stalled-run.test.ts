import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

it('a run with a worker that computes for ever, and one that waits outside a test, says where they are and ends', async () => {
  const args = [
    ...[join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--no-color'],
    ...['--config', 'test/fixtures/stalled-run/vitest.config.ts'],
  ];
  const options = { cwd: root, timeout: 100_000, env: { ...process.env, VITEST: undefined } };
  const run = promisify(execFile)(process.execPath, args, options);
  const { code, stdout, stderr } = await run.then(
    () => expect.unreachable(),
    (error) => error,
  );
  expect({ code, stderr }).toMatchObject({ code: 1 });
  expect(stderr).toMatch(/Nothing has happened for 20 s/);
  expect(stderr).toMatch(/at computeForEver \S*computes\.test\.ts:\d+/);
  for (const file of ['computes', 'waits']) expect(stderr).toMatch(new RegExp(`  ${file}\\.test\\.ts, for \\d+ s`));
  expect(stderr).toMatch(/Worker \d+ holds \S*TCPServerWrap/);
  expect(stdout).toMatch(/✓ ends\.test\.ts/);
});
