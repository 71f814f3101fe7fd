// Chooses the rows that a queue claims next: the oldest due rows, except that the backlogs of tenants do not delay the
// rows of the others.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../service/clock.ts';
import { isStatementTimeout } from '../../service/postgres/postgres.ts';
import type { ClaimOptions, DeliveryService, RowPosition } from './claim-statements.ts';
import type { FailureLog } from './failure-log.ts';
import type { ClaimedBatch, DispatchedStore } from './store.ts';

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

const nothing: ClaimedBatch = { rows: [], end: undefined };

/** Milliseconds for which claims continue from the previous position. Then a claim starts again at the oldest row. */
const longWalk = 1_000;
/**
 * The search for the tenants with the fewest due rows must pass over all due rows. The next search therefore begins
 * only after its duration times this number.
 */
const restFactor = 10;

/**
 * Returns a function that claims the next batch of at most `limit` rows, without the tenants in `held`. After an error
 * of Postgres, the function waits, and returns an empty batch.
 */
export function createClaims({ store, pace, clock, service, failures }: ClaimsOptions) {
  let after: RowPosition | undefined;
  let began = 0;
  /** True if the last batch was full, or its claim timed out: rows may be waiting behind a backlog. */
  let hasBacklog = false;
  let fewestDue = Number.NEGATIVE_INFINITY;

  /** After an error of Postgres, waits and returns `otherwise`. */
  async function tryTo<T>(query: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      const result = await query();
      failures.ended('postgres');
      return result;
    } catch (error) {
      failures.failed('postgres', error);
      hasBacklog ||= isStatementTimeout(error);
      await sleep(Math.min(pace.poll.max, 1_000));
      return otherwise;
    }
  }

  const claim = (options: Pick<ClaimOptions, 'limit' | 'held' | 'only' | 'after'>) =>
    tryTo(() => store.claim({ service, now: clock(), lease: pace.lease, ...options }), nothing);

  /** Claims rows of the tenants with the fewest due rows. */
  async function claimFewest(limit: number, held: string[]): Promise<ClaimedBatch> {
    const started = performance.now();
    const only = await tryTo(() => store.fewest({ service, now: clock(), limit, held }), []);
    fewestDue = started + (performance.now() - started) * (1 + restFactor);
    return only.length > 0 ? claim({ limit, held, only }) : nothing;
  }

  return async (limit: number, held: string[]): Promise<TimedBatch> => {
    const started = performance.now();
    const fromOldest = !after;
    if (fromOldest && hasBacklog && started >= fewestDue) {
      const fewest = await claimFewest(limit, held);
      if (fewest.rows.length > 0) return { ...fewest, fromOldest: false, took: performance.now() - started };
    }
    if (fromOldest) began = started;
    hasBacklog = false;
    const batch = await claim({ limit, held, after });
    const isFull = batch.rows.length === limit;
    after = isFull && started - began < longWalk ? batch.end : undefined;
    // During an outage, a batch is a single row, which says nothing about a backlog.
    hasBacklog ||= isFull && limit > 1;
    return { ...batch, fromOldest, took: performance.now() - started };
  };
}
