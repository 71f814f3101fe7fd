// Counts the checks that run before the service is first ready.
import prom from 'prom-client';
import type { Metrics } from './metrics.ts';

export function createStartupMetrics({ registry }: Pick<Metrics, 'registry'>): prom.Counter<'outcome'> {
  return new prom.Counter({
    name: 'formgate_startup_checks_total',
    help: 'Checks of the identity provider before the pod is first ready, by outcome',
    labelNames: ['outcome'],
    registers: [registry],
  });
}
