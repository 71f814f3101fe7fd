// Metrics of calls to the platform. Labels are names of services and kinds of errors, never ids or URLs.
import prom from 'prom-client';
import type { Metrics } from '../service/operations/metrics.ts';

export interface PlatformMetrics {
  /** Failures by service and kind of PlatformError. */
  failures: prom.Counter<'dependency' | 'kind'>;
  /**
   * Seconds of a whole call, including retries. The outcome is `ok`, a kind of PlatformError, or `dependency` if an
   * earlier call failed that this call needs.
   */
  duration: prom.Histogram<'service' | 'outcome'>;
  /** Counts reads that were served with an old response because the service fails. */
  staleServes: prom.Counter<'service'>;
  /** Reads because a caller named something unknown. The outcome is `read`, or `refused` beyond the budget. */
  missReads: prom.Counter<'service' | 'outcome'>;
  /** 1 while the circuit of the service is open. */
  circuitOpen: prom.Gauge<'service'>;
  /** 1 while a registration document has not been written. */
  registrationPending: prom.Gauge<'document'>;
  /** Counts registrations that another writer had undone, and that were written again. */
  registrationRepairs: prom.Counter<'document'>;
  /** 1 while a service of the platform does not know what this process has registered. */
  registrationUnknown: prom.Gauge<'service'>;
}

/** Creates the metrics. Call it once per registry. */
export function createPlatformMetrics({ registry, dependencyFailures }: Metrics): PlatformMetrics {
  const registers = [registry];
  return {
    failures: dependencyFailures,
    duration: new prom.Histogram({
      name: 'platform_request_duration_seconds',
      help: 'Duration of calls to platform services, retries included, by outcome',
      labelNames: ['service', 'outcome'],
      buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    staleServes: new prom.Counter({
      name: 'platform_stale_serves_total',
      help: 'Reads served with an old response because the service fails',
      labelNames: ['service'],
      registers,
    }),
    missReads: new prom.Counter({
      name: 'platform_miss_reads_total',
      help: 'Reads because a caller named something unknown, by outcome: read, or refused beyond the budget',
      labelNames: ['service', 'outcome'],
      registers,
    }),
    circuitOpen: new prom.Gauge({
      name: 'platform_circuit_open',
      help: '1 while the circuit to a platform service is open',
      labelNames: ['service'],
      registers,
    }),
    registrationPending: new prom.Gauge({
      name: 'platform_registration_pending',
      help: '1 while a document that this service registers at startup has not been written',
      labelNames: ['document'],
      registers,
    }),
    registrationRepairs: new prom.Counter({
      name: 'platform_registration_repairs_total',
      help: 'Registrations that were lost after they had been written, and were written again',
      labelNames: ['document'],
      registers,
    }),
    registrationUnknown: new prom.Gauge({
      name: 'platform_registration_unknown',
      help: '1 while a platform service works with an old configuration, without what this service has registered',
      labelNames: ['service'],
      registers,
    }),
  };
}
