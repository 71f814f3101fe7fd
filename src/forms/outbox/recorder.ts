// Records outcomes of deliveries in the database, many in one statement. While the database is away they wait here; what a
// crash loses is delivered again when its claim has run out. An outcome that Postgres refuses to store fails its own row.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../service/clock.ts';
import { databaseRefusal } from '../../service/quarantine/quarantine.ts';
import type { FailureReport } from './failure.ts';
import type { AcceptedRow, ClaimedRow, FailedRow, OutboxStore, RefusedRow } from './store.ts';

/** Milliseconds in which outcomes gather before they are recorded. */
const linger = 20;
/** Milliseconds between tries while the database is away. */
const pause = 1_000;

/** With the claim, which quarantine asks for. */
export type AcceptedOutcome = AcceptedRow & { row: ClaimedRow };

export interface Recorder {
  accepted(outcome: AcceptedOutcome): void;
  failed(outcome: FailedRow): void;
  quarantined(outcome: RefusedRow): void;
  /** Outcomes that are not recorded yet. */
  waiting(): number;
  /** Records what is left, once; what cannot be recorded now is left to its claim. */
  stop(): Promise<void>;
}

export interface RecorderOptions {
  store: Pick<OutboxStore, 'accept' | 'fail' | 'quarantine'>;
  clock: Clock;
  report: FailureReport;
  onRecorded(accepted: number): void;
}

export function createRecorder({ store, clock, report, onRecorded }: RecorderOptions): Recorder {
  let accepted: AcceptedOutcome[] = [];
  let failed: FailedRow[] = [];
  let refused: RefusedRow[] = [];
  let flushing: Promise<void> | undefined;
  let stopping = false;
  const waiting = () => accepted.length + failed.length + refused.length;

  /** Rows leave the lists only when they are recorded, so that they count as under way until then. */
  async function record(): Promise<void> {
    const [done, undone] = [[...accepted], [...failed]];
    refused.push(...(await accept(done, { store, clock })));
    accepted = accepted.slice(done.length);
    if (undone.length > 0) await store.fail(undone);
    failed = failed.slice(undone.length);
    const aside = [...refused];
    if (aside.length > 0) await store.quarantine(aside, clock());
    for (const { row, reason, detail } of aside) report.quarantined(row, { reason, detail });
    refused = refused.slice(aside.length);
    report.ended('postgres');
    onRecorded(done.length);
  }

  async function flush(): Promise<void> {
    await sleep(linger);
    while (waiting() > 0) {
      try {
        await record();
      } catch (error) {
        report.failed('postgres', error);
        if (stopping) return;
        await sleep(pause);
      }
    }
  }

  function schedule(): void {
    flushing ??= flush().finally(() => {
      flushing = undefined;
    });
  }

  return {
    accepted(outcome) {
      accepted.push(outcome);
      schedule();
    },
    failed(outcome) {
      failed.push(outcome);
      schedule();
    },
    quarantined(outcome) {
      refused.push(outcome);
      schedule();
    },
    waiting,
    async stop() {
      stopping = true;
      await flushing;
    },
  };
}

/** Halves what Postgres refuses until the outcome that it refuses stands alone; answers those. */
async function accept(
  rows: readonly AcceptedOutcome[],
  to: Pick<RecorderOptions, 'store' | 'clock'>,
): Promise<RefusedRow[]> {
  const [only] = rows;
  if (!only) return [];
  try {
    await to.store.accept(rows, to.clock());
    return [];
  } catch (error) {
    const cause = databaseRefusal(error);
    if (!cause) throw error;
    if (rows.length === 1) return [{ row: only.row, ...cause }];
  }
  const half = Math.ceil(rows.length / 2);
  return [...(await accept(rows.slice(0, half), to)), ...(await accept(rows.slice(half), to))];
}
