// Tests that a process exports the counters of the alert rules with the value 0 before it counts anything. `rate` and
// `increase` ignore the first value of a series, so a series that begins with its first failures hides them.
import prom from 'prom-client';
import { describe, expect, it } from 'vitest';
import { createCatalogue, createMetricsOf, monitoredProcesses } from '../../dev/monitoring/catalogue.ts';
import { labelValues } from '../../dev/monitoring/label-values.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { createProxyOutcomes } from '../../src/token-handler/targets/proxy-outcome-metrics.ts';
import { rules } from './rules.ts';

/**
 * Counters with a label whose values are known only after the start: the pattern of a route, and the name of a
 * document. Such a counter begins with the first request to the route, or with the registration of the document.
 */
const atFirstUse = ['formgate_http_requests_total', 'formgate_platform_registration_repairs_total'];

const named = new Set(
  rules().flatMap(({ expr }) => [...expr.matchAll(/\bformgate_\w+_total\b/g)].map(([name]) => name)),
);
const counters = createCatalogue().filter(({ name }) => named.has(name));

/** Returns the samples of a metric, such as `{outcome="sent"} 0`. */
async function samplesOf(registry: prom.Registry, name: string): Promise<string[]> {
  const lines = (await registry.getSingleMetricAsString(name)).split('\n');
  return lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length));
}

it('the rules read counters of each process', () => {
  expect(new Set(counters.map(({ process }) => process))).toEqual(new Set(monitoredProcesses));
  expect(new Set(counters.map(({ name }) => name))).toEqual(named);
});

describe('at the start of a process, an alert rule can see the first failure in', () => {
  const atStart = counters.filter(({ name }) => !atFirstUse.includes(name));
  it.each(atStart)('$name of the $process', async ({ process, name, labels }) => {
    const samples = await samplesOf(createMetricsOf(process).registry, name);
    expect(samples.filter((sample) => !sample.endsWith(' 0'))).toEqual([]);
    const values = Object.entries(labelValues[name] ?? {});
    expect(values.length, labels.join()).toBeGreaterThan(0);
    const missing = values.flatMap(([label, all]) =>
      all.filter((value) => !samples.some((sample) => sample.includes(`${label}="${value}"`))),
    );
    expect(missing).toEqual([]);
  });
});

describe('after the first use, an alert rule can see the first failure', () => {
  it('of a route and method', async () => {
    const { http, registry } = createMetrics();
    http.record({ method: 'GET', route: '/form/v1/forms', status: 200, seconds: 0 });
    expect(await samplesOf(registry, 'formgate_http_requests_total')).toEqual([
      '{method="GET",route="/form/v1/forms",status="2xx"} 1',
      '{method="GET",route="/form/v1/forms",status="5xx"} 0',
    ]);
  });

  it('of a target, if METRICS_TARGETS is on', async () => {
    const registry = new prom.Registry();
    createProxyOutcomes({ registry, namesTargets: true }).of('api').succeeded.inc();
    const samples = await samplesOf(registry, 'formgate_proxied_requests_total');
    expect(samples).toContain('{outcome="unreachable",target="api"} 0');
    expect(samples).toContain('{outcome="unreachable",target="other"} 0');
  });
});
