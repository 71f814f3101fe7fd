// The expiry of one run: reads how long the forms of each definition are kept, walks the three stages, and purges. A
// batch that fails because of the infrastructure is retried; a form that makes its batch fail is quarantined; a definition
// that cannot be read is skipped and logged.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Policy, Retention } from '../src/forms/expiry/expiry.ts';
import { type Purge, type PurgeStore, purges } from '../src/forms/expiry/purge-store.ts';
import type { DefinitionKey, Retentions, SkippedDefinition } from '../src/forms/expiry/retention.ts';
import { type ExpiryStore, type Place, type Stage, stages } from '../src/forms/expiry/store.ts';
import { noticeEntry } from '../src/forms/quarantine/notices.ts';
import type { Clock } from '../src/service/clock.ts';
import type { Logger } from '../src/service/operations/log.ts';
import { databaseRefusal } from '../src/service/quarantine/quarantine.ts';
import { putInQuarantine } from '../src/service/quarantine/quarantine-store.ts';
import { type IsolatedBatch, type Isolation, takeIsolated } from './isolate.ts';
import { patiently } from './patience.ts';
import type { Progress } from './progress.ts';
import { releaseForRetry, tidyAndCount } from './quarantine.ts';
import type { Writer } from './writer.ts';

export interface ExpiryOptions {
  writer: Writer;
  pool: pg.Pool;
  store: ExpiryStore;
  purge: PurgeStore;
  readRetentions(keys: readonly DefinitionKey[]): Promise<Retentions>;
  /** For the forms of definitions that cannot be read: how overdue they are is told all the same. */
  defaults: Retention;
  batchSize: number;
  clock: Clock;
  log: Logger;
  /** Aborted when the run is to end after its batch. */
  signal: AbortSignal;
  progress: Progress;
}

export interface ExpiryOutcome {
  /** Forms and rows by what became of them. */
  counts: Record<string, number>;
  /** What failed of the infrastructure. */
  failures: string[];
  oldestOverdue: Date | undefined;
  /** Locked forms whose deletion is more than a day overdue; undefined when nobody looked. */
  overdueDeletions: number | undefined;
  /** Items that were quarantined by this run, or by others since the last one. */
  quarantined: number;
}

/** Definitions in one statement. */
const policiesAtOnce = 200;
/**
 * A run has the night, and people do not wait. After a batch it rests for as long as the batch took; one that waited for
 * somebody is no reason to rest for longer than so many milliseconds.
 */
const longestRest = 250;
/** In a second, at most: a steady rate, which leaves room for busy moments. The relay of a pod tells of fewer. */
const mostChanges = 2_000;
/** What is purged are small rows: so many of them in a statement for each form that one may have. */
const purgedForEach = 10;
const day = 86_400_000;

/** Rejects with TurnLostError, and when the database fails for good; then `outcome` tells how far it came. */
export async function expire(options: ExpiryOptions, outcome: ExpiryOutcome): Promise<void> {
  const { pool, store, signal } = options;
  const { retried, quarantined } = await releaseForRetry(options);
  outcome.counts.retried = retried;
  outcome.quarantined += quarantined;
  const keys = await patiently(options, () => store.definitions(pool));
  const { policies, skipped } = await options.readRetentions(keys);
  reportSkipped(skipped, options, outcome);
  for (const stage of stages) await walk(stage, policies, options, outcome);
  if (!signal.aborted) await purgeAll(options, outcome);
  await measureOverdue(
    [...policies, ...skipped.map((key) => ({ ...key, retention: options.defaults }))],
    options,
    outcome,
  );
  outcome.quarantined += await tidyAndCount(options);
  outcome.counts.quarantined = outcome.quarantined;
}

async function measureOverdue(all: readonly Policy[], options: ExpiryOptions, outcome: ExpiryOutcome): Promise<void> {
  const { pool, store, clock } = options;
  const yesterday = new Date(clock().getTime() - day);
  const moments: Date[] = [];
  let deletions = 0;
  for (const part of inParts(all)) {
    const moment = await patiently(options, () => store.oldestOverdue(pool, part, clock()));
    if (moment) moments.push(moment);
    deletions += await patiently(options, () => store.count(pool, 'delete', part, yesterday));
  }
  outcome.oldestOverdue = moments.sort((a, b) => a.getTime() - b.getTime())[0];
  outcome.overdueDeletions = deletions;
}

function reportSkipped(
  skipped: SkippedDefinition[],
  { log }: ExpiryOptions,
  { counts, failures }: ExpiryOutcome,
): void {
  counts.skippedDefinitions = skipped.length;
  for (const { tenantId, definitionId, reason, error } of skipped)
    log.warn(
      { tenant: tenantId, definition: definitionId, reason, err: error },
      'definition skipped, its forms are kept',
    );
  const unreadable = skipped.filter(({ reason }) => reason === 'unreadable').length;
  if (unreadable > 0) failures.push(`${unreadable} form definitions could not be read`);
}

