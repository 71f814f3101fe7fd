// A circuit breaker. While a service fails, the breaker refuses calls to it, and sends one probe every few seconds
// until the service works again. An error that an action throws counts as a failure of the service. The exception is an
// error that the content of one call may have caused, so that one tenant's bad calls do not block all tenants. An
// action must return a 4xx response instead of throwing.
import type { Logger } from '../service/operations/log.ts';
import { mayConcernOneCall, PlatformError } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface CircuitOptions {
  service: string;
  metrics: Pick<PlatformMetrics, 'circuitOpen'>;
  log: Logger;
  /**
   * Milliseconds from the opening of the circuit to the probe. Default 2,000. A short time costs little, because a
   * failed probe delays only one caller. A long time makes this process refuse calls after the service has recovered.
   */
  resetMs?: number | undefined;
}

export interface Circuit {
  /** Runs the action. While the circuit is open, throws PlatformError `open` instead. */
  run<T>(action: () => Promise<T>): Promise<T>;
  /** Throws PlatformError `open` while the circuit is open. A caller can check this before it prepares a call. */
  refuseIfOpen(): void;
}

/**
 * The circuit opens if most of the last `judgedCalls` calls failed. After a start or a recovery, it opens only after at
 * least `minimumCalls` calls.
 */
const judgedCalls = 19;
const minimumCalls = 5;
/** Milliseconds from the opening of the circuit to the probe, unless the client sets another time. */
export const circuitReset = 2_000;

export function createCircuit({ service, metrics, log, resetMs = circuitReset }: CircuitOptions): Circuit {
  /** The outcomes of the last calls. Kept only while the circuit is closed. */
  let outcomes: ('ok' | 'failed')[] = [];
  /** Time at which the next probe may start. Undefined while the circuit is closed. */
  let probeAt: number | undefined;
  /**
   * Counts how often the circuit has opened or closed. If this number changes during a call, the outcome of the call is
   * ignored, because it no longer describes the service.
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
        // An error that may concern only this call proves that the service responds.
        settle(mayConcernOneCall(error) ? 'ok' : 'failed');
        throw error;
      }
    },
  };
}
