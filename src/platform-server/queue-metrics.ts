// How much waits and for how long, asked of the database when Prometheus asks.
import prom from 'prom-client';
import type { Clock } from '../service/clock.ts';
import type { Metrics } from '../service/operations/metrics.ts';

interface Queue {
  count: number;
  oldest: Date | null;
}

/** What waits, and since when the oldest of it does. */
export type Waiting = () => Promise<Queue>;

/** Gauges of the queues; while the database is away they keep their last value. */
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
  gauge(
    'platform_queue_depth',
    'Events that wait to be routed and notices that wait to be delivered',
    ({ count }) => count,
  );
  gauge('platform_queue_lag_seconds', 'Age of the oldest thing that waits', ({ oldest }) =>
    oldest ? Math.max(0, (clock().getTime() - oldest.getTime()) / 1000) : 0,
  );
}
