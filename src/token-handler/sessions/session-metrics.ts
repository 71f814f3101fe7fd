// Defines the metric for the number of open sessions.
import prom from 'prom-client';
import type { Clock } from '../../service/clock.ts';
import { createShortCache } from '../../service/short-cache.ts';

export interface SessionMetricsOptions {
  registry: prom.Registry;
  clock: Clock;
  /** Returns the number of sessions in the store. */
  count(): Promise<number>;
}

/** Milliseconds for which the number of sessions is cached. */
const freshFor = 15_000;

/**
 * Every pod exports the same number of sessions, so queries must aggregate it with max. The gauge is absent while the
 * session store is down.
 */
export function createSessionMetrics({ registry, clock, count }: SessionMetricsOptions): void {
  const cached = createShortCache({ freshFor, most: 1, clock, read: count });
  new prom.Gauge({
    name: 'formgate_sessions',
    help: 'Open sessions of all pods together',
    registers: [registry],
    async collect() {
      this.remove();
      const sessions = await cached('').catch(() => undefined);
      if (sessions !== undefined) this.set(sessions);
    },
  });
}
