// A platform server in a separate process, for tests that kill it or cut its connections.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { noticeStream } from './captured-log.ts';
import { endWithThisProcess, failedStart, hasEnded, keepErrors } from './child-processes.ts';
import { behaviourOfRun } from './platform-behaviour.ts';

export interface PlatformProcess {
  child: ChildProcess;
  url: string;
  metricsUrl: string;
  /** Returns what the process has logged so far. */
  output(): string;
  /** Sends SIGKILL and waits for the process to end. */
  kill(): Promise<void>;
}

const main = join(import.meta.dirname, '../../src/platform-server/main.ts');
const keepCompiled = import.meta.resolve('./keep-compiled.ts');

/**
 * Starts a platform server. `env` must contain the addresses of the database, the identity provider and the mail
 * server.
 */
export async function startPlatformProcess(env: Record<string, string>): Promise<PlatformProcess> {
  const child = spawn(process.execPath, [`--import=${keepCompiled}`, main], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      HOST: '127.0.0.1',
      PORT: '0',
      METRICS_PORT: '0',
      MAIL_FROM: 'forms@platform.example.org',
      CODE_KEY: 'a key of tests with more than 32 characters',
      WORKER_STALE_AFTER: 'PT2S',
      ...behaviourOfRun,
      ...env,
    },
  });
  endWithThisProcess(child);
  let output = '';
  noticeStream(child.stdout);
  const errors = keepErrors(child);
  const { promise, resolve, reject } = Promise.withResolvers<PlatformProcess>();
  child.once('close', () => reject(failedStart('platform server', child, output, errors())));
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    const [, port, metricsPort] = /"port":(\d+),"metricsPort":(\d+)/.exec(output) ?? [];
    if (!port) return;
    resolve({
      child,
      url: `http://127.0.0.1:${port}`,
      metricsUrl: `http://127.0.0.1:${metricsPort}`,
      output: () => output,
      kill: () => kill(child),
    });
  });
  return promise;
}

async function kill(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
