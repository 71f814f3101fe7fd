// A circuit breaker. It refuses calls to a service that has been failing, and sends one probe every few seconds until
// the service works again. Every error that an action throws counts as a failure of the service, so actions must return
// a 4xx instead of throwing.
import type { Logger } from '../service/operations/log.ts';
import { PlatformError } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface CircuitOptions {
  service: string;
  metrics: Pick<PlatformMetrics, 'circuitOpen'>;
  log: Logger;
  /**
   * Milliseconds from the opening of the circuit to the probe. Default 2,000. A probe that fails costs only one caller
   * time, but until one succeeds, this process refuses calls that the service may be able to answer.
   */
  resetMs?: number | undefined;
}

export interface Circuit {
  /** Runs the action. Throws PlatformError `open` without running it while the circuit is open. */
  run<T>(action: () => Promise<T>): Promise<T>;
  /**
   * Throws PlatformError `open` while the circuit is open, so that callers need not prepare a call that would be
   * refused.
   */
  refuseIfOpen(): void;
}

/**
 * The circuit opens when most of the last calls failed. It considers at most `judgedCalls` calls, and at least
 * `minimumCalls` after a start or a recovery.
 */
const judgedCalls = 19;
const minimumCalls = 5;

export function createCircuit({ service, metrics, log, resetMs = 2_000 }: CircuitOptions): Circuit {
  /** Outcomes of the last calls while the circuit is closed. */
  let outcomes: ('ok' | 'failed')[] = [];
  /** Time at which the next probe may start. Undefined while the circuit is closed. */
  let probeAt: number | undefined;
  /**
   * Counts how often the circuit opened or closed. The outcome of a call is ignored if this number has changed since
   * the call began, because that outcome no longer describes the service.
   */
  let period = 0;
  metrics.circuitOpen.set({ dependency: service }, 0);

  function open(): void {
    if (probeAt === undefined) {
      period += 1;
      log.warn({ dependency: service }, 'circuit opened');
    }
    probeAt = performance.now() + resetMs;
    outcomes = [];
    metrics.circuitOpen.set({ dependency: service }, 1);
  }

  function close(): void {
    period += 1;
    probeAt = undefined;
    metrics.circuitOpen.set({ dependency: service }, 0);
    log.info({ dependency: service }, 'circuit closed');
  }

  function record(outcome: 'ok' | 'failed'): void {
    outcomes = [...outcomes.slice(1 - judgedCalls), outcome];
    const failures = outcomes.filter((one) => one === 'failed').length;
    if (outcomes.length >= minimumCalls && failures > outcomes.length / 2) open();
  }

  function refuseIfOpen(): void {
    const wait = probeAt === undefined ? 0 : probeAt - performance.now();
    if (wait > 0) throw new PlatformError(service, 'open', { retryAfter: Math.ceil(wait / 1000) });
  }

  return {
    refuseIfOpen,
    async run(action) {
      refuseIfOpen();
      const isProbe = probeAt !== undefined;
      if (isProbe) probeAt = performance.now() + resetMs;
      const periodOfCall = period;
      const settle = (outcome: 'ok' | 'failed') => {
        if (periodOfCall !== period) return;
        if (!isProbe) record(outcome);
        else if (outcome === 'ok') close();
        else open();
      };
      try {
        const result = await action();
        settle('ok');
        return result;
      } catch (error) {
        settle('failed');
        throw error;
      }
    },
  };
}
