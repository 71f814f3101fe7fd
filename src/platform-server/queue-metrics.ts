// How much waits and for how long, asked of the database when Prometheus asks.
import prom from 'prom-client';
import type { Clock } from '../service/clock.ts';
import type { Metrics } from '../service/metrics.ts';

/** What waits, and since when the oldest of it does. */
export type Waiting = () => Promise<{ count: number; oldest: Date | null }>;

/** Gauges of the queue; while the database is away they keep their last value. */
export function registerQueueMetrics(metrics: Metrics, clock: Clock, queues: Record<string, Waiting>): void {
  const registers = [metrics.registry];
  const lag = new prom.Gauge({
    name: 'platform_queue_lag_seconds',
    help: 'Age of the oldest thing that waits',
    labelNames: ['queue'],
    registers,
  });
  new prom.Gauge({
    name: 'platform_queue_depth',
    help: 'Events that wait to be routed and notices that wait to be delivered',
    labelNames: ['queue'],
    registers,
    async collect() {
      for (const [queue, waiting] of Object.entries(queues)) {
        const found = await waiting().catch(() => undefined);
        if (!found) continue;
        this.set({ queue }, found.count);
        lag.set({ queue }, found.oldest ? Math.max(0, (clock().getTime() - found.oldest.getTime()) / 1000) : 0);
      }
    },
  });
}
