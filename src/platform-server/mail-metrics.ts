// Defines the metric of mails.
import prom from 'prom-client';

export function createMailMetrics({ registry }: { registry: prom.Registry }) {
  return {
    mails: new prom.Counter<'outcome'>({
      name: 'formgate_mails_total',
      help: 'Mails by outcome: taken (accepted by the mail server), refused (5xx) or failed',
      labelNames: ['outcome'],
      registers: [registry],
    }),
  };
}
