// The queue of one service. It claims batches of due rows, delivers them concurrently, and settles the outcomes. If
// half of a row's lease has passed before its delivery starts, the queue gives the row back untried. If this process
// dies, its claims expire, and another process delivers the rows again.
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../service/clock.ts';
import { newTraceparent, runInScope } from '../../service/operations/request-scope.ts';
import { type Backoff, retryDelay } from '../../service/retry.ts';
import { longestStop, within } from '../../service/time-limit.ts';
import { runIn, startRoot } from '../../service/tracing/tracing.ts';
import type { DeliveryService } from './claim-statements.ts';
import { createClaims } from './claims.ts';
import type { Deliver } from './delivery.ts';
import { causeOf, DeadlineError, sideOf } from './failure.ts';
import type { FailureLog } from './failure-log.ts';
import { FilesRemain } from './files.ts';
import type { OutboxMetrics } from './metrics.ts';
import { createOutage, type Outage } from './outage.ts';
import { createSettlements, type Outcome, type Settlements } from './settlements.ts';
import { createSignal } from './signal.ts';
import type { ClaimedRow, DispatchedStore } from './store.ts';
import type { Throttle } from './throttle.ts';

/** The limits and pauses of a queue. All times are in milliseconds. */
export interface QueuePace {
  /** Maximum number of concurrent deliveries. */
  capacity: number;
  /**
   * Number of rows beyond `capacity` that may be waiting to start or to be settled, so that deliveries do not wait for
   * the database.
   */
  ahead: number;
  /** Time for which other processes leave a claimed row alone. It must be longer than any delivery. */
  lease: number;
  /** Time after which a delivery fails, even if its request is still running. It must be shorter than the lease. */
  deadline: number;
  /** Pause between two claims while claims find no rows. */
  poll: { min: number; max: number };
  /** Backoff after a failure that the service has caused, and after a failure that the row has caused. */
  retry: { service: Backoff; row: Backoff };
  /** Pause between two probes while the service is down. */
  outage: Backoff;
  /** Number of refusals by the service after which a row is quarantined. */
  refusals: number;
}

export interface QueueOptions {
  service: DeliveryService;
  pace: QueuePace;
  store: DispatchedStore;
  deliver: Deliver;
  throttle: Throttle;
  failures: FailureLog;
  metrics: OutboxMetrics;
  clock: Clock;
  /** Called after the service has accepted rows. */
  onAccepted?: (() => void) | undefined;
}

export interface Queue {
  /** Triggers a claim. Call it after a commit that wrote to the outbox. */
  nudge(): void;
  /**
   * Stops claiming, and settles running deliveries. The claims of those that are not settled within `longestStop` and
   * half a second expire.
   */
  stop(): Promise<void>;
}

export function createQueue(options: QueueOptions): Queue {
  const { pace, clock } = options;
  const due = createSignal();
  const outage = createOutage({ service: options.service, clock, backoff: pace.outage });
  const settlements = createSettlements({
    ...options,
    onSettled(accepted) {
      due.notify();
      if (accepted > 0) options.onAccepted?.();
    },
  });
  const deliveries = createDeliveries({ ...options, outage, settlements });
  let stopping = false;
  const loop = run();

  async function run(): Promise<void> {
    const claim = createClaims(options);
    let idle = pace.poll.min;
    while (!stopping) {
      const limit = batchSize();
      if (limit === 0) {
        await due.wait(pace.poll.min);
        continue;
      }
      const held = outage.held();
      const { rows, took, fromOldest } = await claim(limit, held);
      for (const row of rows) await deliveries.start(row);
      if (rows.length === limit || !fromOldest) continue;
      idle = rows.length > 0 ? pace.poll.min : Math.min(idle * 2, pace.poll.max);
      // The queue pauses before the next claim even if it is nudged. While tenants wait for the next probe, it pauses
      // longer after a slow claim, because the claim had to pass over all rows of these tenants.
      const pause = Math.max(Math.min(pace.poll.min, 50), held.length > 0 ? Math.min(took * 10, longestPause) : 0);
      await sleep(pause);
      await due.wait(Math.max(idle * (0.75 + Math.random() / 2), took * 5) - pause);
    }
  }

  /**
   * Returns the number of rows to claim now. Returns 0 until half of the sum of `capacity` and `ahead` is free, because
   * a few large claims cost less than many small ones. While the service is down, returns 1 if no row is being
   * delivered or settled, and otherwise 0.
   */
  function batchSize(): number {
    const [most, busy] = [pace.capacity + pace.ahead, deliveries.running() + settlements.size()];
    if (outage.state() === 'none') return (most - busy) * 2 >= most ? most - busy : 0;
    return busy === 0 ? 1 : 0;
  }

  return {
    nudge: due.notify,
    async stop() {
      stopping = true;
      due.notify();
      const began = performance.now();
      await within(Promise.all([deliveries.stop(), loop]), longestStop, undefined);
      const left = longestStop - (performance.now() - began);
      await within(settlements.stop(), Math.max(left, shortestSettling), undefined);
    },
  };
}

