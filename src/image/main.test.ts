// Tests what the image's entry point writes when a command cannot be loaded.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const entry = join(import.meta.dirname, 'main.ts');
const withoutPino = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== 'pino') return next(specifier, context);
      throw Object.assign(new Error("Cannot find package 'pino'"), { code: 'ERR_MODULE_NOT_FOUND' });
    },
  });
`)}`;

it('writes one JSON line and exits 1 if a module of the command is missing, even the logger', async () => {
  const run = promisify(execFile)(process.execPath, [`--import=${withoutPino}`, entry, 'forms']);
  const failed = await run.then(
    () => undefined,
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  expect([failed?.code, failed?.stderr]).toEqual([1, '']);
  expect(JSON.parse(failed?.stdout ?? '')).toEqual({
    level: 'fatal',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    name: 'forms',
    err: { type: 'Error', message: "Cannot find package 'pino'", code: 'ERR_MODULE_NOT_FOUND' },
    msg: 'cannot start',
  });
});
