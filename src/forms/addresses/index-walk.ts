// Keeps the index of applicants' addresses complete. Every pod of the form service runs this background job; a lock in
// the database lets only one pod walk at a time. The job pauses after each batch for as long as the batch took, and
// retries after failures.
import type pg from 'pg';
import { startBackgroundLoop } from '../../service/background-loop.ts';
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Backoff } from '../../service/retry.ts';
import { createAddressHashes } from './address.ts';
import { createAddressMetrics } from './address-metrics.ts';
import { type AddressIndexStore, createAddressIndexStore } from './index-store.ts';

export interface AddressWalkOptions {
  store: Pick<AddressIndexStore, 'claim' | 'walk'>;
  clock: Clock;
  log: Logger;
  pace?: Partial<AddressWalkPace> | undefined;
}

/** The size of the batches and the times of the walks. All times are in milliseconds. */
export interface AddressWalkPace {
  /** Maximum number of forms in a batch. */
  limit: number;
  /**
   * Time between two walks, even if different pods perform them. Walks repeat because a pod of an older version, or a
   * pod with a different key, may create forms that are then missing from the index.
   */
  interval: number;
  /** The next walk visits again the forms that were younger than this at the end of a walk. */
  overlap: number;
  retry: Backoff;
}

const minute = 60_000;
const defaultPace: AddressWalkPace = {
  limit: 500,
  interval: 10 * minute,
  overlap: 5 * minute,
  retry: { first: 1_000, cap: minute },
};
/** Shortest and longest pause between two batches, in milliseconds. */
const pause = { min: 5, max: 1_000 };

export function startAddressWalk({ store, clock, log, pace }: AddressWalkOptions): { stop(): Promise<void> } {
  const { retry, ...walk } = { ...defaultPace, ...pace };
  let [claimed, walked, added] = [false, 0, 0];

  /** Walks over the next batch. Returns the pause after it. */
  async function walkOn(): Promise<number> {
    const began = performance.now();
    if (!claimed && (await store.claim())) log.info('address index restarted');
    claimed = true;
    const batch = await store.walk({ ...walk, now: clock() });
    walked += batch?.walked ?? 0;
    added += batch?.added ?? 0;
    if (batch && !batch.isLast) return Math.min(Math.max(performance.now() - began, pause.min), pause.max);
    if (batch && added > 0) log.info({ forms: walked, added }, 'address index completed');
    [walked, added] = [0, 0];
    return Math.min(walk.interval, minute);
  }

  return startBackgroundLoop({
    work: walkOn,
    backoff: retry,
    onFailure: (err, retryInMs) => log.warn({ err, retryInMs }, 'address index not updated'),
  });
}

export interface AddressIndexOptions extends Pick<AddressWalkOptions, 'clock' | 'log'> {
  /** The key of the HMACs of addresses. */
  secret: string;
  /** A pool that requests do not use, so that requests do not wait for the walk. */
  pool: pg.Pool;
  metrics: Pick<Metrics, 'registry'>;
}

export type AddressIndex = ReturnType<typeof startAddressIndex>;

export function startAddressIndex({ secret, pool, metrics, clock, log }: AddressIndexOptions) {
  const hashes = createAddressHashes(secret);
  const store = createAddressIndexStore(pool, hashes);
  const { isComplete } = store;
  createAddressMetrics({ registry: metrics.registry, isComplete });
  return { hashes, isComplete, ...startAddressWalk({ store, clock, log }) };
}
