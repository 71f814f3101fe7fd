// Types that all steps of the expiry use: the options of a run, and the results to which each step adds its own.
import type pg from 'pg';
import type { Retention } from '../src/forms/expiry/expiry.ts';
import type { DefinitionKey, Retentions } from '../src/forms/expiry/retention.ts';
import type { ExpiryStore } from '../src/forms/expiry/store.ts';
import type { CheckOptions } from '../src/forms/expiry/subscriber-checks.ts';
import type { Clock } from '../src/service/clock.ts';
import type { Logger } from '../src/service/operations/log.ts';
import type { Writer } from './lease.ts';
import type { Pace } from './pace.ts';
import type { Progress } from './progress.ts';

export interface ExpiryOptions {
  writer: Writer;
  pool: pg.Pool;
  store: ExpiryStore;
  readRetentions(keys: readonly DefinitionKey[]): Promise<Retentions>;
  /** The default retention periods. If a definition cannot be read, they determine how overdue its forms are. */
  defaults: Retention;
  /** Number of forms in a batch while the form service serves requests. */
  batchSize: number;
  /** While at least this many events are due but undelivered, tenants with very many due forms wait. */
  mostUndelivered?: number | undefined;
  /** Dependencies of the step that removes duplicate subscribers of forms. */
  checks: CheckOptions;
  clock: Clock;
  log: Logger;
  /** If this signal is aborted, the run ends after the current batch. */
  signal: AbortSignal;
  progress: Progress;
}

export interface ExpiryOutcome {
  /** Number of forms or rows for each outcome. */
  counts: Record<string, number>;
  /** Messages about failures of the infrastructure. */
  failures: string[];
  oldestOverdue: Date | undefined;
  /** Number of locked forms whose deletion is more than a day overdue; undefined if they were not counted. */
  overdueDeletions: number | undefined;
  /** Number of forms for each status; undefined if they were not counted. */
  formsByStatus: Record<string, number> | undefined;
  /** Number of items that this run quarantined, plus the outbox rows that were quarantined since the previous run. */
  quarantined: number;
}

export interface PacedOptions extends ExpiryOptions {
  pace: Pace;
}
