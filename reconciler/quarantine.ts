// Maintains the quarantine during a run. Retries each item once for each new version of the product, removes entries
// that are no longer needed, and counts new ones.
import { isNotice } from '../src/forms/quarantine/notices.ts';
import {
  countRetries,
  countSinceLastRun,
  createFormsQuarantine,
  tidyQuarantine,
} from '../src/forms/quarantine/store.ts';
import type { Clock } from '../src/service/clock.ts';
import { poolOfTransaction } from '../src/service/postgres/shared-pool.ts';
import { type ReleaseOutcome, releaseInPages } from '../src/service/quarantine/quarantine-store.ts';
import type { Writer } from './lease.ts';

export interface QuarantineUpkeep {
  clock: Clock;
  writer: Writer;
}

/**
 * `retried` is the number of items that a run retries. `quarantined` is the number of these that were quarantined again
 * immediately.
 */
export interface Retries {
  retried: number;
  quarantined: number;
}

/**
 * Releases items that another version of the product quarantined, and immediately retries outbox rows that were not
 * written. Call this function before the stages of the expiry.
 */
export async function releaseForRetry(options: QuarantineUpkeep): Promise<Retries> {
  const { clock, writer } = options;
  const release = (after: string | undefined) =>
    writer.transact((client) =>
      createFormsQuarantine({ pool: poolOfTransaction(client), clock }).release('of other versions', after),
    );
  let [tried, quarantined] = [0, 0];
  const count = (items: readonly ReleaseOutcome[]) => {
    tried += items.filter(isNotice).length;
    quarantined += items.filter(({ released }) => !released).length;
  };
  if (!writer.dryRun) await releaseInPages(release, count);
  return { retried: tried + (await writer.transact(countRetries)), quarantined };
}

/**
 * Removes quarantine entries that are no longer needed. Returns the number of outbox rows that were quarantined since
 * the last run; 0 in a dry run.
 */
export async function tidyAndCount({ writer }: Pick<QuarantineUpkeep, 'writer'>): Promise<number> {
  if (writer.dryRun) return 0;
  await writer.transact(tidyQuarantine);
  return writer.transact(countSinceLastRun);
}
