// Defines the metrics of the Postgres connection pools, labelled by the name of the pool.
import prom from 'prom-client';
import type { RefusalReason } from '../limits/fair-queue.ts';

export interface PoolCounts {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

export interface PoolMetrics {
  addPool(name: string, pool: PoolCounts): void;
  /** Adds the gauge of a queue in front of a pool. */
  addQueue(name: string, queue: { readonly waiting: number }): void;
  /** Records that a statement waited for a connection. */
  waited(name: string, seconds: number): void;
  refused(name: string, reason: RefusalReason): void;
}

export function createPoolMetrics({ registry }: { registry: prom.Registry }): PoolMetrics {
  const pools = new Map<string, PoolCounts>();
  const queues = new Map<string, { readonly waiting: number }>();
  const registers = [registry];
  new prom.Gauge({
    name: 'formgate_postgres_pool_connections',
    help: 'Postgres connections by pool and state (used, idle)',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      for (const [pool, { totalCount, idleCount }] of pools) {
        this.set({ pool, state: 'used' }, totalCount - idleCount);
        this.set({ pool, state: 'idle' }, idleCount);
      }
    },
  });
  new prom.Gauge({
    name: 'formgate_postgres_pool_waiting',
    help: 'Requests that wait for a Postgres connection, by pool',
    labelNames: ['pool'],
    registers,
    collect() {
      for (const [pool, { waitingCount }] of pools) this.set({ pool }, waitingCount + (queues.get(pool)?.waiting ?? 0));
    },
  });
  const waits = new prom.Histogram({
    name: 'formgate_postgres_pool_wait_seconds',
    help: 'Time that requests waited for a Postgres connection until they got one, by pool',
    labelNames: ['pool'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30],
    registers,
  });
  const refusals = new prom.Counter({
    name: 'formgate_postgres_pool_refused_total',
    help: 'Requests refused with 503 busy by pool and reason (full: the queue was full, late: waited too long)',
    labelNames: ['pool', 'reason'],
    registers,
  });
  return {
    addPool: (name, pool) => void pools.set(name, pool),
    addQueue: (name, queue) => void queues.set(name, queue),
    waited: (pool, seconds) => waits.observe({ pool }, seconds),
    refused: (pool, reason) => refusals.inc({ pool, reason }),
  };
}
