// Reports the progress of a run. On a terminal, overwrites one line. Elsewhere, writes a log line every ten seconds.
import type { Clock } from '../src/service/clock.ts';
import type { Logger } from '../src/service/operations/log.ts';

export interface Progress {
  /** Begins the report of a stage. `total` is the number of items in the stage; undefined if it is unknown. */
  begin(what: string, total: number | undefined): void;
  add(count: number): void;
  end(): void;
}

export interface ProgressOptions {
  clock: Clock;
  log: Logger;
  /** Writes a text to the terminal. Undefined if the output is not a terminal. */
  terminal: ((text: string) => void) | undefined;
}

/** Milliseconds between two reports. */
const intervals = { terminal: 200, log: 10_000 };

export interface ProgressReport {
  done: number;
  total: number | undefined;
  /** Items per second, rounded. */
  rate: number;
  secondsLeft: number | undefined;
}

export function reportOf(done: number, total: number | undefined, milliseconds: number): ProgressReport {
  const rate = milliseconds > 0 ? Math.round((done / milliseconds) * 1_000) : 0;
  const left = total === undefined ? undefined : Math.max(total - done, 0);
  return { done, total, rate, secondsLeft: left === undefined || rate === 0 ? undefined : Math.ceil(left / rate) };
}

export function createProgress({ clock, log, terminal }: ProgressOptions): Progress {
  let current = { what: '', total: undefined as number | undefined, done: 0, since: 0, reported: 0 };
  const now = () => clock().getTime();

  function report(): void {
    const { what, done, total, since } = current;
    const progress = reportOf(done, total, now() - since);
    if (terminal) terminal(`\r\u001b[K${describeReport(what, progress)}`);
    else log.info({ stage: what, ...progress }, 'progress');
  }

  return {
    begin(what, total) {
      current = { what, total, done: 0, since: now(), reported: now() };
    },
    add(count) {
      current.done += count;
      if (now() - current.reported < (terminal ? intervals.terminal : intervals.log)) return;
      current.reported = now();
      report();
    },
    end() {
      if (terminal) terminal('\r\u001b[K');
    },
  };
}

/** Formats a report, such as `lock: 12,000 of 1,000,000, 3,400 a second, 4 min 51 s left`. */
export function describeReport(what: string, { done, total, rate, secondsLeft }: ProgressReport): string {
  const number = (value: number) => value.toLocaleString('en');
  const shown = [
    total === undefined ? number(done) : `${number(done)} of ${number(total)}`,
    `${number(rate)} a second`,
    ...(secondsLeft === undefined ? [] : [`${describeSeconds(secondsLeft)} left`]),
  ];
  return `${what}: ${shown.join(', ')}`;
}

function describeSeconds(seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
