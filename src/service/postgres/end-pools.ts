// Ends connection pools when a process stops.
import type pg from 'pg';
import { within } from '../time-limit.ts';

/**
 * Milliseconds for which a stop waits for running statements. Most of them have ended before: requests are drained, and
 * background work has had `longestStop`.
 */
const longestEnd = 500;

/** Ends the pools. Resolves when their statements have ended, after `longestEnd` at most. */
export async function endPools(pools: readonly pg.Pool[]): Promise<void> {
  await within(Promise.all(pools.map((pool) => pool.end())), longestEnd, undefined);
}
