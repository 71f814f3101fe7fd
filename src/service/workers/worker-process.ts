// Starts and controls one child process, which runs jobs with limits on time and memory. The child is a process and not
// a thread, because V8 aborts the whole process when an allocation exceeds the limits of a thread. The child has no
// network, and its environment contains only the path of the compile cache. The child can read only the program, and
// can neither write files nor start processes.
import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { constants, setPriority } from 'node:os';
import { dirname } from 'node:path';
import { programFile, programFolder } from '../program-files.ts';
import type { WorkerJob, WorkerMessage } from './limited-worker.ts';

export interface WorkerProcessOptions {
  /** Path of the module that calls `serveJobs`. */
  script: string;
  /** Limit of the worker's heap in megabytes. */
  memoryMb: number;
  /** Milliseconds that one job may run. On a busy machine, the worker repeats a slow job with four times this limit. */
  jobMs: number;
}

/** The limit that a job exceeded. `partial` is the last partial result. */
export type Exceeded<A> = { exceeded: 'time' | 'memory'; partial: A | undefined };
export type JobReply<A> = { done: A } | { failed: string } | Exceeded<A>;

/** Milliseconds that the start of a worker may take, even on a busy machine. */
const startMs = 20_000;
/** Milliseconds that a worker may take, after the time limit of a job, to report that the job exceeded it. */
const graceMs = 500;

export class WorkerProcess<Q, A> {
  readonly #options: WorkerProcessOptions;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #settle: ((reply: JobReply<A> | 'ready') => void) | undefined;
  #partial: A | undefined;
  #isKilled = false;
  /** The child's resident memory when it was ready, in KiB. */
  #startKb = 0;
  /** Number of jobs that this worker has started. */
  jobs = 0;
  isAlive = true;
  /** True if the last job has left so much memory in use that the worker must not run another job. */
  isUsedUp = false;

  private constructor(options: WorkerProcessOptions) {
    this.#options = options;
    this.#child = fork(options.script, [], {
      execArgv: [
        `--max-old-space-size=${options.memoryMb}`,
        '--max-semi-space-size=4',
        '--permission',
        `--allow-fs-read=${programFile('*')}`,
      ],
      env: compileCache(),
      cwd: programFolder,
      serialization: 'advanced',
      // Output is ignored: when V8 runs out of memory, it writes a report that is not a JSON line.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // The child must not keep this process alive.
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.on('message', (message: WorkerMessage<A>) => this.#receive(message));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    const end = () => {
      this.isAlive = false;
      this.#settleWith(this.#endReply());
      resolve();
    };
    this.#child.on('exit', end);
    // This event means that the child could not be started, or that a message could not be sent.
    this.#child.on('error', () => {
      if (this.#child.pid === undefined) end();
      else this.#kill();
    });
  }

  /** Starts a worker. Throws an Error if the worker does not start. */
  static async start<Q, A>(options: WorkerProcessOptions): Promise<WorkerProcess<Q, A>> {
    const worker = new WorkerProcess<Q, A>(options);
    const { promise, resolve } = Promise.withResolvers<JobReply<A> | 'ready'>();
    if ((await worker.#waitFor(promise, resolve, startMs)) === 'ready') return worker;
    await worker.end();
    throw new Error(`The worker ${options.script} did not start.`);
  }

  /** Runs a job. Resolves when the job is done or has exceeded a limit, or when the worker has ended. */
  async run(question: Q): Promise<JobReply<A>> {
    this.jobs += 1;
    this.#partial = undefined;
    // If the worker has already ended, no event would end the wait.
    if (!this.isAlive) return this.#endReply();
    const { jobMs } = this.#options;
    const { promise, resolve } = Promise.withResolvers<JobReply<A> | 'ready'>();
    // On a busy machine, the worker repeats the job with four times the limit.
    const reply = this.#waitFor(promise, resolve, jobMs * 5 + graceMs);
    const job: WorkerJob<Q> = { question, limitMs: jobMs };
    this.#child.send(job, () => undefined);
    const watch = setInterval(() => this.#endIfTooLarge(), 100);
    return (await reply.finally(() => clearInterval(watch))) as JobReply<A>;
  }

  async end(): Promise<void> {
    this.#kill();
    await this.#ended;
  }

  async #waitFor<T>(promise: Promise<T>, settle: (reply: JobReply<A> | 'ready') => void, limit: number): Promise<T> {
    this.#settle = settle;
    const timer = setTimeout(() => this.#kill(), limit);
    return promise.finally(() => clearTimeout(timer));
  }

  #receive(message: WorkerMessage<A>): void {
    if (message === 'ready') {
      yieldToRequests(this.#child);
      this.#startKb = residentKb(this.#child);
      this.#settleWith(message);
    } else if (message === 'used-up') this.isUsedUp = true;
    else if ('partial' in message) this.#partial = message.partial;
    else if ('exceeded' in message) this.#settleWith({ exceeded: message.exceeded, partial: this.#partial });
    else this.#settleWith(message);
  }

  #settleWith(reply: JobReply<A> | 'ready'): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(reply);
  }

  /**
   * Ends a child that has grown by three times the limit of its heap: that limit does not count buffers and native
   * objects. Does nothing on systems other than Linux.
   */
  #endIfTooLarge(): void {
    const largest = this.#startKb + 3 * this.#options.memoryMb * 1_024;
    if (residentKb(this.#child) > largest) this.#child.kill('SIGKILL');
  }

  /** Returns the reply to a job whose worker has ended. */
  #endReply(): Exceeded<A> {
    return { exceeded: this.#isKilled ? 'time' : 'memory', partial: this.#partial };
  }

  #kill(): void {
    this.#isKilled = true;
    this.#child.kill('SIGKILL');
  }
}

/**
 * Passes the compile cache to the child, because compiled code halves the CPU time of a start. Node keeps the cache in
 * a folder for its version, below the configured folder, so the child gets the parent of that folder.
 */
function compileCache(): Record<string, string> {
  const folder = getCompileCacheDir();
  return folder ? { NODE_COMPILE_CACHE: dirname(folder), NODE_COMPILE_CACHE_READONLY: '1' } : {};
}

/** Returns the resident memory of the child in KiB. 0 if the system does not tell it, or the child has ended. */
function residentKb({ pid }: ChildProcess): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/**
 * Lowers the priority of tenants' code, so that it gets about a tenth of a busy processor and requests come first. Call
 * this function after the child has started: the start runs only Formgate's own code, and requests wait for it.
 */
function yieldToRequests({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The child has already ended.
  }
}
