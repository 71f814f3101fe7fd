// Expires drafts in one run of the reconciler: reads the retention periods of each definition, warns, locks and deletes
// in three stages, and purges outdated rows. Retries a batch that fails because of the infrastructure. Quarantines a
// form that makes its batch fail. Skips and logs a definition that cannot be read.
import type pg from 'pg';
import { countForms } from '../src/forms/expiry/count-forms.ts';
import type { Policy, Retention } from '../src/forms/expiry/expiry.ts';
import { type Purge, purgeBatch, purges } from '../src/forms/expiry/purge-store.ts';
import type { DefinitionKey, Retentions } from '../src/forms/expiry/retention.ts';
import { type ExpiryStore, type Position, type Stage, stages } from '../src/forms/expiry/store.ts';
import type { CheckOptions } from '../src/forms/expiry/subscriber-checks.ts';
import type { Clock } from '../src/service/clock.ts';
import { auditLog, serviceEvent } from '../src/service/operations/audit.ts';
import type { Logger } from '../src/service/operations/log.ts';
import { databaseRefusal } from '../src/service/quarantine/quarantine.ts';
import type { SpanOptions } from '../src/service/tracing/span.ts';
import { traced } from '../src/service/tracing/tracing.ts';
import { type IsolatedBatch, takeIsolated } from './isolate.ts';
import type { Writer } from './lease.ts';
import { createPace, type Pace, watchRequests } from './pace.ts';
import type { Progress } from './progress.ts';
import { releaseForRetry, tidyAndCount } from './quarantine.ts';
import { removeOtherSubscribers } from './subscribers.ts';

