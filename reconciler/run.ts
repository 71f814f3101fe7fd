// One run: takes the turn, expires drafts, syncs core clients, writes its record, gives the turn back. What fails is
// told at the end; what can be done without it is done. It decides nothing about single forms or clients.
import type pg from 'pg';
import { createRunStore, type RunRecord } from '../src/forms/expiry/run-store.ts';
import type { Logger } from '../src/service/operations/log.ts';
import type { ClientSync } from './core-clients/sync.ts';
import { type ExpiryOptions, type ExpiryOutcome, expire } from './expire.ts';
import type { RunArguments } from './options.ts';
import { type Turn, TurnLostError, takeTurn } from './turn.ts';
import type { Writer } from './writer.ts';

export interface RunOptions extends Omit<ExpiryOptions, 'writer'> {
  arguments: Pick<RunArguments, 'only' | 'dryRun' | 'allowPrune'>;
  clients: ClientSync;
  /** Milliseconds that the turn outlives a run that died. */
  lease: number;
}

export interface RunResult {
  /**
   * `skipped`: another run was at work. `lost`: another run took over, because this one gave no sign of life.
   * `stopped`: asked to end before it was through. Only `failed` is a failure.
   */
  outcome: RunRecord['outcome'] | 'skipped' | 'lost';
  dryRun: boolean;
  milliseconds: number;
  counts: Record<string, number>;
  /** Undefined when the run did not look at resources. */
  conditions: Record<string, number> | undefined;
  failures: string[];
  /** Items that were quarantined since the last run, by this one or by others. */
  quarantined: number;
}

/** What a run has done so far. */
interface Work extends ExpiryOutcome {
  started: Date;
  conditions: Record<string, number> | undefined;
  expirySucceeded: boolean | null;
  clientsSucceeded: boolean | null;
}

/** Never rejects for what fails outside: that is a result. */
export async function run(options: RunOptions): Promise<RunResult> {
  const { pool, clock, lease, log } = options;
  const work: Work = {
    started: clock(),
    counts: {},
    failures: [],
    oldestOverdue: undefined,
    overdueDeletions: undefined,
    quarantined: 0,
    conditions: undefined,
    expirySucceeded: null,
    clientsSucceeded: null,
  };
  if (options.arguments.dryRun) {
    await doParts(options, work, readOnly(pool));
    return resultOf(work, options, endOf(work, options));
  }
  let turn: Turn | undefined;
  try {
    turn = await takeTurn({ pool, clock, lease });
    if (!turn) return resultOf(work, options, 'skipped');
    await doParts(options, work, { dryRun: false, transact: turn.transact, assert: turn.assert });
    await finish(turn, work, options);
    return resultOf(work, options, endOf(work, options));
  } catch (error) {
    if (error instanceof TurnLostError) return resultOf(work, options, 'lost');
    fail(work, log, 'the run', error);
    return resultOf(work, options, 'failed');
  } finally {
    turn?.abandon();
  }
}

type Holder = Writer & { assert(): Promise<void> };

/** Transactions that cannot write. */
function readOnly(pool: pg.Pool): Holder {
  return {
    dryRun: true,
    assert: () => Promise.resolve(),
    async transact(work) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN READ ONLY');
        return await work(client);
      } finally {
        await client.query('ROLLBACK').catch(() => undefined);
        client.release();
      }
    },
  };
}

async function doParts(options: RunOptions, work: Work, holder: Holder): Promise<void> {
  const { only } = options.arguments;
  if (only !== 'clients') work.expirySucceeded = await doExpiry(options, work, holder);
  if (only !== 'expire' && !options.signal.aborted) work.clientsSucceeded = await doClients(options, work, holder);
}

async function doExpiry(options: RunOptions, work: Work, writer: Writer): Promise<boolean> {
  try {
    await expire({ ...options, writer }, work);
  } catch (error) {
    if (error instanceof TurnLostError) throw error;
    fail(work, options.log, 'the expiry', error);
  }
  return work.failures.length === 0 && !options.signal.aborted;
}

async function doClients(options: RunOptions, work: Work, { dryRun, assert }: Holder): Promise<boolean> {
  const { clients, log, signal } = options;
  const { allowPrune } = options.arguments;
  try {
    const { counts, conditions, failures, skipped, quarantined } = await clients.sync({
      dryRun,
      allowPrune,
      assertTurn: assert,
      signal,
    });
    for (const [name, value] of Object.entries(counts)) work.counts[`clients.${name}`] = value;
    if (skipped === undefined) work.conditions = conditions;
    else log.info({ reason: skipped }, 'resources were not looked at');
    work.failures.push(...failures);
    work.quarantined += quarantined ?? 0;
    return failures.length === 0;
  } catch (error) {
    if (error instanceof TurnLostError) throw error;
    fail(work, log, 'the sync of core clients', error);
    return false;
  }
}

function fail(work: Work, log: Logger, what: string, error: unknown): void {
  work.failures.push(`${what} failed`);
  log.error({ err: error }, `${what} failed`);
}

function endOf({ failures }: Work, { signal }: RunOptions): RunRecord['outcome'] {
  if (failures.length > 0) return 'failed';
  return signal.aborted ? 'stopped' : 'succeeded';
}

/** The record and the end of the turn are one transaction: whoever has the next turn finds this run's record. */
async function finish(turn: Turn, work: Work, options: RunOptions): Promise<void> {
  const { started, counts, conditions, expirySucceeded, clientsSucceeded, oldestOverdue, overdueDeletions } = work;
  await turn.release((client) =>
    createRunStore().write(client, {
      generation: turn.generation,
      started,
      finished: options.clock(),
      outcome: endOf(work, options),
      expirySucceeded,
      clientsSucceeded,
      counts,
      conditions: conditions ?? null,
      oldestOverdue: oldestOverdue ?? null,
      overdueDeletions: overdueDeletions ?? null,
    }),
  );
}

function resultOf(work: Work, options: RunOptions, outcome: RunResult['outcome']): RunResult {
  const { counts, conditions, failures, quarantined } = work;
  const milliseconds = options.clock().getTime() - work.started.getTime();
  return { outcome, dryRun: options.arguments.dryRun, milliseconds, counts, conditions, failures, quarantined };
}
