// A Redis that stores its data in files and is restarted when its process ends, as in a cluster. An adversary ends the
// process with the command SHUTDOWN. If the system has /dev/shm, the files are in memory: on the disk of a busy
// machine, one write took 2.5 s, and requests with a session got 503 in that time. Files in memory survive, because
// only the process ends and not the machine.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '../../../dev/ports.ts';
import { endWithThisProcess } from '../../support/child-processes.ts';
import { missingRedis } from '../../support/redis.ts';

export interface RestartingRedis {
  port: number;
  kill(): void;
  untilListening(): Promise<void>;
  close(): Promise<void>;
}

const memory = '/dev/shm';

export async function startRestartingRedis({ appendfsync = 'everysec' } = {}): Promise<RestartingRedis> {
  const folder = await mkdtemp(join(existsSync(memory) ? memory : tmpdir(), 'formgate-adversary-redis-'));
  const port = await findFreePort();
  let stopping = false;
  let child: ChildProcess | undefined;
  const kill = () => void child?.kill('SIGKILL');

  async function keepRunning(): Promise<void> {
    const options = { port, bind: '127.0.0.1', dir: folder, save: '', appendonly: 'yes', appendfsync };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
    while (!stopping) {
      const started = spawn('redis-server', args, { stdio: 'ignore' });
      endWithThisProcess(started);
      child = started;
      await new Promise((done) => started.once('exit', done).once('error', done));
      await delay(500);
    }
  }

  const running = keepRunning();
  await untilListening(port);
  return {
    port,
    kill,
    untilListening: () => untilListening(port),
    async close() {
      stopping = true;
      kill();
      await running;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function untilListening(port: number): Promise<void> {
  for (let waited = 0; waited < 60_000; waited += 50) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (isOpen) return;
    await delay(50);
  }
  throw new Error(missingRedis);
}
