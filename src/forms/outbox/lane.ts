// One stream of deliveries to one service: claims rows while there is capacity, delivers them concurrently, and records the
// outcomes in batches. No transaction is open during a request. No row is lost: a row whose outcome is not recorded is
// claimed again when its claim expires.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../service/clock.ts';
import { type Backoff, retryDelay } from '../../service/retry.ts';
import type { Deliver } from './delivery.ts';
import { createDispatch, type Dispatch } from './dispatch.ts';
import { DeadlineError, type FailureReport } from './failure.ts';
import type { Gate } from './gate.ts';
import type { OutboxMetrics } from './metrics.ts';
import { createRecorder, type Recorder } from './recorder.ts';
import type { Place } from './statements.ts';
import type { ClaimedRow, Look, OutboxStore } from './store.ts';
import type { Throttle } from './throttle.ts';

export const lanes = ['events', 'notifications', 'files'] as const;
export type LaneName = (typeof lanes)[number];

/** Times in milliseconds. */
export interface LanePace {
  /** Maximum number of concurrent deliveries. */
  capacity: number;
  /** Maximum number of claimed rows that wait for their delivery. */
  ahead: number;
  /** How long other processes leave a claimed row alone; longer than any delivery. */
  lease: number;
  /** After this time a delivery counts as failed, even if its request still runs; shorter than the lease. */
  deadline: number;
  poll: { min: number; max: number };
  /** Backoff after a failure of the service, and after the service refused the row. */
  retry: { service: Backoff; row: Backoff };
  /** Refusals of a row by the service until it is quarantined. */
  refusals: number;
}

export interface LaneOptions {
  name: LaneName;
  pace: LanePace;
  store: OutboxStore;
  deliver: Deliver;
  gate: Gate;
  throttle: Throttle;
  report: FailureReport;
  metrics: OutboxMetrics;
  clock: Clock;
  /** Called when rows were accepted: rows of other lanes that waited for them may be due. */
  onAccepted(): void;
}

export interface Lane {
  nudge(): void;
  /** Stops claiming, and resolves when running deliveries are recorded. */
  stop(): Promise<void>;
}

/** Milliseconds for which scans continue from the previous position; then they begin at the oldest row again. */
const longWalk = 1_000;

export function startLane(options: LaneOptions): Lane {
  const { pace, gate } = options;
  const latch = createLatch();
  const recorder = createRecorder({
    store: options.store,
    clock: options.clock,
    report: options.report,
    onRecorded: (accepted) => {
      latch.nudge();
      if (accepted > 0) options.onAccepted();
    },
  });
  const dispatch: Dispatch = createDispatch({
    ...pace,
    ...options,
    deliver: (row) => deliverOne(row, options, { recorder, dispatch }),
    giveBack: (row) => recorder.failed({ row, notBefore: undefined }),
  });
  let stopping = false;
  const loop = run();

  async function run(): Promise<void> {
    const look = createLook(options);
    let idle = pace.poll.min;
    while (!stopping) {
      const room = roomOf(options, dispatch.size() + recorder.waiting());
      if (room === 0) {
        await latch.wait(Math.max(gate.waitMs(), pace.poll.min));
        continue;
      }
      const { rows, took, wasWhole } = await look(room);
      dispatch.add(rows);
      if (rows.length === room || !wasWhole) continue;
      idle = rows.length > 0 ? pace.poll.min : Math.min(idle * 2, pace.poll.max);
      // Wait before the next scan even if nudged, and longer after an expensive scan (many rows that wait for others).
      const rest = Math.min(pace.poll.min, 50);
      await sleep(rest);
      await latch.wait(Math.max(idle * (0.75 + Math.random() / 2), took * 5) - rest);
    }
  }

  return {
    nudge: latch.nudge,
    async stop() {
      stopping = true;
      latch.nudge();
      await loop;
      await dispatch.stop();
      await recorder.stop();
    },
  };
}

interface WalkedLook extends Look {
  /** Milliseconds. */
  took: number;
  /** Whether the scan began at the oldest row. */
  wasWhole: boolean;
}

/** Scans for rows to claim, and remembers the position for the next scan. */
function createLook(options: LaneOptions): (limit: number) => Promise<WalkedLook> {
  let after: Place | undefined;
  let began = 0;
  return async (limit) => {
    const started = performance.now();
    const wasWhole = !after;
    if (wasWhole) began = started;
    const { rows, end } = await claim(options, limit, after);
    after = rows.length === limit && started - began < longWalk ? end : undefined;
    return { rows, end, wasWhole, took: performance.now() - started };
  };
}

/** How many rows to claim now. Waits for larger gaps: one claim of many rows is cheaper than many claims of one. */
function roomOf({ gate, pace }: LaneOptions, busy: number): number {
  const state = gate.state();
  if (state === 'shut') return 0;
  if (state === 'probe') return busy === 0 ? 1 : 0;
  const whole = pace.capacity + pace.ahead;
  const room = whole - busy;
  return room * 2 >= whole ? room : 0;
}

async function claim(options: LaneOptions, limit: number, after: Place | undefined): Promise<Look> {
  const { store, pace, clock, name, report } = options;
  try {
    const look = await store.claim({ lane: name, limit, now: clock(), lease: pace.lease, after });
    report.ended('postgres');
    return look;
  } catch (error) {
    report.failed('postgres', error);
    await sleep(Math.min(pace.poll.max, 1_000));
    return { rows: [], end: undefined };
  }
}

interface Outcomes {
  recorder: Recorder;
  dispatch: Pick<Dispatch, 'clear'>;
}

async function deliverOne(row: ClaimedRow, options: LaneOptions, { recorder, dispatch }: Outcomes): Promise<void> {
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
    if (change === 'began') dispatch.clear();
    const cause = report.causeOf(error);
    const refusals = row.refusals + (cause ? 1 : 0);
    if (cause && refusals >= pace.refusals) return recorder.quarantined({ row, ...cause });
    const delay = retryDelay(cause ? refusals : row.attempts, pace.retry[side]);
    recorder.failed({ row, refusals, notBefore: new Date(clock().getTime() + delay) });
  }
}

async function withDeadline<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineError()), ms);
  });
  return Promise.race([work, deadline]).finally(() => clearTimeout(timer));
}

/** A wait that a nudge ends. A nudge while nobody waits counts for the next wait. */
interface Latch {
  /** Resolves after `ms` milliseconds, or as soon as it is nudged, or at once if it was nudged since the last wait. */
  wait(ms: number): Promise<void>;
  nudge(): void;
}

function createLatch(): Latch {
  let nudged = false;
  let wake: (() => void) | undefined;
  return {
    async wait(ms) {
      if (!nudged && ms > 0)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      wake = undefined;
      nudged = false;
    },
    nudge() {
      nudged = true;
      wake?.();
    },
  };
}
