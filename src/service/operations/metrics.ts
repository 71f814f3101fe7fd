// The metrics of a process. Each process object has its own registry, so that tests can start several.
import prom from 'prom-client';
import { createPoolMetrics, type PoolMetrics } from '../postgres/pool-metrics.ts';

export interface Metrics {
  registry: prom.Registry;
  /** Duration in seconds by method, route pattern and status. The path is not a label, because it contains ids. */
  requestDuration: prom.Histogram<'method' | 'route' | 'status'>;
  dependencyFailures: prom.Counter<'dependency' | 'kind'>;
  /** 1 while the dependency can be reached, else 0. */
  dependencyUp: prom.Gauge<'dependency'>;
  rateLimited: prom.Counter<'limit'>;
  postgresPools: PoolMetrics;
}

export function createMetrics(): Metrics {
  const registry = new prom.Registry();
  prom.collectDefaultMetrics({ register: registry });
  return {
    registry,
    requestDuration: new prom.Histogram({
      name: 'http_request_duration_seconds',
      help: 'Duration of requests by route pattern',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers: [registry],
    }),
    dependencyFailures: new prom.Counter({
      name: 'dependency_failures_total',
      help: 'Failed calls to dependencies of the service, by kind of failure',
      labelNames: ['dependency', 'kind'],
      registers: [registry],
    }),
    dependencyUp: new prom.Gauge({
      name: 'formgate_dependency_up',
      help: '1 while the dependency can be reached, else 0',
      labelNames: ['dependency'],
      registers: [registry],
    }),
    rateLimited: new prom.Counter({
      name: 'formgate_rate_limited_requests_total',
      help: 'Requests refused with 429, by rate limit',
      labelNames: ['limit'],
      registers: [registry],
    }),
    postgresPools: createPoolMetrics(registry),
  };
}
