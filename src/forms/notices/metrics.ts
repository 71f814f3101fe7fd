// Counts the mails about created drafts that were suppressed. It knows no address.
import prom from 'prom-client';
import type { Metrics } from '../../service/operations/metrics.ts';

/** To be called for each of them. */
export function countSuppressedNotices({ registry }: Pick<Metrics, 'registry'>): () => void {
  const counter = new prom.Counter({
    name: 'formgate_suppressed_notices_total',
    help: 'Created drafts whose mail was suppressed, because the address got one a moment ago or five within the hour',
    registers: [registry],
  });
  return () => counter.inc();
}
