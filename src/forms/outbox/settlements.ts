// Settles claimed rows in the database, many in one statement. While Postgres is unavailable, outcomes wait in memory.
// If the process dies before they are stored, the claims expire and the rows are delivered again. If Postgres refuses
// to store one outcome, only the row of that outcome is quarantined. If Postgres refuses this too, the claim of the row
// expires, and the row is delivered again. If Postgres takes too long to store one outcome, only its row is delivered
// again later.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../service/clock.ts';
import { isLockTimeout, isStatementTimeout } from '../../service/postgres/postgres.ts';
import { databaseRefusal, type QuarantineCause } from '../../service/quarantine/quarantine.ts';
import { type Backoff, retryDelay } from '../../service/retry.ts';
import type { FailureLog } from './failure-log.ts';
import type { UnacceptedRow } from './settle-statements.ts';
import { type ClaimedRow, longestSingle, type OutboxStore } from './store.ts';

/** The outcome of a claimed row. */
export type Outcome = { row: ClaimedRow } & (
  | { kind: 'accepted'; subscriberId: string | undefined }
  /** `files` replaces the files of the row, also below. */
  | { kind: 'failed'; notBefore: Date; refusals: number; files: readonly string[] | undefined }
  /** The row is not due before the time `notBefore`. */
  | { kind: 'postponed'; notBefore: Date; files: string[] | undefined }
  /** The row was claimed and given back without an attempt. */
  | { kind: 'untried' }
  | ({ kind: 'refused' } & QuarantineCause)
);

export interface Settlements {
  /** Ignores outcomes that arrive after `stop`: the claims of their rows expire, and the deliveries are repeated. */
  add(outcome: Outcome): void;
  /** Returns the number of outcomes that are not settled yet. */
  size(): number;
  /** Settles the remaining outcomes. Makes only one attempt. */
  stop(): Promise<void>;
}

export interface SettlementsOptions {
  store: Pick<OutboxStore, 'accept' | 'fail' | 'quarantine'>;
  clock: Clock;
  failures: FailureLog;
  /** Backoff of a row whose outcome Postgres takes too long to store. */
  pace: { retry: { row: Backoff } };
  onSettled(accepted: number): void;
}

type RefusedRow = { row: ClaimedRow } & QuarantineCause;

/** Number of parts into which a refused batch is divided. */
const divisor = 8;

/** Returns the cause that is logged for a row whose statement takes too long, or waits too long for a lock. */
function lateness(error: unknown): QuarantineCause | undefined {
  if (isStatementTimeout(error)) return { reason: 'database-refused', detail: 'SQLSTATE 57014' };
  return isLockTimeout(error) ? { reason: 'database-refused', detail: 'SQLSTATE 55P03' } : undefined;
}

/**
 * Settles a batch. If Postgres refuses the batch, divides it to find the refused rows, and returns them. If Postgres
 * takes too long for the batch, settles its rows one by one, each within `longestSingle`, and passes a row that takes
 * too long alone to `giveBack`. Without `giveBack`, throws the timeout.
 */
async function inParts<O extends { row: ClaimedRow }>(
  batch: readonly O[],
  settle: (part: readonly O[], timeout?: number) => Promise<void>,
  giveBack?: (row: ClaimedRow, late: QuarantineCause) => Promise<void>,
  timeout?: number,
): Promise<RefusedRow[]> {
  try {
    await settle(batch, timeout);
    return [];
  } catch (error) {
    const cause = databaseRefusal(error);
    const late = giveBack && lateness(error);
    if (!cause && !late) throw error;
    const [first] = batch;
    if (batch.length === 1 && first) {
      if (cause) return [{ row: first.row, ...cause }];
      if (late) await giveBack?.(first.row, late);
      return [];
    }
    const refused: RefusedRow[] = [];
    const size = late ? 1 : Math.ceil(batch.length / divisor);
    for (let at = 0; at < batch.length; at += size)
      refused.push(...(await inParts(batch.slice(at, at + size), settle, giveBack, late && longestSingle)));
    return refused;
  }
}

/** Milliseconds for which outcomes are collected before they are settled. */
const linger = 20;
/** Milliseconds between two attempts to settle rows while Postgres is unavailable. */
const pause = 1_000;

/**
 * Returns a function that settles a batch. The call can be repeated, because each statement changes only rows that
 * still have this claim or are not accepted yet.
 */
function createSettle({ store, clock, failures, pace }: SettlementsOptions) {
  return async (batch: readonly Outcome[]): Promise<{ accepted: number }> => {
    const unsettled: RefusedRow[] = [];
    const fail = async (rows: readonly (UnacceptedRow & { row: ClaimedRow })[]) =>
      void unsettled.push(...(await inParts(rows, (part) => store.fail(part))));
    // This statement takes little time, so if it times out too, Postgres is too slow for any statement.
    const giveBack = async (row: ClaimedRow, late: QuarantineCause) => {
      await fail([
        { kind: 'failed', row, notBefore: new Date(clock().getTime() + retryDelay(row.attempts, pace.retry.row)) },
      ]);
      unsettled.push({ row, ...late });
    };
    const accepted = batch.filter((outcome) => outcome.kind === 'accepted');
    const unaccepted = batch.filter((o) => o.kind === 'failed' || o.kind === 'untried' || o.kind === 'postponed');
    const refusedByPostgres = await inParts(
      accepted,
      (part, timeout) => store.accept(part, clock(), timeout),
      giveBack,
    );
    const refused = [...batch.filter((outcome) => outcome.kind === 'refused'), ...refusedByPostgres];
    await fail(unaccepted);
    const quarantine = (part: readonly RefusedRow[], timeout?: number) => store.quarantine(part, clock(), timeout);
    unsettled.push(...(await inParts(refused, quarantine, giveBack)));
    const left = new Set(unsettled.map(({ row }) => row));
    for (const { row, reason, detail } of refused) if (!left.has(row)) failures.quarantined(row, { reason, detail });
    for (const { row, reason, detail } of unsettled) failures.unsettled(row, { reason, detail });
    failures.ended('postgres');
    return { accepted: accepted.length };
  };
}

export function createSettlements(options: SettlementsOptions): Settlements {
  const { failures, onSettled } = options;
  const settle = createSettle(options);
  let waiting: Outcome[] = [];
  let flushing: Promise<void> | undefined;
  let stopping = false;

  async function flush(): Promise<void> {
    await sleep(linger);
    while (waiting.length > 0) {
      const batch = [...waiting];
      try {
        const { accepted } = await settle(batch);
        waiting = waiting.slice(batch.length);
        onSettled(accepted);
      } catch (error) {
        failures.failed('postgres', error);
        if (stopping) return;
        await sleep(pause);
      }
    }
  }

  return {
    add(outcome) {
      if (stopping) return;
      waiting.push(outcome);
      flushing ??= flush().finally(() => {
        flushing = undefined;
      });
    },
    size: () => waiting.length,
    async stop() {
      stopping = true;
      await flushing;
    },
  };
}
