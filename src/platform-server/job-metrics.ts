// Defines the metrics of the jobs: the number of waiting items, and the age of the oldest one. Their values are read
// from the database at each scrape.
import prom from 'prom-client';
import type { Clock } from '../service/clock.ts';

interface Queue {
  count: number;
  oldest: Date | null;
}

/** Returns the number of items in a queue, and the time of the oldest item. */
export type Waiting = () => Promise<Queue>;

export interface JobMetricsOptions {
  registry: prom.Registry;
  clock: Clock;
  /** The queues, keyed by the value of the label `queue`. */
  queues: Record<string, Waiting>;
}

/** Creates the gauges. While the database is down, they have no values. */
export function createJobMetrics({ registry, clock, queues }: JobMetricsOptions): void {
  const gauge = (name: string, help: string, measure: (queue: Queue) => number) =>
    new prom.Gauge({
      name,
      help,
      labelNames: ['queue'],
      registers: [registry],
      async collect() {
        for (const [queue, waiting] of Object.entries(queues)) {
          const found = await waiting().catch(() => undefined);
          if (found) this.set({ queue }, measure(found));
          else this.remove({ queue });
        }
      },
    });
  gauge('formgate_jobs_waiting', 'Events to be routed, and notices to be delivered, by queue', ({ count }) => count);
  gauge('formgate_jobs_oldest_waiting_seconds', 'Age of the oldest item of the queue', ({ oldest }) =>
    oldest ? Math.max(0, (clock().getTime() - oldest.getTime()) / 1000) : 0,
  );
}
