// Records outcomes of deliveries in the database, all that are there in one statement. While the database is away they
// wait here; what a crash loses is delivered again when its claim has run out.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../service/clock.ts';
import type { FailureReport } from './failure.ts';
import type { AcceptedRow, FailedRow, OutboxStore } from './store.ts';

/** Milliseconds in which outcomes gather before they are recorded. */
const linger = 20;
/** Milliseconds between tries while the database is away. */
const pause = 1_000;

export interface Recorder {
  accepted(outcome: AcceptedRow): void;
  failed(outcome: FailedRow): void;
  /** Outcomes that are not recorded yet. */
  waiting(): number;
  /** Records what is left, once; what cannot be recorded now is left to its claim. */
  stop(): Promise<void>;
}

export interface RecorderOptions {
  store: Pick<OutboxStore, 'accept' | 'fail'>;
  clock: Clock;
  report: FailureReport;
  onRecorded(accepted: number): void;
}

export function createRecorder({ store, clock, report, onRecorded }: RecorderOptions): Recorder {
  let accepted: AcceptedRow[] = [];
  let failed: FailedRow[] = [];
  let flushing: Promise<void> | undefined;
  let stopping = false;
  const waiting = () => accepted.length + failed.length;

  /** Rows leave the lists only when they are recorded, so that they count as under way until then. */
  async function record(): Promise<void> {
    const [done, undone] = [[...accepted], [...failed]];
    if (done.length > 0) await store.accept(done, clock());
    accepted = accepted.slice(done.length);
    if (undone.length > 0) await store.fail(undone);
    failed = failed.slice(undone.length);
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
    waiting,
    async stop() {
      stopping = true;
      await flushing;
    },
  };
}
