// One stream of deliveries to one service: claims rows while there is room, delivers them side by side, and records the
// outcomes many at a time. No transaction is open while a request runs. It never drops a row: what is not recorded is
// claimed again when its claim has run out.
import { performance } from 'node:perf_hooks';
import type { Clock } from '../../service/clock.ts';
import type { Deliver } from './delivery.ts';
import { DeadlineError, type FailureReport } from './failure.ts';
import type { Gate } from './gate.ts';
import { createLatch } from './latch.ts';
import type { OutboxMetrics } from './metrics.ts';
import { type Backoff, retryDelay } from './outbox.ts';
import { createRecorder, type Recorder } from './recorder.ts';
import type { ClaimedRow, OutboxStore } from './store.ts';

export const lanes = ['events', 'notifications', 'files'] as const;
export type LaneName = (typeof lanes)[number];

/** Times in milliseconds. */
export interface LanePace {
  /** Deliveries under way at once, at most. */
  capacity: number;
  /** How long a claimed row is left alone by other relays; longer than any delivery. */
  lease: number;
  /** After this a delivery counts as failed, whatever its request still does; shorter than the lease. */
  deadline: number;
  poll: { min: number; max: number };
  /** Next try of a row that failed because of the service, and of one that the service refuses. */
  retry: { service: Backoff; row: Backoff };
}

export interface LaneOptions {
  name: LaneName;
  pace: LanePace;
  store: OutboxStore;
  deliver: Deliver;
  gate: Gate;
  report: FailureReport;
  metrics: OutboxMetrics;
  clock: Clock;
  /** Called when rows were accepted: rows that waited for them may be due in any lane. */
  onAccepted(): void;
}

export interface Lane {
  nudge(): void;
  /** Claims no more, and resolves when what is under way is recorded. */
  stop(): Promise<void>;
}

export function startLane(options: LaneOptions): Lane {
  const latch = createLatch();
  const running = new Set<Promise<void>>();
  const recorder = createRecorder({
    store: options.store,
    clock: options.clock,
    report: options.report,
    onRecorded: (accepted) => {
      latch.nudge();
      if (accepted > 0) options.onAccepted();
    },
  });
  let stopping = false;
  const loop = run();

  async function run(): Promise<void> {
    let idle = options.pace.poll.min;
    while (!stopping) {
      const room = roomOf(options, running.size + recorder.waiting());
      if (room === 0) {
        await latch.wait(Math.max(options.gate.waitMs(), options.pace.poll.min));
        continue;
      }
      const { rows, took } = await claim(options, room);
      for (const row of rows) track(deliverOne(row, options, recorder));
      if (rows.length === room) continue;
      idle = rows.length > 0 ? options.pace.poll.min : Math.min(idle * 2, options.pace.poll.max);
      // An empty look that was dear (much that waits for something else) is not repeated at once.
      await latch.wait(Math.max(idle * (0.75 + Math.random() / 2), took * 5));
    }
  }

  function track(delivery: Promise<void>): void {
    running.add(delivery);
    void delivery.finally(() => running.delete(delivery));
  }

  return {
    nudge: latch.nudge,
    async stop() {
      stopping = true;
      latch.nudge();
      await loop;
      await Promise.all(running);
      await recorder.stop();
    },
  };
}

/** How many rows to claim now. Small gaps are left to grow: one claim of many rows is cheaper than many of one. */
function roomOf({ gate, pace }: LaneOptions, busy: number): number {
  const state = gate.state();
  if (state === 'shut') return 0;
  if (state === 'probe') return busy === 0 ? 1 : 0;
  const room = pace.capacity - busy;
  return room * 2 >= pace.capacity ? room : 0;
}

async function claim(options: LaneOptions, limit: number): Promise<{ rows: ClaimedRow[]; took: number }> {
  const { store, pace, clock, name, report } = options;
  const started = performance.now();
  try {
    const rows = await store.claim({
      lane: name,
      limit,
      now: clock(),
      lease: pace.lease,
    });
    report.ended('postgres');
    return { rows, took: performance.now() - started };
  } catch (error) {
    report.failed('postgres', error);
    return { rows: [], took: 200 };
  }
}

async function deliverOne(row: ClaimedRow, options: LaneOptions, recorder: Recorder): Promise<void> {
  const { metrics, gate, report, name, pace, clock } = options;
  const started = performance.now();
  try {
    const { outcome, subscriberId } = await withDeadline(options.deliver(row), pace.deadline);
    metrics.delivered(row.kind, outcome, performance.now() - started);
    if (outcome === 'accepted' && gate.succeeded() === 'ended') report.ended(name);
    recorder.accepted({ row, subscriberId });
  } catch (error) {
    const side = report.sideOf(error);
    metrics.delivered(row.kind, side === 'row' ? 'rejected' : 'failed', performance.now() - started);
    const change = gate.failed(side);
    report.failed(name, error, row);
    if (change === 'ended') report.ended(name);
    const delay = retryDelay(row.attempts, pace.retry[side]);
    recorder.failed({ row, notBefore: new Date(clock().getTime() + delay) });
  }
}

async function withDeadline<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineError()), ms);
  });
  return Promise.race([work, deadline]).finally(() => clearTimeout(timer));
}