interface DeliveriesOptions extends QueueOptions {
  outage: Outage;
  settlements: Settlements;
}

/** Number of deliveries that start before the event loop may handle requests. */
const group = 4;

/** Runs deliveries concurrently and settles each of them. */
function createDeliveries(options: DeliveriesOptions) {
  const { pace, clock, throttle, outage, settlements } = options;
  const ended = createSignal();
  const running = new Set<Promise<void>>();
  let stopping = false;
  let started = 0;

  /**
   * False if the queue stops, or half of the row's lease has passed. While the service is down, also false if another
   * delivery is running, or if the row's tenant must wait for the next probe.
   */
  function mayStart(row: ClaimedRow): boolean {
    if (stopping) return false;
    if (outage.state() !== 'none' && (running.size > 0 || outage.held().includes(row.tenantId))) return false;
    return row.claimedUntil.getTime() - clock().getTime() >= pace.lease / 2;
  }

  return {
    running: () => running.size,
    /** Waits for capacity and the throttle, then starts the delivery of a row, or gives the row back. */
    async start(row: ClaimedRow): Promise<void> {
      for (;;) {
        if (!mayStart(row)) return settlements.add({ kind: 'untried', row });
        if (running.size >= pace.capacity) await ended.wait(pace.poll.max);
        else if (throttle.take()) break;
        else await sleep(throttle.waitMs());
      }
      const delivery = inRequestOf(row, () => deliverRow(row, options)).finally(() => {
        running.delete(delivery);
        ended.notify();
      });
      running.add(delivery);
      started += 1;
      if (started % group === 0) await nextTurn();
    },
    /** Starts no more deliveries. Resolves when the running ones have ended. */
    async stop() {
      stopping = true;
      ended.notify();
      await Promise.all(running);
    },
  };
}

async function deliverRow(row: ClaimedRow, options: DeliveriesOptions): Promise<void> {
  const { service, pace, failures, metrics, outage, settlements } = options;
  const began = performance.now();
  try {
    const work = inSpanOf(row, () => options.deliver(row));
    const { outcome, subscriberId, until: notBefore, files } = await within(work, pace.deadline, new DeadlineError());
    metrics.delivered(row.kind, outcome, performance.now() - began);
    if (outcome !== 'skipped' && outage.succeeded(row.tenantId) === 'ended') failures.ended(service);
    if (notBefore) settlements.add({ kind: 'postponed', row, notBefore, files });
    else settlements.add({ kind: 'accepted', row, subscriberId });
  } catch (thrown) {
    const { cause: error, left } = thrown instanceof FilesRemain ? thrown : { cause: thrown, left: undefined };
    metrics.delivered(row.kind, sideOf(error) === 'row' ? 'rejected' : 'failed', performance.now() - began);
    failures.failed(service, error, row);
    if (outage.failed(row.tenantId, error) === 'ended') failures.ended(service);
    settlements.add(failureOf(row, error, left, options));
  }
}

/** Runs `work` so that its calls and log lines have the id of the request that wrote the row. */
function inRequestOf<T>({ requestId }: ClaimedRow, work: () => Promise<T>): Promise<T> {
  if (requestId === null) return work();
  return runInScope({ requestId, traceparent: newTraceparent(requestId) }, work);
}

/**
 * Runs `work` in a span with a link to the span of the request that wrote the row, if that request was traced. The span
 * is the root of a new trace, because a delivery may happen days after the request.
 */
function inSpanOf<T>({ traceparent, kind }: ClaimedRow, work: () => Promise<T>): Promise<T> {
  if (traceparent === null) return work();
  return runIn(startRoot({ name: `deliver ${kind}`, kind: 'consumer', link: traceparent }), work);
}

function failureOf(
  row: ClaimedRow,
  error: unknown,
  files: readonly string[] | undefined,
  { pace, clock, outage }: DeliveriesOptions,
): Outcome {
  const cause = causeOf(error);
  const refusals = row.refusals + (cause ? 1 : 0);
  if (cause && refusals >= pace.refusals) return { kind: 'refused', row, ...cause };
  const backoff = { ...pace.retry[sideOf(error)] };
  // The service works for other rows, so this row gets the longer backoff of a row failure. Otherwise, many rows that
  // always fail would use up the capacity.
  if (outage.state() === 'none') backoff.cap = pace.retry.row.cap;
  const delay = retryDelay(cause ? refusals : row.attempts, backoff);
  return { kind: 'failed', row, refusals, notBefore: new Date(clock().getTime() + delay), files };
}

/** Milliseconds for which a stop waits for the last outcomes, even if deliveries have used up its time. */
const shortestSettling = 500;
/** Maximum pause in milliseconds after a slow claim. A nudge does not end this pause. */
const longestPause = 5_000;
