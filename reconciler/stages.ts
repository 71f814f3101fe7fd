// Runs the stages of the expiry (warn, lock, delete) over all definitions, batch by batch. If a batch fails, continues
// with the next definition, so that a failure affects as few forms as possible. The stage still counts as failed.
import type { Policy } from '../src/forms/expiry/expiry.ts';
import type { Position, Stage } from '../src/forms/expiry/store.ts';
import { auditLog, serviceEvent } from '../src/service/operations/audit.ts';
import type { ExpiryOptions, ExpiryOutcome, PacedOptions } from './expiry-options.ts';
import { type IsolatedBatch, takeIsolated } from './isolate.ts';
import { withPause } from './pace.ts';
import { endsRun } from './step.ts';

/** Number of form definitions per SQL statement. */
const policiesAtOnce = 200;
/** A stage ends after this many failed batches in a row, because it would probably fail for all definitions. */
const mostFailures = 3;

export function* inChunks(policies: readonly Policy[]): Generator<readonly Policy[]> {
  for (let start = 0; start < policies.length; start += policiesAtOnce)
    yield policies.slice(start, start + policiesAtOnce);
}

const changedBy = { warn: 'warned', lock: 'locked', delete: 'deleted' } as const;

/** Returns the policies whose forms a stage scans. */
export const policiesOf = (stage: Stage, all: readonly Policy[]): readonly Policy[] =>
  stage === 'warn' ? all.filter(({ retention }) => retention.warnBefore > 0) : all;

/** Runs a stage. If a batch fails, processes as many other definitions as possible, and then rejects. */
export async function walk(stage: Stage, all: readonly Policy[], options: PacedOptions, outcome: ExpiryOutcome) {
  const { store, pool, clock, progress } = options;
  const policies = policiesOf(stage, all);
  outcome.counts[changedBy[stage]] = 0;
  const total = async () => {
    let sum = 0;
    for (const chunk of inChunks(policies)) sum += await store.count(pool, stage, chunk, clock());
    return sum;
  };
  // The total is only for the progress report, so a failure to determine it is ignored.
  progress.begin(stage, await total().catch(() => undefined));
  const failed = createFailures();
  for (const chunk of inChunks(policies)) {
    const unchanged = await walkChunk(stage, chunk, { options, outcome, failed });
    // The second pass handles the forms that other transactions had locked during the first pass.
    if (stage === 'lock' && unchanged > 0) await walkChunk(stage, chunk, { options, outcome, failed });
  }
  progress.end();
  failed.throwFirst();
}

/** Collects the failures of a stage. */
export function createFailures() {
  const errors: unknown[] = [];
  let inARow = 0;
  return {
    succeeded() {
      inARow = 0;
    },
    /** Records the failure of a batch. Throws it if the stage cannot continue. */
    add(error: unknown) {
      errors.push(error);
      inARow += 1;
      if (inARow === mostFailures || endsRun(error)) throw error;
    },
    throwFirst() {
      if (errors.length > 0) throw errors[0];
    },
  };
}

export interface Walk {
  options: PacedOptions;
  outcome: ExpiryOutcome;
  failed: ReturnType<typeof createFailures>;
}

/** Processes a chunk of definitions. Returns the number of forms that were scanned but not changed. */
async function walkChunk(stage: Stage, chunk: readonly Policy[], walk: Walk): Promise<number> {
  let unchanged = 0;
  for (let position: Position | undefined = { policies: chunk }; position && !walk.options.signal.aborted; ) {
    const { walked, changed, next } = await takeNext({ stage, position }, walk);
    unchanged += walked - changed;
    position = next;
  }
  return unchanged;
}

interface Taken {
  walked: number;
  changed: number;
  next: Position | undefined;
}

/**
 * Processes the next batch of at most `most` forms, and pauses. If the batch fails, records the failure, and continues
 * with the next definition.
 */
export async function takeNext(
  { stage, position, most = Number.POSITIVE_INFINITY }: { stage: Stage; position: Position; most?: number },
  { options, outcome, failed }: Walk,
): Promise<Taken> {
  const changed = (batch: IsolatedBatch) => batch[changedBy[stage]];
  try {
    const batch = await withPause(options, changed, () =>
      takeIsolated({ stage, position, limit: Math.min(options.pace.size(), most) }, options),
    );
    count(stage, batch, options, outcome);
    options.progress.add(batch.walked);
    failed.succeeded();
    return { walked: batch.walked, changed: changed(batch), next: batch.next };
  } catch (error) {
    failed.add(error);
    return { walked: 0, changed: 0, next: afterDefinition(position) };
  }
}

/** Returns the position of the next definition. */
function afterDefinition({ policies: [, ...others] }: Position): Position | undefined {
  return others.length > 0 ? { policies: others } : undefined;
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
