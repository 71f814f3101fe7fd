// Counts the suppressed mails about created drafts. The metric contains no addresses.
import prom from 'prom-client';
import type { Metrics } from '../../service/operations/metrics.ts';

/** Returns a function that counts one suppressed mail. */
export function createNoticeMetrics({ registry }: Pick<Metrics, 'registry'>): () => void {
  const counter = new prom.Counter({
    name: 'formgate_suppressed_notices_total',
    help: 'Created drafts whose mail was suppressed, because the address got one a moment ago or five within the hour',
    registers: [registry],
  });
  return () => counter.inc();
}
