// The main loop of the worker processes of limited-workers.ts. A worker runs one job after another, and ends when its
// parent ends. A worker has no network and no write access. Its environment has only the path of the compile cache.
import { getHeapStatistics } from 'node:v8';
import vm from 'node:vm';

export interface JobTools<A> {
  /** Sends a partial result. The caller gets the last partial result if the job later exceeds its limits. */
  report(partial: A): void;
  /**
   * Runs `work`, and interrupts it after `milliseconds`, even in a loop or a regular expression. Returns undefined if
   * `work` was interrupted.
   */
  within<T>(milliseconds: number, work: () => T): T | undefined;
}

/**
 * `failed` holds the message of an error that the job threw. `used-up` precedes the result of a job after which the
 * worker must be replaced.
 */
export type WorkerMessage<A> =
  | 'ready'
  | 'used-up'
  | { partial: A }
  | { done: A }
  | { failed: string }
  | { exceeded: 'time' };

export interface WorkerJob<Q> {
  question: Q;
  limitMs: number;
}

/** Handles jobs until the parent disconnects. */
export function serveJobs<Q, A>(handle: (question: Q, tools: JobTools<A>) => A): void {
  // Outside a worker process, this module does nothing.
  if (!process.send) return;
  const send = (message: WorkerMessage<A>) => void process.send?.(message);
  // The limit of the heap does not count buffers and the memory of native objects.
  const largestRss = process.memoryUsage.rss() + getHeapStatistics().heap_size_limit;
  const conclude = (message: WorkerMessage<A>) => {
    if (process.memoryUsage.rss() > largestRss) send('used-up');
    send(message);
  };
  const tools: JobTools<A> = { report: (partial) => send({ partial }), within };
  process.on('disconnect', () => process.exit());
  process.on('message', ({ question, limitMs }: WorkerJob<Q>) => {
    try {
      const outcome = within(limitMs, () => ({ done: handle(question, tools) }));
      conclude(outcome ?? { exceeded: 'time' });
    } catch (error) {
      conclude({ failed: error instanceof Error ? error.message : String(error) });
    }
  });
  send('ready');
}

/**
 * Runs `work` with a time limit. If `work` reaches the limit, but the machine is so busy that `work` got less CPU time
 * than half of the limit, repeats `work` with four times the limit.
 */
function within<T>(milliseconds: number, work: () => T): T | undefined {
  const before = process.cpuUsage();
  const first = runWithin(milliseconds, work);
  if (first) return first.value;
  const { user, system } = process.cpuUsage(before);
  const wasStarved = (user + system) / 1_000 < milliseconds / 2;
  return wasStarved ? runWithin(milliseconds * 4, work)?.value : undefined;
}

const slot: { work: (() => unknown) | undefined } = { work: undefined };
const callWork = new vm.Script('work()');
const context = vm.createContext(slot);

function runWithin<T>(milliseconds: number, work: () => T): { value: T } | undefined {
  const outer = slot.work;
  slot.work = () => ({ value: work() });
  try {
    return callWork.runInContext(context, { timeout: milliseconds }) as { value: T };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined;
    throw error;
  } finally {
    slot.work = outer;
  }
}
