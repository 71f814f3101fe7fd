// Runs code that tenants write (schemas, patterns, templates) in a few child processes with limits on time and memory.
// No tenant can occupy all processes. A job that exceeds its limits can end only its own worker. Workers start on
// demand and end when idle.
import { Problem } from '../http/problem.ts';
import { FairQueue, type Requester } from '../limits/fair-queue.ts';
import type { Metrics } from '../operations/metrics.ts';
import { createWorkerMetrics } from './worker-metrics.ts';
import { type JobReply, WorkerProcess } from './worker-process.ts';

export interface LimitedWorkersOptions {
  /** Path of the module that calls `serveJobs`. */
  script: string;
  /** Name of this group of workers. It is a label of the metrics. */
  name: string;
  metrics: Metrics;
  /** Detail of the problem `busy`. */
  busy: string;
  /** Maximum number of worker processes. One tenant can use all but one of them. */
  workers?: number;
  /** Milliseconds that a job may run. */
  jobMs?: number;
  /** Milliseconds that a job may wait before it runs. */
  waitMs?: number;
  memoryMb?: number;
  /** Milliseconds after which an idle worker ends. */
  idleMs?: number;
}

const waiting = { total: 400, perTenant: 200, perMember: 200 };

export class LimitedWorkers<Q, A> {
  readonly #options: Required<LimitedWorkersOptions>;
  readonly #queue: FairQueue;
  readonly #idle = new Map<WorkerProcess<Q, A>, NodeJS.Timeout>();
  readonly #all = new Set<WorkerProcess<Q, A>>();
  readonly #metrics: ReturnType<typeof createWorkerMetrics>;
  #isClosed = false;

  constructor(given: LimitedWorkersOptions) {
    const options = { workers: 2, jobMs: 2_000, waitMs: 3_000, memoryMb: 64, idleMs: 60_000, ...given };
    this.#options = options;
    this.#metrics = createWorkerMetrics(options.metrics);
    const perTenant = Math.max(1, options.workers - 1);
    this.#queue = new FairQueue({
      slots: { total: options.workers, perTenant, perMember: perTenant },
      waiting,
      waitMs: options.waitMs,
      detail: options.busy,
      retryAfterSeconds: Math.ceil((options.waitMs + options.jobMs) / 1_000),
      onRefused: () => this.#metrics.jobs.inc({ worker: options.name, outcome: 'refused' }),
    });
  }

  /**
   * Runs a job and returns its outcome. `prepare` returns the job. It is called when a worker is free, so that a caller
   * can read the data of the job only then, and it can throw to refuse the job. Throws Problem `busy` if the queue is
   * full or the wait is too long, and `unavailable` if no worker can be started, or if `close` has ended the worker.
   */
  async run(requester: Requester, prepare: () => Q | Promise<Q>): Promise<JobReply<A>> {
    const { name } = this.#options;
    const asked = performance.now();
    const release = await this.#queue.take(requester);
    this.#metrics.wait.observe({ worker: name }, (performance.now() - asked) / 1_000);
    try {
      const reply = await this.#runWithRetry(await prepare());
      this.#metrics.jobs.inc({ worker: name, outcome: outcomeOf(reply) });
      return reply;
    } finally {
      release();
    }
  }

  /** Ends all workers. Running jobs are refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#idle.values()) clearTimeout(timer);
    await Promise.all([...this.#all].map((worker) => worker.end()));
  }

  /**
   * Retries a job once in a new worker if its worker ran out of memory after running other jobs, because those jobs may
   * have used the memory.
   */
  async #runWithRetry(question: Q): Promise<JobReply<A>> {
    const [reply, jobs] = await this.#runOnce(question, this.#takeIdle());
    const mayBeInnocent = 'exceeded' in reply && reply.exceeded === 'memory' && jobs > 1;
    if (!mayBeInnocent) return reply;
    // Another idle worker may also be full. It makes room for the new one.
    const idle = this.#takeIdle();
    if (idle) this.#remove(idle);
    return (await this.#runOnce(question))[0];
  }

  async #runOnce(question: Q, idle?: WorkerProcess<Q, A>): Promise<[reply: JobReply<A>, jobs: number]> {
    const worker = idle ?? (await this.#start());
    const reply = await worker.run(question);
    if (worker.isAlive && !worker.isUsedUp && !this.#isClosed) this.#keepIdle(worker);
    else {
      this.#remove(worker);
      this.#metrics.kills.inc({ worker: this.#options.name });
    }
    // `close` has ended the worker, so the job may not have exceeded a limit.
    if ('exceeded' in reply) this.#refuseIfClosed();
    return [reply, worker.jobs];
  }

  #remove(worker: WorkerProcess<Q, A>): void {
    this.#all.delete(worker);
    void worker.end();
  }

  #takeIdle(): WorkerProcess<Q, A> | undefined {
    for (const [worker, timer] of [...this.#idle].reverse()) {
      clearTimeout(timer);
      this.#idle.delete(worker);
      if (worker.isAlive) return worker;
      this.#all.delete(worker);
    }
    return undefined;
  }

  async #start(): Promise<WorkerProcess<Q, A>> {
    this.#refuseIfClosed();
    const { script, memoryMb, jobMs } = this.#options;
    const worker = await WorkerProcess.start<Q, A>({ script, memoryMb, jobMs }).catch((cause) => {
      throw new Problem('unavailable', this.#options.busy, { cause, headers: { 'Retry-After': '5' } });
    });
    if (this.#isClosed) await worker.end();
    this.#refuseIfClosed();
    this.#all.add(worker);
    return worker;
  }

  #refuseIfClosed(): void {
    if (this.#isClosed) throw new Problem('unavailable', 'The service is shutting down.');
  }

  #keepIdle(worker: WorkerProcess<Q, A>): void {
    const retire = () => {
      this.#idle.delete(worker);
      this.#remove(worker);
    };
    this.#idle.set(worker, setTimeout(retire, this.#options.idleMs).unref());
  }
}

function outcomeOf(reply: JobReply<unknown>): string {
  if ('done' in reply) return 'done';
  return 'failed' in reply ? 'failed' : reply.exceeded;
}