export interface ExpiryOptions {
  writer: Writer;
  pool: pg.Pool;
  store: ExpiryStore;
  readRetentions(keys: readonly DefinitionKey[]): Promise<Retentions>;
  /** The default retention periods. They serve to measure how overdue the forms of unreadable definitions are. */
  defaults: Retention;
  /** Number of forms in a batch while the form service serves requests. */
  batchSize: number;
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

interface PacedOptions extends ExpiryOptions {
  pace: Pace;
}

/** Number of form definitions per SQL statement. */
const policiesAtOnce = 200;
/** Purge batches are this many times larger than form batches, because purged rows are small. */
const purgedForEach = 10;
const day = 86_400_000;

/**
 * Expires drafts, and adds the results to `outcome`. Rejects with LeaseLostError, or with the database's error if
 * retries do not help. In both cases, `outcome` contains the results of the work before the failure.
 */
export async function expire(given: ExpiryOptions, outcome: ExpiryOutcome): Promise<void> {
  const options: PacedOptions = { ...given, pace: createPace({ ...given, hasRequests: watchRequests(given.pool) }) };
  const { writer, store, signal } = options;
  const { retried, quarantined } = await releaseForRetry(options);
  outcome.counts.retried = retried;
  outcome.quarantined += quarantined;
  const keys = await writer.transact((client) => store.definitions(client));
  const retentions = await options.readRetentions(keys);
  const { policies, skipped } = retentions;
  reportDefinitions(retentions, options, outcome);
  for (const stage of stages) await traced(stepSpan(stage), () => walk(stage, policies, options, outcome));
  if (!signal.aborted) await traced(stepSpan('purge'), () => purgeAll(options, outcome));
  if (!signal.aborted) outcome.counts.subscribersRemoved = await removeOtherSubscribers(options);
  await measureOverdue(
    [...policies, ...skipped.map((key) => ({ ...key, retention: options.defaults }))],
    options,
    outcome,
  );
  if (!writer.dryRun && !signal.aborted) outcome.formsByStatus = await countForms(options);
  outcome.quarantined += await tidyAndCount(options);
  outcome.counts.quarantined = outcome.quarantined;
}

const stepSpan = (step: Stage | 'purge'): SpanOptions => ({ name: step, kind: 'internal' });

async function measureOverdue(all: readonly Policy[], options: ExpiryOptions, outcome: ExpiryOutcome): Promise<void> {
  const { writer, store, clock } = options;
  const yesterday = new Date(clock().getTime() - day);
  const moments: Date[] = [];
  let deletions = 0;
  for (const chunk of inChunks(all)) {
    const moment = await writer.transact((client) => store.oldestOverdue(client, chunk, clock()));
    if (moment) moments.push(moment);
    deletions += await writer.transact((client) => store.count(client, 'delete', chunk, yesterday));
  }
  outcome.oldestOverdue = moments.sort((a, b) => a.getTime() - b.getTime())[0];
  outcome.overdueDeletions = deletions;
}

function reportDefinitions(
  { policies, skipped }: Retentions,
  { log }: ExpiryOptions,
  { counts, failures }: ExpiryOutcome,
): void {
  for (const { tenantId: tenant, definitionId: definition, ignoresWarning } of policies)
    if (ignoresWarning) log.warn({ tenant, definition }, 'no warnings sent: warnBefore is not shorter than lockAfter');
  counts.skippedDefinitions = skipped.length;
  for (const { tenantId: tenant, definitionId: definition, reason, error } of skipped)
    log.warn({ tenant, definition, reason, err: error }, 'definition skipped, its forms are kept');
  const unreadable = skipped.filter(({ reason }) => reason === 'unreadable').length;
  if (unreadable > 0) failures.push(`${unreadable} form definitions could not be read`);
}

function* inChunks(policies: readonly Policy[]): Generator<readonly Policy[]> {
  for (let start = 0; start < policies.length; start += policiesAtOnce)
    yield policies.slice(start, start + policiesAtOnce);
}

const changedBy = { warn: 'warned', lock: 'locked', delete: 'deleted' } as const;

async function walk(stage: Stage, all: readonly Policy[], options: PacedOptions, outcome: ExpiryOutcome) {
  const { store, pool, clock, progress } = options;
  const policies = stage === 'warn' ? all.filter(({ retention }) => retention.warnBefore > 0) : all;
  outcome.counts[changedBy[stage]] = 0;
  const total = async () => {
    let sum = 0;
    for (const chunk of inChunks(policies)) sum += await store.count(pool, stage, chunk, clock());
    return sum;
  };
  // The total is only for the progress report, so a failure to determine it is ignored.
  progress.begin(stage, await total().catch(() => undefined));
  for (const chunk of inChunks(policies)) {
    const unchanged = await walkChunk(stage, chunk, options, outcome);
    // The second pass handles the forms that other transactions had locked during the first pass.
    if (stage === 'lock' && unchanged > 0) await walkChunk(stage, chunk, options, outcome);
  }
  progress.end();
}

/** Runs `work`, and pauses after it if there is more to do. `changed` returns the number of written rows. */
async function withPause<T extends { next: unknown }>(
  { pace, writer }: PacedOptions,
  changed: (result: T) => number,
  work: () => Promise<T>,
): Promise<T> {
  const started = performance.now();
  const result = await work();
  const took = performance.now() - started;
  if (result.next !== undefined) await pace.pause({ took, changed: writer.dryRun ? 0 : changed(result) });
  return result;
}

/** Processes a chunk of definitions. Returns the number of forms that were scanned but not changed. */
async function walkChunk(stage: Stage, chunk: readonly Policy[], options: PacedOptions, outcome: ExpiryOutcome) {
  const { pace, signal, progress } = options;
  const changed = (batch: IsolatedBatch) => batch[changedBy[stage]];
  let unchanged = 0;
  for (let position: Position | undefined = { policies: chunk }; position && !signal.aborted; ) {
    const from: Position = position;
    const batch: IsolatedBatch = await withPause(options, changed, () =>
      takeIsolated({ stage, position: from, limit: pace.size() }, options),
    );
    count(stage, batch, options, outcome);
    unchanged += batch.walked - changed(batch);
    progress.add(batch.walked);
    position = batch.next;
  }
  return unchanged;
}

function count(stage: Stage, batch: IsolatedBatch, { log, writer }: ExpiryOptions, outcome: ExpiryOutcome): void {
  const { counts } = outcome;
  const name = changedBy[stage];
  counts[name] = (counts[name] ?? 0) + batch[name];
  outcome.quarantined += batch.quarantined;
  if (stage !== 'delete') return;
  counts.waiting = (counts.waiting ?? 0) + batch.waiting;
  counts.deletedNotNotified = (counts.deletedNotNotified ?? 0) + batch.unnotified.length;
  if (writer.dryRun) return;
  for (const { formId, tenantId, definitionId } of batch.unnotified)
    auditLog(log).warn(
      {
        ...{ form: formId, tenant: tenantId, definition: definitionId },
        audit: serviceEvent({ action: 'form.delete-unnotified', by: 'reconciler', tenant: tenantId, id: formId }),
      },
      'form deleted before the event service accepted form-locked',
    );
}

/** Purges each table. If Postgres refuses to delete rows of one table, continues with the next. */
async function purgeAll(options: PacedOptions, outcome: ExpiryOutcome): Promise<void> {
  const { progress, log } = options;
  outcome.counts.purged = 0;
  progress.begin('purge', undefined);
  for (const kind of purges) {
    try {
      await purgeOne(kind, options, outcome);
    } catch (error) {
      if (!databaseRefusal(error)) throw error;
      log.error({ err: error, table: kind }, 'purge failed');
      outcome.failures.push(`the purge of ${kind} failed`);
    }
  }
  progress.end();
}

async function purgeOne(kind: Purge, options: PacedOptions, { counts }: ExpiryOutcome): Promise<void> {
  const { writer, clock, signal, progress } = options;
  for (let after: string | undefined, more = true; more && !signal.aborted; ) {
    const from = after;
    const limit = options.pace.size() * purgedForEach;
    const remove = () =>
      writer.transact((client) =>
        purgeBatch(client, kind, { now: clock(), after: from, limit, dryRun: writer.dryRun }),
      );
    const { removed, next } = await withPause(options, (batch) => batch.removed, remove);
    counts.purged = (counts.purged ?? 0) + removed;
    progress.add(removed);
    after = next;
    more = next !== undefined;
  }
}
