// Starts the deliveries of claimed rows: so many side by side, no faster than the throttle, and a few at a time, so that
// the requests of the same process come in between. Rows are claimed ahead of it, so that no delivery waits for the
// database. It gives back, untried, what it cannot start well within its claim.
import type { Clock } from '../../service/clock.ts';
import type { Gate } from './gate.ts';
import type { ClaimedRow } from './store.ts';
import type { Throttle } from './throttle.ts';

export interface Dispatch {
  add(rows: readonly ClaimedRow[]): void;
  /** Rows that wait or are under way. */
  size(): number;
  /** Gives back what waits: the service is down. */
  clear(): void;
  /** Gives back what waits, and resolves when what is under way has ended. */
  stop(): Promise<void>;
}

export interface DispatchOptions {
  /** Deliveries under way at once, at most. */
  capacity: number;
  /** Milliseconds of a claim; a delivery begins in its first half. */
  lease: number;
  throttle: Throttle;
  gate: Gate;
  clock: Clock;
  /** Does not reject. */
  deliver(row: ClaimedRow): Promise<void>;
  giveBack(row: ClaimedRow): void;
}

/** Deliveries that start before requests have their turn. */
const group = 4;

export function createDispatch(options: DispatchOptions): Dispatch {
  const { capacity, lease, throttle, gate, clock } = options;
  const running = new Set<Promise<void>>();
  let waiting: ClaimedRow[] = [];
  let isPaused = false;
  let stopped = false;

  function startNext(): void {
    const row = waiting.shift();
    if (!row) return;
    if (row.claimedUntil.getTime() - clock().getTime() < lease / 2) {
      options.giveBack(row);
      return;
    }
    const delivery = options.deliver(row).finally(() => {
      running.delete(delivery);
      pump();
    });
    running.add(delivery);
  }

  function pause(begin: (resume: () => void) => void): void {
    isPaused = true;
    begin(() => {
      isPaused = false;
      pump();
    });
  }

  function pump(): void {
    for (let started = 0; waiting.length > 0 && running.size < capacity && !isPaused; started += 1) {
      if (started === group) pause(setImmediate);
      else if (throttle.take()) startNext();
      else pause((resume) => setTimeout(resume, throttle.waitMs()));
    }
  }

  function clear(): void {
    const left = waiting;
    waiting = [];
    for (const row of left) options.giveBack(row);
  }

  /** The service may have gone down while the claim was made: then as many as its gate lets pass. */
  function passing(): number {
    const state = gate.state();
    if (stopped || state === 'shut') return 0;
    return state === 'open' ? Number.POSITIVE_INFINITY : 1 - running.size;
  }

  return {
    add(rows) {
      const some = Math.max(passing(), 0);
      for (const row of rows.slice(some)) options.giveBack(row);
      waiting.push(...rows.slice(0, some));
      pump();
    },
    size: () => waiting.length + running.size,
    clear,
    async stop() {
      stopped = true;
      clear();
      await Promise.all(running);
    },
  };
}
