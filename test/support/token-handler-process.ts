// A token handler in a separate process, started as in production, for tests and benches that measure or kill the
// process.

import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '../../dev/ports.ts';
import { noticeFile, noticeOutput, noticeStream } from './captured-log.ts';
import { endWithThisProcess, failedStart, hasEnded, keepErrors } from './child-processes.ts';

export interface TokenHandlerProcess {
  url: string;
  metricsUrl: string;
  child: ChildProcess;
  /** Resident memory of the process, as Linux counts it. */
  residentBytes(): Promise<number>;
  /** Bytes of the heap in use after a garbage collection. */
  liveHeapBytes(): Promise<number>;
  metric(name: string): Promise<number>;
  /** Sends SIGTERM and waits for the process to end. */
  stop(): Promise<void>;
}

export interface TokenHandlerProcessOptions {
  /** The whole configuration of the process, except for its ports. */
  env: Record<string, string>;
  /**
   * File that receives the log. Tests check its content when the process stops. Without a file, tests check each line
   * when it is written, and benches discard the log.
   */
  logFile?: string;
  nodeFlags?: string[];
  /** Folder of another checkout, whose token handler is started instead. */
  checkout?: string;
}

const project = join(import.meta.dirname, '../..');
// The Node flags of production (decision 0013).
export const productionFlags = ['--max-semi-space-size=8', '--heap-growing-percent=30'];
// Runs the garbage collector on SIGUSR2, because Node offers no way to trigger it from outside.
export const collector = ['--expose-gc', '--import', 'data:text/javascript,process.on("SIGUSR2",()=>globalThis.gc())'];

export async function startTokenHandlerProcess(options: TokenHandlerProcessOptions): Promise<TokenHandlerProcess> {
  const [port, metricsPort] = [await findFreePort(), await findFreePort()];
  const metricsUrl = `http://127.0.0.1:${metricsPort}`;
  const child = await launch(options, { PORT: String(port), METRICS_PORT: String(metricsPort) });
  await untilReady(metricsUrl, child);

  async function metric(name: string): Promise<number> {
    const text = await (await fetch(`${metricsUrl}/metrics`)).text();
    for (const sample of text.split('\n')) if (!sample.startsWith('#')) noticeOutput(sample);
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
    if (!line) throw new Error(`there is no metric ${name}`);
    return Number(line.split(' ')[1]);
  }
  return {
    url: `http://127.0.0.1:${port}`,
    metricsUrl,
    child,
    metric,
    async residentBytes() {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1_024;
    },
    async liveHeapBytes() {
      child.kill('SIGUSR2');
      await delay(300);
      return metric('nodejs_heap_size_used_bytes');
    },
    async stop() {
      if (hasEnded(child)) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
      if (options.logFile !== undefined && process.env.VITEST) await noticeFile(options.logFile);
    },
  };
}

/** Returns the environment variables that every process of a bench has. */
export function inheritedEnvironment(): Record<string, string> {
  return { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: join(project, 'node_modules/.cache/formgate') };
}

async function launch(
  { env, logFile, nodeFlags = [], checkout = project }: TokenHandlerProcessOptions,
  ports: Record<string, string>,
) {
  const log = logFile === undefined ? undefined : await open(logFile, 'a');
  const main = join(checkout, 'src/token-handler/main.ts');
  const child = spawn(process.execPath, [...productionFlags, ...collector, ...nodeFlags, main], {
    env: { ...inheritedEnvironment(), ...env, ...ports },
    stdio: ['ignore', log?.fd ?? (process.env.VITEST ? 'pipe' : 'ignore'), 'pipe'],
  });
  if (child.stdout) noticeStream(child.stdout);
  await log?.close();
  endWithThisProcess(child);
  return child;
}

async function untilReady(metricsUrl: string, child: ChildProcess): Promise<void> {
  const errors = keepErrors(child);
  let output = '';
  const read = (chunk: Buffer) => {
    output = `${output}${chunk}`.slice(-10_000);
  };
  child.stdout?.on('data', read);
  const isReady = () =>
    fetch(`${metricsUrl}/readyz`, { signal: AbortSignal.timeout(5_000) }).then(
      ({ ok }) => ok,
      () => false,
    );
  for (const deadline = performance.now() + 60_000; !(await isReady()); await delay(100))
    if (hasEnded(child) || performance.now() > deadline) throw failedStart('token handler', child, output, errors());
  child.stdout?.off('data', read);
}
