// Starts a form service in a separate process, and collects its log.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { noticeStream } from './captured-log.ts';
import { endWithThisProcess } from './child-processes.ts';

const main = join(import.meta.dirname, '../../src/forms/main.ts');
const crashPoints = import.meta.resolve('./crash-points.ts');

export interface Launched {
  child: ChildProcess;
  /** Resolves with the signal that ended the process, or with its exit code. */
  ended: Promise<NodeJS.Signals | number | null>;
  hasEnded(): boolean;
  logText(): string;
  /** Sends SIGKILL and waits for the process to end. */
  kill(): Promise<void>;
}

/** Starts a form service that can be killed between two statements (crash-points.ts). */
export function launchForms(env: Record<string, string>): Launched {
  const child = spawn(process.execPath, [`--import=${crashPoints}`, main], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      LOG_LEVEL: 'trace',
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...env,
    },
  });
  endWithThisProcess(child);
  let text = '';
  noticeStream(child.stdout);
  noticeStream(child.stderr);
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  const ended = once(child, 'exit').then(([code, signal]) => (signal ?? code) as NodeJS.Signals | number | null);
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return {
    child,
    ended,
    hasEnded,
    logText: () => text,
    async kill() {
      if (!hasEnded()) child.kill('SIGKILL');
      await ended;
    },
  };
}
