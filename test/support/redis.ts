// Starts the system's redis-server on a free port. It writes to disk only if a test asks for it.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { findFreePort } from '../../dev/ports.ts';
import { endWithThisProcess, failedStart, hasEnded } from './child-processes.ts';

export interface TestRedis {
  url: string;
  port: number;
  /** Sends one command on the test's own connection. */
  command(...args: string[]): Promise<unknown>;
  /** Returns all keys and values as Redis writes them to disk, uncompressed. */
  dump(): Promise<string>;
  /** Freezes the process: connections stay open, but get no response. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

export interface TestRedisOptions {
  /** Settings of redis.conf, as arguments: `['--maxmemory', '1mb']`. */
  args?: string[];
  mode?: 'server' | 'sentinel';
  port?: number;
  username?: string;
  password?: string;
}

export const missingRedis =
  'redis-server is not installed: these tests need it. `apt-get install redis-server` brings it, as .ci/run does.';

export async function startTestRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'formgate-redis-'));
  const port = options.port ?? (await findFreePort());
  if (options.mode === 'sentinel') await writeFile(join(folder, 'sentinel.conf'), '');
  const child = spawn('redis-server', argumentsOf(options, port, folder), { stdio: ['ignore', 'pipe', 'pipe'] });
  endWithThisProcess(child);
  await untilReady(child, port);
  const client = createClient({
    socket: { host: '127.0.0.1', port },
    RESP: 2,
    maintNotifications: 'disabled',
    ...(options.username !== undefined && { username: options.username }),
    ...(options.password !== undefined && { password: options.password }),
  });
  client.on('error', () => undefined);
  await client.connect();
  const command = (...args: string[]) => client.sendCommand(args);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    command,
    async dump() {
      await command('SAVE');
      return readFile(join(folder, 'dump.rdb'), 'latin1');
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async close() {
      client.destroy();
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      if (!hasEnded(child)) await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function argumentsOf(options: TestRedisOptions, port: number, folder: string): string[] {
  const { args = [], password, username, mode } = options;
  const common = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--daemonize', 'no'];
  // Sentinel needs a configuration file, because it writes its state there.
  if (mode === 'sentinel') return [join(folder, 'sentinel.conf'), '--sentinel', ...common, ...args];
  const quiet = ['--save', '', '--appendonly', 'no', '--rdbcompression', 'no'];
  const secret = password !== undefined && username === undefined ? ['--requirepass', password] : [];
  return [...common, ...quiet, ...secret, ...args];
}

function untilReady(child: ChildProcess, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = '';
    const read = (chunk: Buffer) => {
      output += chunk.toString();
      if (/Ready to accept connections|Sentinel ID is/.test(output)) resolve();
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'ENOENT' ? new Error(missingRedis) : error);
    });
    child.once('exit', () => reject(failedStart(`redis-server on port ${port}`, child, output)));
  });
}
