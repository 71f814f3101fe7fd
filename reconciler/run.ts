// Performs one run: compares the clocks, acquires the lease, expires drafts, syncs core clients, writes the record of
// the run and releases the lease. If a step fails, the run continues with the other steps, and the result lists the
// failure. Other modules decide what happens to individual forms and clients.
import { type RunRecord, writeRun } from '../src/forms/expiry/run-store.ts';
import type { SpanOptions } from '../src/service/tracing/span.ts';
import { traced } from '../src/service/tracing/tracing.ts';
import { type ClockCheck, checkClock } from './clock-check.ts';
import type { ClientSync } from './core-clients/sync.ts';
import { expire } from './expire.ts';
import type { ExpiryOptions, ExpiryOutcome } from './expiry-options.ts';
import { acquireLease, type Lease, LeaseLostError, readOnlyWriter, type Writer } from './lease.ts';
import type { RunArguments } from './options.ts';
import { fail } from './step.ts';

export interface RunOptions extends Omit<ExpiryOptions, 'writer'>, ClockCheck {
  arguments: Pick<RunArguments, 'only' | 'dryRun' | 'allowPrune'>;
  clients: ClientSync;
  /** Milliseconds after which the lease expires if its run has died. */
  leaseDuration: number;
}

export interface RunResult {
  /**
   * `skipped`: another run was active. `lost`: another run took the lease, because this run did not renew it in time.
   * `stopped`: the run was asked to end early. Only `failed` counts as a failure.
   */
  outcome: RunRecord['outcome'] | 'skipped' | 'lost';
  dryRun: boolean;
  milliseconds: number;
  counts: Record<string, number>;
  /** Number of core client resources for each condition. Undefined if the run did not read the resources. */
  conditions: Record<string, number> | undefined;
  failures: string[];
  /** Number of items that were quarantined since the last run, by this run or by other processes. */
  quarantined: number;
}

/** The intermediate results of a run. */
interface Work extends ExpiryOutcome {
  started: Date;
  conditions: Record<string, number> | undefined;
  expirySucceeded: boolean | null;
  clientsSucceeded: boolean | null;
  /** Number of `failures` that concern the sync of core clients. */
  clientFailures: number;
}

/** Performs one run. Does not reject if the database or the platform fails. The result then contains the failure. */
export async function run(options: RunOptions): Promise<RunResult> {
  const { clock, log } = options;
  const work: Work = {
    started: clock(),
    counts: {},
    failures: [],
    oldestOverdue: undefined,
    overdueDeletions: undefined,
    formsByStatus: undefined,
    quarantined: 0,
    conditions: undefined,
    expirySucceeded: null,
    clientsSucceeded: null,
    clientFailures: 0,
  };
  let lease: Lease | undefined;
  try {
    await checkClock(options.pool, options);
    if (options.arguments.dryRun) {
      await runSteps(options, work, { ...readOnlyWriter(options), renew: () => Promise.resolve() });
      return resultOf(work, options, endOf(work, options));
    }
    lease = await acquireLease({ ...options, duration: options.leaseDuration });
    if (!lease) return resultOf(work, options, 'skipped');
    await runSteps(options, work, { dryRun: false, transact: lease.transact, renew: lease.renew });
    await finish(lease, work, options);
    return resultOf(work, options, endOf(work, options));
  } catch (error) {
    if (error instanceof LeaseLostError) return resultOf(work, options, 'lost');
    fail(work, log, 'the run', error);
    return resultOf(work, options, 'failed');
  } finally {
    lease?.stopRenewing();
  }
}

type LeaseHolder = Writer & Pick<Lease, 'renew'>;

async function runSteps(options: RunOptions, work: Work, holder: LeaseHolder): Promise<void> {
  const { only } = options.arguments;
  const expiry = { ...options, writer: holder };
  const expireBacklogs = only === 'clients' ? undefined : await tryExpiry(options, work, () => expire(expiry, work));
  // The backlogs can take until the run is stopped, so the core clients come before them.
  if (only !== 'expire' && !options.signal.aborted) await syncClients(options, work, holder);
  if (expireBacklogs) await tryExpiry(options, work, expireBacklogs);
}

/** Returns the result of a part of the expiry, or undefined if it failed. */
async function tryExpiry<T>(options: RunOptions, work: Work, part: () => Promise<T>): Promise<T | undefined> {
  let result: T | undefined;
  try {
    result = await part();
  } catch (error) {
    if (error instanceof LeaseLostError) throw error;
    fail(work, options.log, 'the expiry', error);
  }
  work.expirySucceeded = work.failures.length === work.clientFailures && !options.signal.aborted;
  return result;
}

const syncSpan: SpanOptions = { name: 'sync core clients', kind: 'internal' };

async function syncClients(options: RunOptions, work: Work, holder: LeaseHolder): Promise<void> {
  const before = work.failures.length;
  work.clientsSucceeded = await trySync(options, work, holder);
  work.clientFailures = work.failures.length - before;
}

/** Returns true if the sync succeeded, false if it failed, and null if the resources were not read. */
async function trySync(options: RunOptions, work: Work, holder: LeaseHolder): Promise<boolean | null> {
  const { clients, log, signal } = options;
  const { allowPrune } = options.arguments;
  const { dryRun, renew, transact } = holder;
  try {
    const sync = () => clients.sync({ dryRun, allowPrune, renewLease: renew, transact, signal });
    const { counts, conditions, failures, skipped, quarantined } = await traced(syncSpan, sync);
    for (const [name, value] of Object.entries(counts)) work.counts[`clients.${name}`] = value;
    if (skipped === undefined) work.conditions = conditions;
    else log.info({ reason: skipped }, 'resources skipped');
    work.failures.push(...failures);
    work.quarantined += quarantined ?? 0;
    if (failures.length > 0) return false;
    return skipped === undefined ? true : null;
  } catch (error) {
    if (error instanceof LeaseLostError) throw error;
    fail(work, log, 'the sync of core clients', error);
    return false;
  }
}

function endOf({ failures }: Work, { signal }: RunOptions): RunRecord['outcome'] {
  if (failures.length > 0) return 'failed';
  return signal.aborted ? 'stopped' : 'succeeded';
}

/** Writes the record and releases the lease in one transaction, so that the next run always finds the record. */
async function finish(lease: Lease, work: Work, options: RunOptions): Promise<void> {
  const { started, counts, conditions, expirySucceeded, clientsSucceeded, oldestOverdue, overdueDeletions } = work;
  await lease.release((client) =>
    writeRun(client, {
      generation: lease.generation,
      started,
      finished: options.clock(),
      outcome: endOf(work, options),
      expirySucceeded,
      clientsSucceeded,
      counts,
      conditions: conditions ?? null,
      oldestOverdue: oldestOverdue ?? null,
      overdueDeletions: overdueDeletions ?? null,
      formsByStatus: work.formsByStatus ?? null,
      retention: options.defaults,
    }),
  );
}

function resultOf(work: Work, options: RunOptions, outcome: RunResult['outcome']): RunResult {
  const { counts, conditions, failures, quarantined } = work;
  const milliseconds = options.clock().getTime() - work.started.getTime();
  return { outcome, dryRun: options.arguments.dryRun, milliseconds, counts, conditions, failures, quarantined };
}
