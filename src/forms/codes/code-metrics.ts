// Counts verify codes. The metric contains no addresses and no codes.
import prom from 'prom-client';
import type { Metrics } from '../../service/operations/metrics.ts';

/**
 * `sent`: the notification service accepted the code. `not-sent`: it did not. `verified`: the code was right. `rejected`:
 * it was wrong, expired or used, or too many were tried.
 */
export type CodeOutcome = 'sent' | 'not-sent' | 'verified' | 'rejected';

/** Returns a function to call for each code that was sent or tried. */
export function createCodeMetrics({ registry }: Pick<Metrics, 'registry'>): (outcome: CodeOutcome) => void {
  const codes = new prom.Counter({
    name: 'formgate_codes_total',
    help: 'Verify codes that were sent or tried, by outcome (sent, not-sent, verified, rejected)',
    labelNames: ['outcome'],
    registers: [registry],
  });
  const outcomes: CodeOutcome[] = ['sent', 'not-sent', 'verified', 'rejected'];
  for (const outcome of outcomes) codes.inc({ outcome }, 0);
  return (outcome) => codes.inc({ outcome });
}
