// The side of a limited worker that runs what tenants wrote: it takes one job after another over the IPC channel and
// ends when its parent is gone. limited-workers.ts starts it without environment, network or write access.
import vm from 'node:vm';

export interface JobTools<A> {
  /** Sends an answer that counts if the job exceeds its limits from here on. */
  report(partial: A): void;
  /** Runs the work, undefined if it takes longer. It interrupts loops and regular expressions. */
  within<T>(milliseconds: number, work: () => T): T | undefined;
}

/** `failed` is the message of an error that the job threw; `exceeded` says that it took longer than its limit. */
export type WorkerMessage<A> = 'ready' | { partial: A } | { done: A } | { failed: string } | { exceeded: 'time' };

export interface WorkerJob<Q> {
  question: Q;
  limitMs: number;
}

/** Answers jobs with `handle` until the parent disconnects. */
export function serveJobs<Q, A>(handle: (question: Q, tools: JobTools<A>) => A): void {
  // Imported elsewhere, a worker's module does nothing.
  if (!process.send) return;
  const send = (message: WorkerMessage<A>) => void process.send?.(message);
  const tools: JobTools<A> = { report: (partial) => send({ partial }), within };
  process.on('disconnect', () => process.exit());
  process.on('message', ({ question, limitMs }: WorkerJob<Q>) => {
    try {
      const answer = within(limitMs, () => ({ done: handle(question, tools) }));
      send(answer ?? { exceeded: 'time' });
    } catch (error) {
      send({ failed: error instanceof Error ? error.message : String(error) });
    }
  });
  send('ready');
}

/** On a busy machine, work that had the processor for less than half of its time is repeated with four times the limit. */
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
