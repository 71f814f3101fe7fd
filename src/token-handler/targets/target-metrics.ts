// Defines the metrics of proxied requests. No label names a tenant, a person, a path or an upstream. The label `target`
// is empty unless the operator sets METRICS_TARGETS.
import prom from 'prom-client';
import { type RejectionReason, rejectionReasons } from '../rejection.ts';
import { createProxyOutcomes, type ProxyOutcomes } from './proxy-outcome-metrics.ts';

export type StreamKind = 'websocket' | 'event-stream';

export interface TargetMetrics {
  outcomes: ProxyOutcomes;
  /** Seconds from passing the request to undici until the headers of the upstream's response arrive. */
  upstreamDuration: prom.Histogram;
  rejected: { inc(labels: { reason: RejectionReason }): void };
  refusals: prom.Counter<'reason'>;
  slowBodies: prom.Counter<'direction'>;
  aborted: prom.Counter<'side'>;
  openStreams: prom.Gauge<'kind'>;
}

export interface TargetMetricsOptions {
  registry: prom.Registry;
  /** True if the counts of requests have a label with the target's id. */
  namesTargets: boolean;
}

export function createTargetMetrics({ registry, namesTargets }: TargetMetricsOptions): TargetMetrics {
  const registers = [registry];
  return {
    outcomes: createProxyOutcomes({ registry, namesTargets }),
    upstreamDuration: new prom.Histogram({
      name: 'formgate_upstream_duration_seconds',
      help: 'Time from the end of sending a proxied request to an upstream until the head of the response arrived',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    ...createRefusalMetrics(registers),
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
    openStreams: new prom.Gauge<'kind'>({
      name: 'formgate_open_streams',
      help: 'Open proxied streams by kind (websocket, event-stream)',
      labelNames: ['kind'],
      registers,
    }),
  };
}

function createRefusalMetrics(registers: prom.Registry[]) {
  return {
    rejected: new prom.Counter<'reason'>({
      name: 'formgate_rejected_requests_total',
      help: `Proxied requests that a check rejected, by reason (${rejectionReasons.join(', ')})`,
      labelNames: ['reason'],
      registers,
    }),
    refusals: new prom.Counter<'reason'>({
      name: 'formgate_upstream_refusals_total',
      help: 'Proxied requests refused with 503 because connections to upstreams were in use, by reason: process (limit for all upstreams), pool (limit of the upstream), queue-full, queue-late (waited too long), lookup (too many names of hosts were being looked up)',
      labelNames: ['reason'],
      registers,
    }),
  };
}

export interface ConnectionMetricsOptions {
  registry: prom.Registry;
  count(): { held: number; waiting: number };
}

/** Computes the gauge only when metrics are scraped, because updating it at each request would slow down requests. */
export function createConnectionMetrics({ registry, count }: ConnectionMetricsOptions): void {
  new prom.Gauge({
    name: 'formgate_upstream_connections',
    help: 'Shared connections to upstreams that requests hold, and requests that wait for one, by state (held, waiting)',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { held, waiting } = count();
      this.set({ state: 'held' }, held);
      this.set({ state: 'waiting' }, waiting);
    },
  });
}
