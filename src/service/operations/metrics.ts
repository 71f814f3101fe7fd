// The metrics that every process has. Each instance of a process has its own registry, so that a test can start several
// instances.
import prom from 'prom-client';
import { createPoolMetrics, type PoolMetrics } from '../postgres/pool-metrics.ts';
import { createTracingMetrics } from '../tracing/tracing-metrics.ts';
import { type Certificates, createCertificateMetrics } from './certificate-metrics.ts';
import { createHttpMetrics, type HttpMetrics } from './http-metrics.ts';
import { countDroppedLines } from './log.ts';
import { productVersion } from './product-version.ts';

export interface Metrics {
  registry: prom.Registry;
  http: HttpMetrics;
  dependencyFailures: prom.Counter<'dependency' | 'kind'>;
  /**
   * Counts a call to another service, and records its duration in seconds, including retries. The outcome is `ok` or a
   * kind of failure.
   */
  dependencyCalled(dependency: string, outcome: string, seconds: number): void;
  /** 1 while the dependency can be reached and accepts the credentials of the process, else 0. */
  dependencyUp: prom.Gauge<'dependency'>;
  rateLimited: prom.Counter<'limit'>;
  /** Counts refusals of a FairQueue by the name of the queue. */
  queueRefusals: prom.Counter<'queue' | 'reason'>;
  postgresPools: PoolMetrics;
  certificates: Certificates;
}

/** Creates the metrics in a new registry. `service` is the name of the process in `formgate_build_info`. */
export function createMetrics(service = 'formgate'): Metrics {
  const registry = new prom.Registry();
  prom.collectDefaultMetrics({ register: registry });
  createTracingMetrics({ registry });
  createBuildInfo(registry, service);
  createLogMetrics(registry);
  return {
    registry,
    http: createHttpMetrics({ registry }),
    ...createDependencyMetrics(registry),
    rateLimited: new prom.Counter({
      name: 'formgate_rate_limited_requests_total',
      help: 'Requests refused with 429, by rate limit',
      labelNames: ['limit'],
      registers: [registry],
    }),
    queueRefusals: new prom.Counter({
      name: 'formgate_queue_refused_total',
      help: 'Requests refused with 503 because too many requests of their kind were waiting (full), or because they waited too long (late)',
      labelNames: ['queue', 'reason'],
      registers: [registry],
    }),
    postgresPools: createPoolMetrics({ registry }),
    certificates: createCertificateMetrics({ registry }),
  };
}

function createBuildInfo(registry: prom.Registry, service: string): void {
  const info = new prom.Gauge({
    name: 'formgate_build_info',
    help: 'Always 1. The labels name the service, its version and the version of Node.js',
    labelNames: ['service', 'version', 'node'],
    registers: [registry],
  });
  info.set({ service, version: productVersion(), node: process.versions.node }, 1);
}

function createLogMetrics(registry: prom.Registry): void {
  new prom.Counter({
    name: 'formgate_log_lines_dropped_total',
    help: 'Log lines that were lost because the reader of standard output did not read them in time',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(countDroppedLines());
    },
  });
}

function createDependencyMetrics(registry: prom.Registry) {
  const registers = [registry];
  const calls = new prom.Counter({
    name: 'formgate_dependency_calls_total',
    help: 'Calls to other services by outcome: ok, a kind of failure, or dependency if another service that the call depends on failed',
    labelNames: ['dependency', 'outcome'],
    registers,
  });
  const duration = new prom.Histogram({
    name: 'formgate_dependency_call_duration_seconds',
    help: 'Duration of calls to other services, including retries',
    labelNames: ['dependency'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  return {
    dependencyCalled(dependency: string, outcome: string, seconds: number) {
      calls.inc({ dependency, outcome });
      duration.observe({ dependency }, seconds);
    },
    dependencyFailures: new prom.Counter({
      name: 'formgate_dependency_failures_total',
      help: 'Failed calls to other services, by kind of failure',
      labelNames: ['dependency', 'kind'],
      registers,
    }),
    dependencyUp: new prom.Gauge({
      name: 'formgate_dependency_up',
      help: '1 while the dependency can be reached and accepts the credentials of the process, else 0',
      labelNames: ['dependency'],
      registers,
    }),
  };
}
