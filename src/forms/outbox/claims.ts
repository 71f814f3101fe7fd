// Chooses the rows that a queue claims next: the oldest due rows, except that the backlog of a few tenants does not
// delay the rows of the others.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../service/clock.ts';
import type { FailureLog } from './failure.ts';
import type { ClaimedBatch, ClaimedRow, DeliveryService, DispatchedStore, Position } from './store.ts';

export interface ClaimsOptions {
  service: DeliveryService;
  store: DispatchedStore;
  /** Both in milliseconds. `lease`: time for which other processes leave a claimed row alone. */
  pace: { lease: number; poll: { max: number } };
  failures: FailureLog;
  clock: Clock;
}

interface TimedBatch extends ClaimedBatch {
  /** Duration of the claim in milliseconds. */
  took: number;
  /** True if no older row was passed over because an earlier claim had just seen it. */
  fromOldest: boolean;
}

/** Milliseconds for which claims continue from the previous position. Then a claim starts again at the oldest row. */
const longWalk = 1_000;
/**
 * A tenant with this share of a full batch has a backlog. The other tenants' rows are claimed first at the beginning of
 * each walk, so that they wait for one walk instead of for the whole backlog.
 */
const shareOfBacklog = 1 / 4;
/**
 * A claim without the tenants with a backlog must pass over all of their rows. The next such claim therefore begins
 * only after its duration times this number.
 */
const restFactor = 10;

/**
 * Returns a function that claims the next batch of at most `limit` rows, without the tenants in `held`. After an error
 * of Postgres, the function waits, and returns an empty batch.
 */
export function createClaims({ store, pace, clock, service, failures }: ClaimsOptions) {
  let after: Position | undefined;
  let began = 0;
  /** Tenants with a backlog in the last batch. */
  let backlogged: string[] = [];
  let othersDue = Number.NEGATIVE_INFINITY;

  async function claim(limit: number, held: string[]): Promise<ClaimedBatch> {
    try {
      const batch = await store.claim({ service, limit, now: clock(), lease: pace.lease, after, held });
      failures.ended('postgres');
      return batch;
    } catch (error) {
      failures.failed('postgres', error);
      await sleep(Math.min(pace.poll.max, 1_000));
      return { rows: [], end: undefined };
    }
  }

  return async (limit: number, held: string[]): Promise<TimedBatch> => {
    const started = performance.now();
    const fromOldest = !after;
    if (fromOldest && backlogged.length > 0 && started >= othersDue) {
      const others = await claim(limit, [...held, ...backlogged]);
      const took = performance.now() - started;
      othersDue = started + took * (1 + restFactor);
      if (others.rows.length > 0) return { ...others, fromOldest: false, took };
    }
    if (fromOldest) began = started;
    const batch = await claim(limit, held);
    const isFull = batch.rows.length === limit;
    after = isFull && started - began < longWalk ? batch.end : undefined;
    // During an outage, a batch is a single row, which says nothing about a backlog.
    backlogged = isFull && limit > 1 ? tenantsWithBacklog(batch.rows) : [];
    return { ...batch, fromOldest, took: performance.now() - started };
  };
}

function tenantsWithBacklog(rows: readonly ClaimedRow[]): string[] {
  const counts = new Map<string, number>();
  for (const { tenantId } of rows) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1);
  return [...counts].filter(([, count]) => count >= rows.length * shareOfBacklog).map(([tenantId]) => tenantId);
}
