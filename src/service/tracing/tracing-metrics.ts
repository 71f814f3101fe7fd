// Defines the metrics of the export of traces.
import prom from 'prom-client';
import { countExportFailures } from './tracing.ts';

export function createTracingMetrics({ registry }: { registry: prom.Registry }): void {
  new prom.Counter({
    name: 'formgate_trace_export_failures_total',
    help: 'Exports of traces to the collector that failed; their spans are lost',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(countExportFailures());
    },
  });
}
