// Metrics of calls to the platform. Labels contain names of services and kinds of errors, but no ids or URLs.
import prom from 'prom-client';
import type { Metrics } from '../service/operations/metrics.ts';

export interface PlatformMetrics {
  /** Counts failed calls by service and kind of PlatformError. */
  failures: prom.Counter<'dependency' | 'kind'>;
  /**
   * Counts a call, and records its duration in seconds, including retries. The outcome is `ok` or a kind of
   * PlatformError. It is `dependency` if another service, which this call depends on, failed.
   */
  called: Metrics['dependencyCalled'];
  /** Returns the read counters of a cache. Every read of the cache increments one of them. */
  cacheReads(cache: string): CacheReads;
  /** Counts reads that got an old response because the platform service fails. */
  staleServes: prom.Counter<'dependency'>;
  /**
   * Counts reads that were needed because a caller used an unknown name. The outcome is `read`, or `refused` if the
   * budget is used up.
   */
  missReads: prom.Counter<'dependency' | 'outcome'>;
  /** 1 while the circuit of the service is open. */
  circuitOpen: prom.Gauge<'dependency'>;
  /** 1 until a registration document has been written. */
  registrationPending: prom.Gauge<'document'>;
  /** Counts registrations that were written again because another writer had undone them. */
  registrationRepairs: prom.Counter<'document'>;
  /** 1 while a service of the platform does not know what this process has registered. */
  registrationUnknown: prom.Gauge<'dependency'>;
}

/**
 * The read counters of a cache. Nearly every request reads several caches, so the counters are plain numbers, which are
 * cheaper than metrics. Each scrape exports them.
 */
export interface CacheReads {
  /** The read did not wait for the platform service. */
  hit: number;
  /** The read waited for the platform service. */
  miss: number;
  /** The read got an old response, because the platform service fails. */
  stale: number;
  /** The budget for unknown names, or that for large documents, was used up. */
  refused: number;
}

/** Creates the metrics. Call it only once per registry. */
export function createPlatformMetrics(
  metrics: Pick<Metrics, 'registry' | 'dependencyFailures' | 'dependencyCalled'>,
): PlatformMetrics {
  const { registry, dependencyFailures, dependencyCalled } = metrics;
  const registers = [registry];
  return {
    failures: dependencyFailures,
    called: dependencyCalled,
    cacheReads: createCacheReads(registry),
    staleServes: new prom.Counter({
      name: 'formgate_platform_stale_serves_total',
      help: 'Reads that got an old response because the platform service fails',
      labelNames: ['dependency'],
      registers,
    }),
    missReads: new prom.Counter({
      name: 'formgate_platform_miss_reads_total',
      help: 'Reads from a platform service that were needed because a caller used an unknown name, by outcome: read, or refused because the budget was used up',
      labelNames: ['dependency', 'outcome'],
      registers,
    }),
    circuitOpen: new prom.Gauge({
      name: 'formgate_platform_circuit_open',
      help: '1 while the circuit to a platform service is open',
      labelNames: ['dependency'],
      registers,
    }),
    registrationPending: new prom.Gauge({
      name: 'formgate_platform_registration_pending',
      help: '1 while a document that this service registers at startup has not been written',
      labelNames: ['document'],
      registers,
    }),
    registrationRepairs: new prom.Counter({
      name: 'formgate_platform_registration_repairs_total',
      help: 'Registrations that were lost after they had been written, and were written again',
      labelNames: ['document'],
      registers,
    }),
    registrationUnknown: new prom.Gauge({
      name: 'formgate_platform_registration_unknown',
      help: '1 while a platform service works with an old configuration, without what this service has registered',
      labelNames: ['dependency'],
      registers,
    }),
  };
}

export const noReads: CacheReads = { hit: 0, miss: 0, stale: 0, refused: 0 };

function createCacheReads(registry: prom.Registry): PlatformMetrics['cacheReads'] {
  const caches = new Map<string, CacheReads>();
  const counter = new prom.Counter({
    name: 'formgate_cache_reads_total',
    help: 'Reads of caches of platform responses by outcome: hit, miss (waited for the platform service), stale (the platform service fails, an old response was used), refused (the budget for unknown names, or for large documents, was used up)',
    labelNames: ['cache', 'outcome'],
    registers: [registry],
    collect() {
      counter.reset();
      for (const [cache, reads] of caches)
        for (const [outcome, count] of Object.entries(reads)) counter.inc({ cache, outcome }, count);
    },
  });
  return (cache) => {
    const reads = caches.get(cache) ?? { ...noReads };
    caches.set(cache, reads);
    return reads;
  };
}
