// Counts the suppressed mails about forms. The metric contains no addresses.
import prom from 'prom-client';
import type { Metrics } from '../../service/operations/metrics.ts';

/** Returns a function that counts one suppressed mail. */
export function createNoticeMetrics({ registry }: Pick<Metrics, 'registry'>): () => void {
  const counter = new prom.Counter({
    name: 'formgate_suppressed_notices_total',
    help: 'Events for which no mail was sent, because the address got a mail within the last minute or five within the last hour',
    registers: [registry],
  });
  return () => counter.inc();
}
