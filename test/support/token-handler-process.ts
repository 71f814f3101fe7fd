// A token handler in a process of its own, started as production starts it: for tests and benches that measure a process,
// or kill one.

import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '../../dev/listen.ts';

export interface TokenHandlerProcess {
  url: string;
  metricsUrl: string;
  child: ChildProcess;
  /** Of the process as a whole, as Linux counts it. */
  residentBytes(): Promise<number>;
  /** Of the heap, what is in use once its garbage is collected. */
  liveHeapBytes(): Promise<number>;
  metric(name: string): Promise<number>;
  /** SIGTERM, and waits for its end. */
  stop(): Promise<void>;
}

export interface TokenHandlerProcessOptions {
  /** All of its configuration but its ports. */
  env: Record<string, string>;
  /** Where its log goes; nowhere without it. */
  logFile?: string;
  nodeFlags?: string[];
}

const project = join(import.meta.dirname, '../..');
// Decision 0013
export const productionFlags = ['--max-semi-space-size=8', '--heap-growing-percent=30'];
// Node itself has no way to be told from outside to collect its garbage.
export const collector = ['--expose-gc', '--import', 'data:text/javascript,process.on("SIGUSR2",()=>globalThis.gc())'];

export async function startTokenHandlerProcess(options: TokenHandlerProcessOptions): Promise<TokenHandlerProcess> {
  const [port, metricsPort] = [await findFreePort(), await findFreePort()];
  const metricsUrl = `http://127.0.0.1:${metricsPort}`;
  const child = await launch(options, { PORT: String(port), METRICS_PORT: String(metricsPort) });
  await untilReady(metricsUrl, child);

  async function metric(name: string): Promise<number> {
    const text = await (await fetch(`${metricsUrl}/metrics`)).text();
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
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function launch({ env, logFile, nodeFlags = [] }: TokenHandlerProcessOptions, ports: Record<string, string>) {
  const log = logFile === undefined ? undefined : await open(logFile, 'a');
  const main = join(project, 'src/token-handler/main.ts');
  const inherited = { PATH: process.env.PATH, NODE_COMPILE_CACHE: join(project, 'node_modules/.cache/formgate') };
  const child = spawn(process.execPath, [...productionFlags, ...collector, ...nodeFlags, main], {
    env: { ...inherited, ...env, ...ports },
    stdio: ['ignore', log?.fd ?? 'ignore', 'inherit'],
  });
  await log?.close();
  // A worker that is ended in the middle of a test leaves no process behind.
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  return child;
}

async function untilReady(metricsUrl: string, child: ChildProcess): Promise<void> {
  for (let waited = 0; waited < 60_000; waited += 100) {
    if (child.exitCode !== null) throw new Error(`the token handler ended with ${child.exitCode}`);
    const answer = await fetch(`${metricsUrl}/readyz`).catch(() => undefined);
    if (answer?.ok) return;
    await delay(100);
  }
  throw new Error('the token handler is not ready');
}