function* inParts(policies: readonly Policy[]): Generator<readonly Policy[]> {
  for (let start = 0; start < policies.length; start += policiesAtOnce)
    yield policies.slice(start, start + policiesAtOnce);
}

const changedBy = { warn: 'warned', lock: 'locked', delete: 'deleted' } as const;

async function walk(stage: Stage, all: readonly Policy[], options: ExpiryOptions, outcome: ExpiryOutcome) {
  const { store, pool, clock, progress } = options;
  const policies = stage === 'warn' ? all.filter(({ retention }) => retention.warnBefore > 0) : all;
  outcome.counts[changedBy[stage]] = 0;
  const total = async () => {
    let sum = 0;
    for (const part of inParts(policies)) sum += await store.count(pool, stage, part, clock());
    return sum;
  };
  // Only to be able to say how much is left.
  progress.begin(stage, await total().catch(() => undefined));
  for (const part of inParts(policies)) {
    const passedOver = await walkPart(stage, part, options, outcome);
    // Rows that somebody else held for a moment.
    if (stage === 'lock' && passedOver > 0) await walkPart(stage, part, options, outcome);
  }
  progress.end();
}

/** Times are in milliseconds. `changed` tells how many rows were written. */
async function withRest<T extends { next: unknown }>(
  { signal, writer }: ExpiryOptions,
  changed: (result: T) => number,
  work: () => Promise<T>,
): Promise<T> {
  const started = performance.now();
  const result = await work();
  const took = performance.now() - started;
  const due = writer.dryRun ? 0 : (changed(result) / mostChanges) * 1_000;
  const rest = Math.max(Math.min(took, longestRest), due - took);
  if (result.next !== undefined) await sleep(rest, undefined, { signal }).catch(() => undefined);
  return result;
}

/** Answers how many forms were looked at and not changed. */
async function walkPart(stage: Stage, part: readonly Policy[], options: ExpiryOptions, outcome: ExpiryOutcome) {
  const { batchSize: limit, signal, progress } = options;
  const changed = (batch: IsolatedBatch) => batch[changedBy[stage]];
  let passedOver = 0;
  for (let place: Place | undefined = { policies: part }; place && !signal.aborted; ) {
    const from: Place = place;
    const batch: IsolatedBatch = await withRest(options, changed, () =>
      takeIsolated(isolationOf(stage, options), from, limit),
    );
    count(stage, batch, options, outcome);
    passedOver += batch.walked - changed(batch);
    progress.add(batch.walked);
    place = batch.next;
  }
  return passedOver;
}

function isolationOf(stage: Stage, options: ExpiryOptions): Isolation {
  const { writer, store, clock, log } = options;
  const batch = (place: Place, limit: number, dryRun: boolean) =>
    patiently(options, () =>
      writer.transact((client) => store.batch(client, stage, { place, now: clock(), limit, dryRun })),
    );
  return {
    stage,
    log,
    take: (place, limit) => batch(place, limit, writer.dryRun),
    look: (place, limit) => batch(place, limit, true),
    takeBare: (place, { stage: bareStage, formId, cause }) =>
      patiently(options, () =>
        writer.transact(async (client) => {
          const taken = await store.takeBare(client, bareStage, { place, now: clock(), formId });
          const entries = taken.untold.map((form) => noticeEntry(bareStage, form, cause));
          await putInQuarantine(client, entries, clock());
          return { ...taken, entries };
        }),
      ),
    quarantine: (item) => writer.transact((client) => putInQuarantine(client, [item], clock())),
  };
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
    log.warn(
      { audit: 'not notified', form: formId, tenant: tenantId, definition: definitionId },
      'form deleted though the event service has not accepted that it was locked',
    );
}

/** A table whose rows Postgres refuses to delete holds up no other. */
async function purgeAll(options: ExpiryOptions, outcome: ExpiryOutcome): Promise<void> {
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

async function purgeOne(kind: Purge, options: ExpiryOptions, { counts }: ExpiryOutcome): Promise<void> {
  const { writer, purge, clock, signal, progress } = options;
  const limit = options.batchSize * purgedForEach;
  for (let after: string | undefined, more = true; more && !signal.aborted; ) {
    const from = after;
    const remove = () =>
      writer.transact((client) =>
        purge.batch(client, kind, { now: clock(), after: from, limit, dryRun: writer.dryRun }),
      );
    const { removed, next } = await withRest(
      options,
      (batch) => batch.removed,
      () => patiently(options, remove),
    );
    counts.purged = (counts.purged ?? 0) + removed;
    progress.add(removed);
    after = next;
    more = next !== undefined;
  }
}
