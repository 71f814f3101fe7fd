// Checks something outside the process before the first readiness, and repeats it until it passes. A setting that is
// proven wrong keeps the pod unready for as long as it is; an outage delays the first readiness for a limited time only.
import prom from 'prom-client';
import { retryUntilDone } from '../retry.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

/** What is set in this process is wrong, and waiting does not cure it. The message tells the operator what to check. */
export class WrongSetting extends Error {
  /** For the log; never a secret. */
  readonly facts: Record<string, unknown>;

  constructor(message: string, facts: Record<string, unknown> = {}) {
    super(message);
    this.name = 'WrongSetting';
    this.facts = facts;
  }
}

/** Times in milliseconds. */
export interface StartupPace {
  /** Longest wait for what cannot be reached. */
  patience: number;
  firstRetry: number;
  longestRetry: number;
}

export interface StartupCheckOptions {
  /** As log lines name it: `the identity provider`. */
  what: string;
  /** Throws WrongSetting for a setting that is proven wrong; any other error counts as an outage. */
  check(): Promise<void>;
  log: Logger;
  metrics: Metrics;
  pace?: Partial<StartupPace> | undefined;
}

export interface StartupCheck {
  /** What the pod still waits for; undefined once it need not wait any more. */
  problem(): string | undefined;
  stop(): void;
}

const usualPace: StartupPace = { patience: 60_000, firstRetry: 1_000, longestRetry: 15_000 };

/** Begins at once. It ends with the first success: what breaks later does not make this pod worse than others. */
export function startupCheck({ what, check, log, metrics, pace }: StartupCheckOptions): StartupCheck {
  const { patience, firstRetry, longestRetry } = { ...usualPace, ...pace };
  const count = countOutcomes(metrics);
  const stop = new AbortController();
  let problem: string | undefined = `${what} has not answered yet`;
  let isWrong = false;
  let isOver = false;

  const timer = setTimeout(() => {
    isOver = true;
    if (isWrong || problem === undefined) return;
    problem = undefined;
    log.warn({ waitedMs: patience }, `${what} cannot be reached; the pod no longer waits for it`);
  }, patience).unref();

  function noteFailure(error: unknown): void {
    if (stop.signal.aborted) return;
    if (error instanceof WrongSetting) {
      count.inc({ outcome: 'wrong_setting' });
      isWrong = true;
      // Only what is local ends readiness once the pod was ready.
      if (problem !== undefined) problem = error.message;
      log.error(error.facts, error.message);
      return;
    }
    count.inc({ outcome: 'unreachable' });
    if (isWrong || isOver) return;
    problem = `${what} cannot be reached`;
    log.warn({ err: error }, problem);
  }

  async function run(): Promise<void> {
    await check();
    count.inc({ outcome: 'ok' });
    clearTimeout(timer);
    problem = undefined;
  }
  const backoff = { first: firstRetry, cap: longestRetry };
  void retryUntilDone(run, { backoff, signal: stop.signal, onFailure: noteFailure });

  return {
    problem: () => problem,
    stop() {
      clearTimeout(timer);
      stop.abort();
    },
  };
}

function countOutcomes({ registry }: Metrics) {
  return new prom.Counter({
    name: 'formgate_startup_checks_total',
    help: 'Checks of the identity provider before the first readiness, by outcome',
    labelNames: ['outcome'],
    registers: [registry],
  });
}
