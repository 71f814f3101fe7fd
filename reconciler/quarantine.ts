// What a run does about the quarantine besides filling it: retries items once per new version of the product, removes
// entries that are settled, and counts new ones.
import type pg from 'pg';
import { isNotice } from '../src/forms/quarantine/notices.ts';
import {
  countRetries,
  countSinceLastRun,
  createFormsQuarantine,
  tidyQuarantine,
} from '../src/forms/quarantine/store.ts';
import type { Clock } from '../src/service/clock.ts';
import { unsharedPool } from '../src/service/postgres/shared-pool.ts';
import { type RetryOptions, retryFailures, type Writer } from './lease.ts';

export interface QuarantineUpkeep extends RetryOptions {
  pool: pg.Pool;
  clock: Clock;
  writer: Writer;
}

/** Items that a run retries, and those of them that went straight back to quarantine. */
export interface Retries {
  retried: number;
  quarantined: number;
}

/** Before the stages: releases items that another version quarantined. Retries unwritten outbox rows at once. */
export async function releaseForRetry(options: QuarantineUpkeep): Promise<Retries> {
  const { pool, clock, writer } = options;
  const quarantine = createFormsQuarantine({ pool: unsharedPool(pool), clock });
  const items = writer.dryRun ? [] : await retryFailures(options, () => quarantine.release('of other versions'));
  const [tried, quarantined] = [items.filter(isNotice).length, items.filter(({ released }) => !released).length];
  return { retried: tried + (await writer.transact(countRetries)), quarantined };
}

/** After the stages. Returns how many outbox rows were quarantined since the last run; 0 in a dry run. */
export async function tidyAndCount({ writer }: Pick<QuarantineUpkeep, 'writer'>): Promise<number> {
  if (writer.dryRun) return 0;
  await writer.transact(tidyQuarantine);
  return writer.transact(countSinceLastRun);
}
