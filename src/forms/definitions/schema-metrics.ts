// The metric that counts the suspensions of data schemas.
import prom from 'prom-client';
import type { Metrics } from '../../service/operations/metrics.ts';

export function createSchemaMetrics({ registry }: Pick<Metrics, 'registry'>): prom.Counter {
  return new prom.Counter({
    name: 'formgate_schema_suspensions_total',
    help: 'Suspensions of data schemas that exceeded the limits of time or memory for three forms',
    registers: [registry],
  });
}
