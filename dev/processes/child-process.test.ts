// Tests that child processes are restarted when they exit, stop on request, and end when their parent process has
// ended.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findFreePort } from '../ports.ts';
import { type SupervisedChild, superviseChild } from './child-process.ts';

let directory: string;
let main: string;
let logFile: string;
let url: string;
let child: SupervisedChild | undefined;
let deaths: string[];
let port: number;

// The server responds with its process id and environment. It has a worker thread whose standard input ends
// immediately, which must not end the process.
const server = `import { createServer } from 'node:http';
const { Worker } = process.getBuiltinModule('node:worker_threads');
new Worker('0', { eval: true });
createServer((req, res) => res.end(JSON.stringify({ pid: process.pid, env: process.env }))).listen(Number(process.env.PORT), '127.0.0.1');
console.log('started');`;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'formgate-child-'));
  main = join(directory, 'main.mjs');
  logFile = join(directory, 'log');
  await writeFile(main, server);
  port = await findFreePort();
  url = `http://127.0.0.1:${port}/`;
  deaths = [];
});
afterEach(async () => {
  await child?.stop();
  await rm(directory, { recursive: true });
});

const start = () => {
  const onDeath = (reason: string) => deaths.push(reason);
  child = superviseChild({ name: 'server', main, env: { PORT: String(port) }, logFile, readyUrl: url, onDeath });
  return child;
};
const ask = async (): Promise<{ pid: number; env: Record<string, string> }> => (await fetch(url)).json() as never;
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 60_000; !(await holds()); await delay(20)) {
    if (Date.now() > deadline) throw new Error('It did not become true within 10 s.');
  }
}

it('a child gets its own environment, and from its parent’s only the variables that programs need', async () => {
  process.env.DATABASE_URL_FILE = '/secret';
  await start().ready;
  delete process.env.DATABASE_URL_FILE;
  const { env } = await ask();
  expect(env.PORT).toBe(String(port));
  expect(env.DATABASE_URL_FILE).toBeUndefined();
  expect(env.PATH).toBeTruthy();
  expect(await readFile(logFile, 'utf8')).toContain('started');
});

it('a child that is killed is reported and restarted', async () => {
  await start().ready;
  const { pid } = await ask();
  process.kill(pid, 'SIGKILL');
  await until(async () => (await child?.isReady()) === true && (await ask()).pid !== pid);
  expect(deaths).toEqual(['SIGKILL']);
});

it('a child that cannot start is an error with its last log line, and is not restarted', async () => {
  await writeFile(main, "throw new Error('DATABASE_URL is missing')");
  await expect(start().ready).rejects.toThrow('The server did not start: Error: DATABASE_URL is missing');
  const line = '{"problems":["A: is required","B: is required"],"msg":"invalid configuration"}';
  await writeFile(main, `console.log('${line}'); process.exit(1)`);
  await expect(start().ready).rejects.toThrow(/: invalid configuration: A: is required; B: is required/);
  expect(deaths).toEqual([]);
});

it('a stopped child has ended and is not restarted', async () => {
  await start().ready;
  const { pid } = await ask();
  await child?.stop();
  expect(isAlive(pid)).toBe(false);
  expect(deaths).toEqual([]);
});

it('a child ends when its parent is killed', async () => {
  const module = JSON.stringify(join(import.meta.dirname, 'child-process.ts'));
  const options = JSON.stringify({ name: 'server', main, env: { PORT: String(port) }, logFile, readyUrl: url });
  const script = `const { superviseChild } = await import(${module});
    await superviseChild({ ...${options}, onDeath() {} }).ready;
    console.log('ready');`;
  const parent: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (parent.stdout) await once(parent.stdout, 'data');
  const { pid } = await ask();
  parent.kill('SIGKILL');
  await until(() => !isAlive(pid));
});
