// Settles claimed rows in the database, many in one statement. While Postgres is unavailable, outcomes wait in memory.
// If the process dies before they are stored, the claims expire and the rows are delivered again. If Postgres refuses
// to store one outcome, only the row of that outcome is quarantined. If Postgres refuses this too, the claim of the row
// expires, and the row is delivered again.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../service/clock.ts';
import { databaseRefusal, type QuarantineCause } from '../../service/quarantine/quarantine.ts';
import type { FailureLog } from './failure.ts';
import type { ClaimedRow, OutboxStore } from './store.ts';

/** The outcome of a claimed row. */
export type Outcome = { row: ClaimedRow } & (
  | { kind: 'accepted'; subscriberId: string | undefined }
  /** `files` replaces the files of the row, also below. */
  | { kind: 'failed'; notBefore: Date; refusals: number; files: readonly string[] | undefined }
  /** The row is not due before the time `notBefore`. */
  | { kind: 'postponed'; notBefore: Date; postponed: true; files: string[] | undefined }
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
  onSettled(accepted: number): void;
}

type RefusedRow = { row: ClaimedRow } & QuarantineCause;

/** Settles a batch. If Postgres refuses the batch, bisects it to find the refused rows, and returns them. */
async function inParts<O extends { row: ClaimedRow }>(
  batch: readonly O[],
  settle: (part: readonly O[]) => Promise<void>,
): Promise<RefusedRow[]> {
  try {
    await settle(batch);
    return [];
  } catch (error) {
    const cause = databaseRefusal(error);
    if (!cause) throw error;
    if (batch.length === 1) return batch.map(({ row }) => ({ row, ...cause }));
    const half = Math.ceil(batch.length / 2);
    const first = await inParts(batch.slice(0, half), settle);
    return [...first, ...(await inParts(batch.slice(half), settle))];
  }
}

/** Milliseconds for which outcomes are collected before they are settled. */
const linger = 20;
/** Milliseconds between two attempts to settle rows while Postgres is unavailable. */
const pause = 1_000;

export function createSettlements({ store, clock, failures, onSettled }: SettlementsOptions): Settlements {
  let waiting: Outcome[] = [];
  let flushing: Promise<void> | undefined;
  let stopping = false;

  /**
   * Settles a batch. The call can be repeated, because each statement changes only rows that still have this claim or
   * are not accepted yet.
   */
  async function settle(batch: readonly Outcome[]): Promise<{ accepted: number }> {
    const accepted = batch.filter((outcome) => outcome.kind === 'accepted');
    const failed = batch.filter(({ kind }) => kind === 'failed' || kind === 'untried' || kind === 'postponed');
    const unaccepted = await inParts(accepted, (part) => store.accept(part, clock()));
    const refused = [...batch.filter((outcome) => outcome.kind === 'refused'), ...unaccepted];
    const unfailed = await inParts(failed, (part) => store.fail(part));
    const kept = await inParts(refused, (part) => store.quarantine(part, clock()));
    const unsettled = new Set([...unfailed, ...kept].map(({ row }) => row));
    for (const { row, reason, detail } of refused)
      if (!unsettled.has(row)) failures.quarantined(row, { reason, detail });
    for (const { row, reason, detail } of [...unfailed, ...kept]) failures.unsettled(row, { reason, detail });
    failures.ended('postgres');
    return { accepted: accepted.length };
  }

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
