// Defines the metric that counts notices by outcome.
import prom from 'prom-client';

export function createNoticeMetrics({ registry }: { registry: prom.Registry }) {
  return {
    notices: new prom.Counter<'outcome'>({
      name: 'formgate_notices_total',
      help: 'Notices by outcome: delivered, dropped (no template, subscriber or usable channel), or unrendered (template failed)',
      labelNames: ['outcome'],
      registers: [registry],
    }),
  };
}
