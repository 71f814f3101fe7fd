// Metrics of the queues: the length of each queue, and the age of its oldest item. They are read from the database at
// each scrape.
import prom from 'prom-client';
import type { Clock } from '../service/clock.ts';
import type { Metrics } from '../service/operations/metrics.ts';

interface Queue {
  count: number;
  oldest: Date | null;
}

/** Returns the number of items in a queue, and the time of the oldest. */
export type Waiting = () => Promise<Queue>;

/** Registers the gauges. While the database is down, they keep their last value. */
export function registerQueueMetrics(metrics: Metrics, clock: Clock, queues: Record<string, Waiting>): void {
  const gauge = (name: string, help: string, measure: (queue: Queue) => number) =>
    new prom.Gauge({
      name,
      help,
      labelNames: ['queue'],
      registers: [metrics.registry],
      async collect() {
        for (const [queue, waiting] of Object.entries(queues)) {
          const found = await waiting().catch(() => undefined);
          if (found) this.set({ queue }, measure(found));
        }
      },
    });
  gauge('platform_queue_depth', 'Events to be routed, and notices to be delivered', ({ count }) => count);
  gauge('platform_queue_lag_seconds', 'Age of the oldest item of the queue', ({ oldest }) =>
    oldest ? Math.max(0, (clock().getTime() - oldest.getTime()) / 1000) : 0,
  );
}
