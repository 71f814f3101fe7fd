// Counts the checks before the first readiness.
import prom from 'prom-client';
import type { Metrics } from './metrics.ts';

export function createStartupMetrics({ registry }: Pick<Metrics, 'registry'>): prom.Counter<'outcome'> {
  return new prom.Counter({
    name: 'formgate_startup_checks_total',
    help: 'Checks of the identity provider before the first readiness, by outcome',
    labelNames: ['outcome'],
    registers: [registry],
  });
}
