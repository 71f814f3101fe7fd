// Everything that a test needs to create a platform client: connections, metrics, a readable log, a clock that it can
// set, and short waits between retries.
import { type CacheTimes, cacheTimes } from '../../src/platform/cache.ts';
import { HttpAgent } from '../../src/platform/http-agent.ts';
import { createPlatformClient, type PlatformClient } from '../../src/platform/http-client.ts';
import { createMissBudget, type MissBudget } from '../../src/platform/miss-budget.ts';
import { createPlatformMetrics, type PlatformMetrics } from '../../src/platform/platform-metrics.ts';
import type { Clock } from '../../src/service/clock.ts';
import { createMetrics, type Metrics } from '../../src/service/operations/metrics.ts';
import { type CapturedLog, captureLog } from './captured-log.ts';

export interface PlatformCalls {
  /** Options that a test can spread into the options of any platform client. */
  options: {
    agent: HttpAgent;
    metrics: PlatformMetrics;
    log: CapturedLog['log'];
    clock: Clock;
    times: CacheTimes;
    budget: MissBudget;
    timeoutMs: number;
    retryDelayMs: number;
    circuitResetMs: number;
  };
  base: Metrics;
  captured: CapturedLog;
  /** Moves the clock forward. */
  advance(milliseconds: number): void;
  client(service: string, url: string): PlatformClient;
  close(): Promise<void>;
}

/**
 * Set a short `timeoutMs` to test calls that get no response. The default gives healthy services on a busy machine
 * enough time.
 */
export function createPlatformCalls({ timeoutMs = 10_000 } = {}): PlatformCalls {
  let now = Date.parse('2026-08-01T00:00:00Z');
  const base = createMetrics();
  const captured = captureLog();
  const agent = new HttpAgent();
  const metrics = createPlatformMetrics(base);
  const clock = () => new Date(now);
  const options = {
    agent,
    metrics,
    log: captured.log,
    clock,
    budget: createMissBudget(clock, metrics),
    times: cacheTimes(),
    timeoutMs,
    retryDelayMs: 2,
    circuitResetMs: 100,
  };
  return {
    options,
    base,
    captured,
    advance(milliseconds) {
      now += milliseconds;
    },
    client: (service, url) => createPlatformClient({ ...options, service, baseUrl: async () => url }),
    close: () => agent.destroy(),
  };
}
