// Defines the metrics for the number of open sessions, and for sessions that newer ones have replaced.
import prom from 'prom-client';
import type { Clock } from '../../service/clock.ts';
import { createScrapedGauges } from '../../service/operations/scraped-metrics.ts';
import { createShortCache } from '../../service/short-cache.ts';

export interface SessionMetricsOptions {
  registry: prom.Registry;
  clock: Clock;
  /** Returns the number of sessions in the store. */
  count(): Promise<number>;
}

/** Milliseconds for which the number of sessions is cached. */
const freshFor = 15_000;

/** Counts the sessions that a sign-in has ended because of a cap (session-cap.ts). */
export type ReplacedSessions = Pick<prom.Counter<'cap'>, 'inc'>;

export function createSessionMetrics({ registry, clock, count }: SessionMetricsOptions): ReplacedSessions {
  const cached = createShortCache({ freshFor, most: 1, clock, read: count });
  createScrapedGauges({
    registry,
    read: () => cached(''),
    gauges: {
      formgate_sessions: {
        help: 'Open sessions of all pods together',
        samples: (sessions) => [{ labels: {}, value: sessions }],
      },
    },
  });
  const replaced = new prom.Counter({
    name: 'formgate_replaced_sessions_total',
    help: 'Sessions that a sign-in has ended because there were too many, by cap (person, tenant)',
    labelNames: ['cap'],
    registers: [registry],
  });
  for (const cap of ['person', 'tenant']) replaced.inc({ cap }, 0);
  return replaced;
}
