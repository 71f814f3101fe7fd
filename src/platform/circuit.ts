// Cuts off a failing service: once most calls fail, further ones are refused at once, and now and then one probe goes
// through. Whatever an action throws counts as a failure, so an action throws only what says that the service is broken:
// no connection, no answer in time, a broken answer, a 5xx. A service that answers 4xx works, and its answer is returned.
import CircuitBreaker from 'opossum';
import type { Logger } from '../service/operations/log.ts';
import { PlatformError } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface CircuitOptions {
  service: string;
  metrics: Pick<PlatformMetrics, 'circuitOpen'>;
  log: Logger;
  /** Milliseconds from opening to the probe. */
  resetMs?: number | undefined;
}

export interface Circuit {
  /** Runs the action, or throws PlatformError `open` at once. */
  run<T>(action: () => Promise<T>): Promise<T>;
  /** Throws the same without running anything: for what would only be preparation. */
  refuseIfOpen(): void;
  close(): void;
}

// A call may take 10 s and opossum counts it when it starts and when it fails, so the window must be well longer.
const windowMs = 20_000;
const minimumCalls = 5;
/** Opens without waiting for half of a busy window to be failures. */
const failuresInRow = 10;

export function createCircuit({ service, metrics, log, resetMs = 5_000 }: CircuitOptions): Circuit {
  const breaker = new CircuitBreaker<[() => Promise<unknown>], unknown>((action) => action(), {
    name: service,
    timeout: false,
    errorThresholdPercentage: 50,
    volumeThreshold: minimumCalls,
    rollingCountTimeout: windowMs,
    rollingCountBuckets: 10,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
    resetTimeout: resetMs,
  });
  let openedAt = 0;
  let failures = 0;
  metrics.circuitOpen.set({ service }, 0);
  breaker.on('success', () => {
    failures = 0;
  });
  breaker.on('failure', () => {
    failures += 1;
    if (failures >= failuresInRow) breaker.open();
  });
  breaker.on('open', () => {
    openedAt = performance.now();
    metrics.circuitOpen.set({ service }, 1);
    log.warn({ dependency: service }, 'circuit opened');
  });
  breaker.on('close', () => {
    metrics.circuitOpen.set({ service }, 0);
    log.info({ dependency: service }, 'circuit closed');
  });
  // Asked here and not left to opossum: it counts each refused call, which would dilute the rate after a recovery.
  const refuseIfOpen = () => {
    if (breaker.closed || breaker.pendingClose) return;
    const wait = openedAt + resetMs - performance.now();
    throw new PlatformError(service, 'open', { retryAfter: Math.max(1, Math.ceil(wait / 1000)) });
  };
  return {
    refuseIfOpen,
    async run<T>(action: () => Promise<T>) {
      refuseIfOpen();
      return (await breaker.fire(action)) as T;
    },
    close: () => breaker.shutdown(),
  };
}
