// Defines the metrics of proxied requests. No label names a tenant, a person or an upstream.
import prom from 'prom-client';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Connections } from './connections.ts';

export interface TargetMetrics extends Pick<Metrics, 'dependencyFailures'> {
  refusals: prom.Counter<'reason'>;
  slowBodies: prom.Counter<'direction'>;
  aborted: prom.Counter<'side'>;
}

export function createTargetMetrics({ registry, dependencyFailures }: Metrics): TargetMetrics {
  const registers = [registry];
  return {
    dependencyFailures,
    refusals: new prom.Counter<'reason'>({
      name: 'formgate_upstream_refusals_total',
      help: 'Proxied requests refused with 503 because connections to upstreams were in use, by reason (process, pool, queue-full, queue-late)',
      labelNames: ['reason'],
      registers,
    }),
    slowBodies: new prom.Counter<'direction'>({
      name: 'formgate_slow_bodies_total',
      help: 'Bodies ended because the client sent or read them more slowly than BODY_MIN_RATE, by direction (upload, download)',
      labelNames: ['direction'],
      registers,
    }),
    aborted: new prom.Counter<'side'>({
      name: 'formgate_proxied_requests_aborted_total',
      help: 'Proxied requests that did not complete, by the side that ended them (client, upstream, session)',
      labelNames: ['side'],
      registers,
    }),
  };
}

/** Sets the gauge only when metrics are scraped, so that it does not slow down requests. */
export function exposeConnections({ registry }: Metrics, connections: Pick<Connections, 'count'>): void {
  new prom.Gauge({
    name: 'formgate_upstream_connections',
    help: 'Shared connections to upstreams that requests hold, and requests that wait for one, by state (held, waiting)',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { held, waiting } = connections.count();
      this.set({ state: 'held' }, held);
      this.set({ state: 'waiting' }, waiting);
    },
  });
}
