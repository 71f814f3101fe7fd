// Adapts the expiry to the load of the database. While requests are served, batches are small and limited in rate, so
// that requests keep most of the database. Otherwise, batches follow each other without a pause, and grow while they
// run fast.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Writer } from './lease.ts';

export interface Pace {
  /** Number of forms for the next batch. */
  size(): number;
  /** Waits until the next batch may begin. Call this function after each batch. */
  pause(batch: FinishedBatch): Promise<void>;
}

export interface FinishedBatch {
  /** Duration of the batch in milliseconds. */
  took: number;
  /** Number of rows that the batch has written. */
  changed: number;
}

export interface PaceOptions {
  /** Number of forms in a batch while the form service serves requests. */
  batchSize: number;
  /** Resolves to true if requests reached the database since the previous call. A rejection counts as true. */
  hasRequests(): Promise<boolean>;
  signal: AbortSignal;
  /** Returns the current time in milliseconds. */
  now?: () => number;
}

/**
 * Limits while requests are served: `changes` is in written rows per second, and `pause` in milliseconds. A pause lasts
 * as long as the previous batch took, but at most `pause`. The limit `changes` can make a pause longer.
 */
const serving = { changes: 1_000, pause: 250 };
/** While no requests are served, batches may grow to this many times `batchSize`. */
const growth = 20;
/**
 * Durations in milliseconds. While no requests are served, batches grow if they take less than `least`, and shrink if
 * they take more than `most`. A slower batch would delay requests for forms of the batch.
 */
const quick = { least: 100, most: 250 };
/**
 * The expiry assumes that requests are served if at least `busy` of the last `kept` checks found requests. Health
 * probes and metrics scrapes alone appear in fewer checks.
 */
const checks = { kept: 5, busy: 3 };
/** Milliseconds without requests after which the expiry assumes that no requests are served. */
const quietPeriod = 2_000;

export function createPace({ batchSize, hasRequests, signal, now = () => performance.now() }: PaceOptions): Pace {
  let size = batchSize;
  let recent: boolean[] = [];
  let servedAt = now();

  async function isServing(): Promise<boolean> {
    const isBusy = await hasRequests().catch(() => true);
    recent = [isBusy, ...recent].slice(0, checks.kept);
    if (recent.filter(Boolean).length >= checks.busy) servedAt = now();
    return now() - servedAt < quietPeriod;
  }

  return {
    size: () => size,
    async pause({ took, changed }) {
      if (await isServing()) {
        size = batchSize;
        const due = (changed / serving.changes) * 1_000;
        const rest = Math.max(Math.min(took, serving.pause), due - took);
        await sleep(rest, undefined, { signal }).catch(() => undefined);
      } else if (took < quick.least) size = Math.min(size * 2, batchSize * growth);
      else if (took > quick.most) size = Math.max(Math.floor(size / 2), batchSize);
    },
  };
}

/** Runs `work`, and pauses after it if there is more to do. `changed` returns the number of written rows. */
export async function withPause<T extends { next: unknown }>(
  { pace, writer }: { pace: Pace; writer: Pick<Writer, 'dryRun'> },
  changed: (result: T) => number,
  work: () => Promise<T>,
): Promise<T> {
  const started = performance.now();
  const result = await work();
  const took = performance.now() - started;
  if (result.next !== undefined) await pace.pause({ took, changed: writer.dryRun ? 0 : changed(result) });
  return result;
}

/**
 * Selects the time of the last statement on the connections that serve requests. Postgres shows this time only for
 * connections of the same role. The connections of the outbox dispatcher and the reconciler are excluded by the names
 * of their pools (see `createPool`).
 */
const activitySql = `
SELECT max(state_change)::text AS latest FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND application_name NOT IN ('formgate outbox', 'formgate reconciler')`;

/**
 * Returns a function that says whether a connection that serves requests has run a statement since the previous call.
 */
export function watchRequests(pool: Pick<pg.Pool, 'query'>): () => Promise<boolean> {
  let last: string | null | undefined;
  return async () => {
    const { rows } = await pool.query<{ latest: string | null }>(activitySql);
    const latest = rows[0]?.latest ?? null;
    const hasChanged = latest !== last;
    last = latest;
    return hasChanged && latest !== null;
  };
}
