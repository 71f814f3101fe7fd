// Tests what the image's entry point writes when a command cannot be loaded, and that a signal ends a command.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { listenOnLoopback } from '../../test/support/loopback-server.ts';

const entry = join(import.meta.dirname, 'main.ts');
const withoutPino = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== 'pino') return next(specifier, context);
      throw Object.assign(new Error(process.env.MESSAGE), { code: 'ERR_MODULE_NOT_FOUND' });
    },
  });
`)}`;

/** Runs a command, for which loading the logger fails with this message, and returns what it writes. */
async function runWithoutPino(message: string): Promise<unknown> {
  const env = { ...process.env, MESSAGE: message };
  const run = promisify(execFile)(process.execPath, [`--import=${withoutPino}`, entry, 'forms'], { env });
  const failed = await run.then(
    () => undefined,
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  expect([failed?.code, failed?.stderr]).toEqual([1, '']);
  return JSON.parse(failed?.stdout ?? '');
}

it('writes one JSON line and exits 1 if a module of the command is missing, even the logger', async () => {
  expect(await runWithoutPino("Cannot find package 'pino'")).toEqual({
    level: 'fatal',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    name: 'forms',
    err: {
      type: 'Error',
      message: "Cannot find package 'pino'",
      code: 'ERR_MODULE_NOT_FOUND',
      stack: expect.stringMatching(/^ {4}at /),
    },
    msg: 'cannot start',
  });
});

it('masks the password of a URL in the message of an error with which a command ends', async () => {
  const written = await runWithoutPino('mismatch with the URL redis://:canary@redis:6379 passed');
  expect(written).toMatchObject({ err: { message: 'mismatch with the URL redis://[redacted]:6379 passed' } });
  expect(JSON.stringify(written)).not.toContain('canary');
});

it.each(['config --check --process platform-server --time-limit PT1H', 'keycloak-setup --user admin --tenant demo'])(
  'a command that waits for another system ends on SIGTERM, even as process 1 of a container: %s',
  async (command) => {
    const folder = mkdtempSync(join(tmpdir(), 'formgate-command-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    // Accepts connections and never responds.
    const silent = createServer((socket) => socket.on('error', () => undefined).resume());
    onTestFinished(() => void silent.close());
    const address = `127.0.0.1:${await listenOnLoopback(silent)}`;
    const isSetup = command.startsWith('keycloak-setup');
    const more = isSetup ? ['--url', `http://${address}`, '--output', join(folder, 'secrets.yaml')] : [];
    const child = spawn(process.execPath, [entry, ...command.split(' '), ...more], {
      env: { ...process.env, DATABASE_URL: `postgres://forms@${address}/forms`, KEYCLOAK_PASSWORD: 'password' },
    });
    const exited = once(child, 'exit');
    await once(silent, 'connection');
    child.kill('SIGTERM');
    // Without a handler, the process would have no exit code, and Linux would ignore a signal to process 1.
    expect(await exited).toEqual([143, null]);
  },
);
