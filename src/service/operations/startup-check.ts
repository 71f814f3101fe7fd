// Checks a dependency before the pod first becomes ready, and repeats the check until it passes. A setting that is
// certainly wrong keeps the pod unready; an outage delays readiness only for a limited time.
import { retryUntilDone } from '../retry.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import { createStartupMetrics } from './startup-metrics.ts';

/** Thrown to explain to an operator why the process cannot start. The message is logged without a stack. */
export class StartupError extends Error {}

/**
 * Thrown if a setting of this process is wrong, so that waiting does not help. The message tells the operator what to
 * check.
 */
export class WrongSetting extends Error {
  /** Fields for the log; never a secret. */
  readonly facts: Record<string, unknown>;
  /**
   * True if a later outage disproves the error: a host that did not exist may exist now, for example because its
   * Service was created late.
   */
  readonly mayPass: boolean;

  constructor(message: string, facts: Record<string, unknown> = {}, { mayPass = false } = {}) {
    super(message);
    this.name = 'WrongSetting';
    this.facts = facts;
    this.mayPass = mayPass;
  }
}

/** Times in milliseconds. */
export interface StartupPace {
  /** Longest wait for a dependency that cannot be reached. */
  patience: number;
  firstRetry: number;
  longestRetry: number;
}

export interface StartupCheckOptions {
  /** Name of the dependency in log messages, such as `the identity provider`. */
  what: string;
  /** Throws WrongSetting if a setting is certainly wrong. Any other error counts as an outage. */
  check(): Promise<void>;
  log: Logger;
  metrics: Metrics;
  pace?: Partial<StartupPace> | undefined;
}

export interface StartupCheck {
  /** Returns why the pod is not ready yet, or undefined once this check no longer delays readiness. */
  problem(): string | undefined;
  stop(): void;
}

const usualPace: StartupPace = { patience: 60_000, firstRetry: 1_000, longestRetry: 15_000 };

/**
 * Starts the check immediately, and repeats it until the first success. Later outages are not checked, because they
 * affect all pods alike.
 */
export function startupCheck({ what, check, log, metrics, pace }: StartupCheckOptions): StartupCheck {
  const { patience, firstRetry, longestRetry } = { ...usualPace, ...pace };
  const count = createStartupMetrics(metrics);
  const stop = new AbortController();
  let problem: string | undefined = `${what} has not responded yet`;
  let wrong: WrongSetting | undefined;
  let isOver = false;

  function waitNoLonger(): void {
    if (wrong || problem === undefined) return;
    problem = undefined;
    log.warn({ waitedMs: patience }, `${what} cannot be reached; the pod no longer waits for it`);
  }
  const timer = setTimeout(() => {
    isOver = true;
    waitNoLonger();
  }, patience).unref();

  function noteFailure(error: unknown): void {
    if (stop.signal.aborted) return;
    if (error instanceof WrongSetting) {
      count.inc({ outcome: 'wrong_setting' });
      if (!wrong || wrong.mayPass) wrong = error;
      // A pod that is ready stays ready: see decision 0036.
      if (problem !== undefined) problem = error.message;
      log.error(error.facts, error.message);
      return;
    }
    count.inc({ outcome: 'unreachable' });
    if (wrong?.mayPass) wrong = undefined;
    if (isOver) waitNoLonger();
    if (wrong || isOver) return;
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
