// Tests that importing a file has no effects. A process loads every module of src and reconciler except main.ts. The
// process must print nothing, keep no handle open and end by itself. The modules of dev are left out, because a library
// that they use prints a warning.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { listFiles } from './source-files.ts';

const root = join(import.meta.dirname, '../..');
const leftOut = /\/main\.ts$|\.test\.ts$/;

test('importing a file prints nothing, opens nothing and changes nothing in the environment', async () => {
  const modules = listFiles(root, ['src', 'reconciler'], '.ts').filter(({ path }) => !leftOut.test(path));
  const script = `
    const before = JSON.stringify(process.env);
    const listeners = process.eventNames().length;
    for (const path of ${JSON.stringify(modules.map(({ path }) => join(root, path)))}) await import(path);
    if (JSON.stringify(process.env) !== before) console.log('the environment changed');
    if (process.eventNames().length !== listeners) console.log('process listeners:', process.eventNames());
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: root,
    env: { PATH: process.env.PATH, NODE_NO_WARNINGS: '1' },
    timeout: 60_000,
  });
  const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)));
  const output = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(output.join('')).toBe('');
  expect(await ended).toBe(0);
});
