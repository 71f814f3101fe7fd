// Measures how much memory the largest registers need, in a process of the form service with the flags of a deployment.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { testServiceSecret } from '../../../test/support/access.ts';
import { endWithThisProcess, failedStart, keepErrors } from '../../../test/support/child-processes.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';

let platform: TestPlatform;
let database: TestDatabase;
let child: ChildProcess;
let ports: { port: number; metricsPort: number };
let token: string;

beforeAll(async () => {
  [platform, database] = await Promise.all([startTestPlatform(), createTestDatabase()]);
  const { access } = platform;
  token = await roleToken(access, { 'form-service': ['form-admin'] }, { realm: 'demo' });
  const main = join(import.meta.dirname, '..', 'main.ts');
  // Every Formgate process runs with these flags; see docs/decisions/0013-flags-for-memory.md.
  child = spawn(process.execPath, ['--max-semi-space-size=8', '--heap-growing-percent=30', main], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      HOST: '127.0.0.1',
      PORT: '0',
      METRICS_PORT: '0',
      DATABASE_URL: database.url,
      DIRECTORY_URL: platform.directoryUrl,
      ACCESS_SERVICE_URL: access.url,
      CLIENT_SECRET: testServiceSecret(access.urns.service('form-service')),
      CODE_KEY: 'another key of tests with more than 32 characters',
    },
  });
  endWithThisProcess(child);
  ports = await listening(child);
});

afterAll(async () => {
  if (child?.exitCode === null) {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await platform?.close();
  await database?.drop();
});

async function listening(child: ChildProcess): Promise<typeof ports> {
  const { stdout } = child;
  if (!stdout) throw new Error('the child has no output');
  const errors = keepErrors(child);
  const exit = once(child, 'exit');
  let output = '';
  for await (const line of createInterface({ input: stdout })) {
    output += `${line}\n`;
    const { msg, port, metricsPort } = JSON.parse(line);
    if (msg !== 'listening') continue;
    stdout.resume();
    return { port, metricsPort };
  }
  await exit;
  throw failedStart('form service', child, output, errors());
}

/** Returns the resident memory of the form service's process in MiB. */
async function residentMemory(): Promise<number> {
  const { text } = await call(`http://127.0.0.1:${ports.metricsPort}/metrics`);
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1]) / 1_048_576;
}

const request = (method: string, path: string, body?: unknown) =>
  call(`http://127.0.0.1:${ports.port}/form/v1/registers${path}`, { method, token, body });

it('10,000 entries of objects: create, read and patch take at most 64 MiB more', async () => {
  for (let index = 0; index < 10; index += 1) {
    await request('POST', '', { name: `small ${index}`, description: '', entries: [{ label: 'x' }] });
    await request('GET', '?top=100');
  }
  const entries = Array.from({ length: 10_000 }, (_, index) => ({
    label: `Municipality of the north number ${index}`,
    value: index,
    code: `MUN-${index}`,
  }));
  const before = await residentMemory();
  const after: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    const name = `large-${round}`;
    expect((await request('POST', '', { name, description: '', entries })).status).toBe(201);
    after.push(await residentMemory());
    expect((await request('GET', `/${name}`)).status).toBe(200);
    after.push(await residentMemory());
    expect((await request('PATCH', `/${name}`, { entries: entries.toReversed() })).status).toBe(200);
    after.push(await residentMemory());
  }
  expect(Math.max(...after) - before).toBeLessThanOrEqual(64);
});
