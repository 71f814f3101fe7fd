// Settles claimed rows in the database, many in one statement. While Postgres is unavailable, outcomes wait in memory.
// If the process dies before they are stored, the claims expire and the rows are delivered again. If Postgres refuses
// to store one outcome, only the row of that outcome is quarantined.
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
    const refused = [...batch.filter((outcome) => outcome.kind === 'refused'), ...(await accept(accepted))];
    await store.fail(batch.filter(({ kind }) => kind === 'failed' || kind === 'untried' || kind === 'postponed'));
    await store.quarantine(refused, clock());
    for (const { row, reason, detail } of refused) failures.quarantined(row, { reason, detail });
    failures.ended('postgres');
    return { accepted: accepted.length };
  }

  /** Records accepted rows. If Postgres refuses the batch, bisects it to find the refused rows, and returns them. */
  async function accept(batch: readonly Extract<Outcome, { kind: 'accepted' }>[]) {
    const refused: ({ row: ClaimedRow } & QuarantineCause)[] = [];
    try {
      await store.accept(batch, clock());
    } catch (error) {
      const cause = databaseRefusal(error);
      if (!cause) throw error;
      const half = Math.ceil(batch.length / 2);
      if (batch.length === 1) for (const { row } of batch) refused.push({ row, ...cause });
      else for (const part of [batch.slice(0, half), batch.slice(half)]) refused.push(...(await accept(part)));
    }
    return refused;
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
