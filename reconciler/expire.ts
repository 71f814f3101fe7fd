// Expires drafts in one run of the reconciler: reads the retention periods of each definition, warns, locks and deletes
// in three stages, and purges outdated rows. Tenants with very many due forms come last (backlogs.ts). Retries a batch
// that fails because of the infrastructure. Quarantines a form that makes its batch fail. Skips and logs a definition
// that cannot be read.
import { countForms } from '../src/forms/expiry/count-forms.ts';
import type { Policy } from '../src/forms/expiry/expiry.ts';
import { type Purge, purgeBatch, purges } from '../src/forms/expiry/purge-store.ts';
import type { Retentions } from '../src/forms/expiry/retention.ts';
import { type Stage, stages } from '../src/forms/expiry/store.ts';
import type { SpanOptions } from '../src/service/tracing/span.ts';
import { traced } from '../src/service/tracing/tracing.ts';
import { splitByBacklog, walkBacklogs } from './backlogs.ts';
import type { ExpiryOptions, ExpiryOutcome, PacedOptions } from './expiry-options.ts';
import { createPace, watchRequests, withPause } from './pace.ts';
import { releaseForRetry, tidyAndCount } from './quarantine.ts';
import { inChunks, walk } from './stages.ts';
import { attempt } from './step.ts';
import { removeOtherSubscribers } from './subscribers.ts';

/** Purge batches are this many times larger than form batches, because purged rows are small. */
const purgedForEach = 10;
const day = 86_400_000;

/**
 * Expires drafts and purges. Adds the results to `outcome`. If tenants have a backlog, does not expire their drafts,
 * but returns a function that does. If a step fails, both functions record the failure and continue with the next step.
 * They reject only with LeaseLostError, or if the database cannot be reached. In both cases, `outcome` contains the
 * results of the work before the failure.
 */
export async function expire(given: ExpiryOptions, outcome: ExpiryOutcome): Promise<(() => Promise<void>) | undefined> {
  const options: PacedOptions = { ...given, pace: createPace({ ...given, hasRequests: watchRequests(given.pool) }) };
  const { signal, log } = options;
  const tryTo = <T>(what: string, step: () => Promise<T>) => attempt(what, { log, outcome }, step);
  const retries = await tryTo('the retry of quarantined items', () => releaseForRetry(options));
  outcome.counts.retried = retries?.retried ?? 0;
  outcome.quarantined += retries?.quarantined ?? 0;
  const { policies, skipped } =
    (await tryTo('the search for definitions', () => readDefinitions(options, outcome))) ?? noDefinitions;
  const { ordinary, backlogs } = (await tryTo('the search for backlogs', () => splitByBacklog(policies, options))) ?? {
    ordinary: policies,
    backlogs: [],
  };
  for (const stage of stages)
    await tryTo(`the stage ${stage}`, () => traced(stepSpan(stage), () => walk(stage, ordinary, options, outcome)));
  if (!signal.aborted) await traced(stepSpan('purge'), () => purgeAll(options, outcome));
  if (!signal.aborted)
    outcome.counts.subscribersRemoved =
      (await tryTo('the check of subscribers', () => removeOtherSubscribers(options))) ?? 0;
  const all = [...policies, ...skipped.map((key) => ({ ...key, retention: options.defaults }))];
  const finish = () => finishExpiry({ all, backlogs }, options, outcome);
  if (backlogs.length > 0) return finish;
  await finish();
  return undefined;
}

async function finishExpiry(
  { all, backlogs }: { all: readonly Policy[]; backlogs: readonly Policy[][] },
  options: PacedOptions,
  outcome: ExpiryOutcome,
): Promise<void> {
  const { writer, signal, log } = options;
  const tryTo = <T>(what: string, step: () => Promise<T>) => attempt(what, { log, outcome }, step);
  if (backlogs.length > 0)
    await tryTo('the expiry of tenants with a backlog', () =>
      traced(stepSpan('backlogs'), () => walkBacklogs(backlogs, options, outcome)),
    );
  await tryTo('the count of overdue forms', () => measureOverdue(all, options, outcome));
  if (!writer.dryRun && !signal.aborted)
    outcome.formsByStatus = await tryTo('the count of forms', () => countForms(options));
  outcome.quarantined += (await tryTo('the count of quarantined items', () => tidyAndCount(options))) ?? 0;
  outcome.counts.quarantined = outcome.quarantined;
}

const noDefinitions: Retentions = { policies: [], skipped: [] };

const stepSpan = (step: Stage | 'purge' | 'backlogs'): SpanOptions => ({ name: step, kind: 'internal' });

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

async function readDefinitions(options: ExpiryOptions, outcome: ExpiryOutcome): Promise<Retentions> {
  const keys = await options.writer.transact((client) => options.store.definitions(client));
  const retentions = await options.readRetentions(keys);
  reportDefinitions(retentions, options, outcome);
  return retentions;
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

/** Purges each table, even if the purge of another table fails. */
async function purgeAll(options: PacedOptions, outcome: ExpiryOutcome): Promise<void> {
  const { progress, log } = options;
  outcome.counts.purged = 0;
  progress.begin('purge', undefined);
  for (const kind of purges)
    await attempt(`the purge of ${kind}`, { log, outcome }, () => purgeOne(kind, options, outcome));
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
