// Tests which modules a process loads when it starts. A child process imports the `start.ts` of each process.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);

it.each(['token-handler', 'forms'])(
  '%s starts without loading a second HTTP client, which would take a twentieth of the start time',
  async (name) => {
    const start = join(import.meta.dirname, '../..', name, 'start.ts');
    const script = `await import(${JSON.stringify(start)}); console.log(process.moduleLoadList.join())`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script]);
    expect(stdout).toContain('NativeModule _http_server');
    expect(stdout).not.toContain('internal/deps/undici/undici');
  },
);
