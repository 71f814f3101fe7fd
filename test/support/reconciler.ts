// Runs the reconciler as a separate process, as a cluster does, or in this process with a clock that the test can move.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { configSchema } from '../../reconciler/config.ts';
import type { RunResult } from '../../reconciler/run.ts';
import { type ReconcilerOptions, reconcile } from '../../reconciler/start.ts';
import { parseConfig } from '../../src/service/operations/config.ts';
import { testServiceSecret } from './access.ts';
import { captureLog, noticeStream } from './captured-log.ts';
import type { TestPlatform } from './platform.ts';

/** Returns the environment that the reconciler needs. */
export function reconcilerEnv({ access, directoryUrl }: TestPlatform, databaseUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    DIRECTORY_URL: directoryUrl,
    ACCESS_SERVICE_URL: access.url,
    CLIENT_SECRET: testServiceSecret(access.urns.service('form-service')),
    URN_PREFIX: access.urns.prefix,
  };
}

/** Runs the reconciler once in this process. */
export function reconcileHere(
  env: Record<string, string>,
  {
    arguments: args,
    ...changes
  }: Partial<Omit<ReconcilerOptions, 'arguments'>> & { arguments?: Partial<ReconcilerOptions['arguments']> } = {},
): Promise<RunResult> {
  return reconcile({
    config: parseConfig(configSchema, env),
    arguments: { only: undefined, dryRun: false, allowPrune: false, ...args },
    log: captureLog().log,
    env,
    signal: new AbortController().signal,
    // The clock of a test differs from that of Postgres.
    clockTolerance: changes.clock && Number.POSITIVE_INFINITY,
    ...changes,
  });
}

export interface ReconcilerProcess {
  kill(signal: NodeJS.Signals): void;
  /** Returns the output of the process so far. */
  output(): string;
  ended: Promise<{
    code: number | null;
    signal: NodeJS.Signals | null;
    lines: Record<string, unknown>[];
    stdout: string;
    stderr: string;
  }>;
}

const main = join(import.meta.dirname, '../../reconciler/main.ts');

export function spawnReconciler(env: Record<string, string>, args: string[] = []): ReconcilerProcess {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
  });
  let written = '';
  child.stdout.on('data', (chunk: Buffer) => {
    written += chunk.toString();
  });
  noticeStream(child.stdout);
  noticeStream(child.stderr);
  const stderr = text(child.stderr);
  const exit = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  );
  return {
    kill: (signal) => void child.kill(signal),
    output: () => written,
    ended: exit.then(async (how) => ({ ...how, lines: jsonLines(written), stdout: written, stderr: await stderr })),
  };
}

function jsonLines(output: string): Record<string, unknown>[] {
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}
