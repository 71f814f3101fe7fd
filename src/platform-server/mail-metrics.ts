// Defines the metric that counts mails by outcome.
import prom from 'prom-client';

/**
 * `taken`: the mail server accepted the mail. `refused`: it replied with 5xx to any command except the login. `failed`:
 * any other failure.
 */
export const mailOutcomes = ['taken', 'refused', 'failed'] as const;

export function createMailMetrics({ registry }: { registry: prom.Registry }): {
  mails: { inc(labels: { outcome: (typeof mailOutcomes)[number] }): void };
} {
  const mails = new prom.Counter<'outcome'>({
    name: 'formgate_mails_total',
    help: 'Mails by outcome: taken (accepted by the mail server), refused (5xx) or failed',
    labelNames: ['outcome'],
    registers: [registry],
  });
  for (const outcome of mailOutcomes) mails.inc({ outcome }, 0);
  return { mails };
}
