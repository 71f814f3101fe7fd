// A contender is a process that a bench puts under load. Its figures count only the CPU seconds of this process. They
// leave out the load generator and Postgres, which run on the same machine.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface Contender {
  name: string;
  /** CPU seconds of the process since its start. */
  cpuSeconds(): Promise<number>;
  residentBytes(): Promise<number>;
  close(): Promise<void>;
}

export interface Usage {
  cpuSeconds: number;
  residentBytes: number;
}

/** Returns the CPU and memory usage of this process, for a forked contender to report. */
export function ownUsage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuSeconds: (user + system) / 1_000_000, residentBytes: process.memoryUsage.rss() };
}

export interface Forked extends Contender {
  /** Sends a message and waits for the reply. Only one message may be pending. */
  ask<T>(question: unknown): Promise<T>;
}

/** Node flags that make a contender's process exit when the bench's process has ended. */
const followBench = ['--import', 'data:text/javascript,process.on("disconnect",()=>process.exit())'];

/** Forks `file` of this folder, and sends its settings as the first message. `flags` are flags of Node. */
export async function forkContender(
  name: string,
  file: string,
  settings: unknown,
  flags: string[] = [],
): Promise<Forked> {
  const child = fork(join(import.meta.dirname, file), {
    serialization: 'advanced',
    execArgv: [...followBench, ...flags],
  });
  const ask = <T>(question: unknown) => exchange<T>(child, question);
  await ask({ settings });
  return {
    name,
    ask,
    cpuSeconds: async () => (await ask<Usage>('usage')).cpuSeconds,
    residentBytes: async () => (await ask<Usage>('usage')).residentBytes,
    close: async () => {
      child.kill();
      await once(child, 'exit');
    },
  };
}

function exchange<T>(child: ChildProcess, question: unknown): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const died = (code: number | null) => reject(new Error(`a contender ended with ${code}`));
  child.once('exit', died);
  child.once('message', (message) => {
    child.off('exit', died);
    resolve(message as T);
  });
  child.send(question as object);
  return promise;
}

/** A service of Formgate, measured by its Prometheus metrics. */
export function serviceContender(name: string, metricsUrl: string): Contender {
  const metric = async (metricName: string) => {
    const text = await (await fetch(`${metricsUrl}/metrics`)).text();
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${metricName} `));
    if (!line) throw new Error(`${name} has no metric ${metricName}`);
    return Number(line.split(' ')[1]);
  };
  return {
    name,
    cpuSeconds: () => metric('process_cpu_seconds_total'),
    residentBytes: () => metric('process_resident_memory_bytes'),
    close: async () => undefined,
  };
}
