// Runs one replica of a service as a process. As in a cluster, only environment variables configure it. If the process
// exits unexpectedly, the exit is recorded with the last error message, and the replica is restarted.
import { type ChildProcess, spawn } from 'node:child_process';
import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { endWithThisProcess } from '../../support/child-processes.ts';
import { collector, productionFlags } from '../../support/token-handler-process.ts';

export type Service = 'forms' | 'token-handler' | 'platform-server';

export interface ReplicaPlace {
  service: Service;
  /** Name of the replica, such as `forms-0`. */
  name: string;
  port: number;
  metricsPort: number;
}

export interface Exit {
  replica: string;
  /** Exit code or signal with which the process ended. */
  how: string;
  /** The message of the last fatal line in the replica's log; of the last line if no line is fatal. */
  lastWords: string;
}

export interface Footprint {
  descriptors: number;
  residentBytes: number;
  /** Heap and external memory in use after a garbage collection. */
  liveBytes: number;
}

export interface Replica {
  place: ReplicaPlace;
  logFile: string;
  /** Returns the process id; undefined while the replica is not running. */
  pid(): number | undefined;
  /** True if the replica is ready and has completed its registrations at the platform. */
  prepared(): Promise<boolean>;
  footprint(): Promise<Footprint>;
  /**
   * Replaces the process as a rollout does: sends SIGTERM, and then starts a new process with `changes` in its
   * environment.
   */
  restart(changes?: Record<string, string>): Promise<void>;
  /** Sends SIGTERM, and SIGKILL after 8 s. */
  stop(): Promise<void>;
}

export interface ReplicaOptions {
  place: ReplicaPlace;
  env: Record<string, string>;
  logFile: string;
  onExit(exit: Exit): void;
}

const project = join(import.meta.dirname, '../../..');

export function startReplica(options: ReplicaOptions): Replica {
  const { place, logFile } = options;
  const metricsUrl = `http://127.0.0.1:${place.metricsPort}`;
  const env = { ...options.env };
  let stopping = false;
  let child: ChildProcess | undefined;
  let replaced: ChildProcess | undefined;

  async function keepRunning(): Promise<void> {
    while (!stopping) {
      child = await launch({ ...options, env });
      // `stop` was called while the process was being launched.
      if (stopping) child.kill('SIGKILL');
      const how = await ended(child);
      if (stopping) return;
      if (child !== replaced) options.onExit({ replica: place.name, how, lastWords: await lastWords(logFile) });
      await delay(300);
    }
  }

  async function terminate(running: ChildProcess): Promise<void> {
    running.kill('SIGTERM');
    const patience = setTimeout(() => running.kill('SIGKILL'), 8_000);
    await ended(running);
    clearTimeout(patience);
  }

  const running = keepRunning();
  const pid = () => (child && isRunning(child) ? child.pid : undefined);
  return {
    ...{ place, logFile, pid },
    async prepared() {
      const read = (path: string) => fetch(`${metricsUrl}${path}`, { signal: AbortSignal.timeout(2_000) });
      const [ready, metrics] = await Promise.all([read('/readyz'), read('/metrics')]).catch(() => []);
      if (!ready?.ok || !metrics?.ok) return false;
      return !/^formgate_platform_registration_pending\{.*\} 1$/m.test(await metrics.text());
    },
    async footprint() {
      const id = pid();
      if (id === undefined) throw new Error(`${place.name} does not run`);
      child?.kill('SIGUSR2');
      await delay(300);
      const [descriptors, status, metrics] = await Promise.all([
        readdir(`/proc/${id}/fd`),
        readFile(`/proc/${id}/status`, 'utf8'),
        fetch(`${metricsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) }).then((response) => response.text()),
      ]);
      const metric = (name: string) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)?.[1] ?? Number.NaN);
      return {
        descriptors: descriptors.length,
        residentBytes: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1_024,
        liveBytes: metric('nodejs_heap_size_used_bytes') + metric('nodejs_external_memory_bytes'),
      };
    },
    async restart(changes = {}) {
      Object.assign(env, changes);
      replaced = child;
      if (replaced && isRunning(replaced)) await terminate(replaced);
    },
    async stop() {
      stopping = true;
      if (child && isRunning(child)) await terminate(child);
      await running;
    },
  };
}

const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

async function launch({ place, env, logFile }: ReplicaOptions): Promise<ChildProcess> {
  const log = await open(logFile, 'a');
  const main = join(project, 'src', place.service, 'main.ts');
  const own = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: join(project, 'node_modules/.cache/formgate'),
    HOST: '127.0.0.1',
    PORT: String(place.port),
    METRICS_PORT: String(place.metricsPort),
  };
  const child = spawn(process.execPath, [...productionFlags, ...collector, main], {
    env: { ...own, ...env },
    stdio: ['ignore', log.fd, log.fd],
  });
  await log.close();
  endWithThisProcess(child);
  return child;
}

async function ended(child: ChildProcess): Promise<string> {
  if (isRunning(child)) await new Promise((done) => child.once('exit', done).once('error', done));
  return child.signalCode ?? `exit code ${child.exitCode}`;
}

async function lastWords(file: string): Promise<string> {
  const lines = (await readFile(file, 'utf8').catch(() => '')).trim().split('\n');
  const fatal = lines.findLast((line) => line.includes('"level":60')) ?? lines.at(-1) ?? '';
  try {
    const { msg, err }: { msg?: string; err?: { message?: string } } = JSON.parse(fatal);
    return [msg, err?.message].filter(Boolean).join(': ');
  } catch {
    return fatal.slice(0, 300);
  }
}
