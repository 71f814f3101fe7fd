// Counts the codes that were sent or tried. The metric contains no addresses and no codes.
import prom from 'prom-client';
import type { Metrics } from '../../service/operations/metrics.ts';

/**
 * The outcomes of codes. `sent`: the notification service accepted the code. `not-sent`: the call failed, so the code
 * was not sent, or its delivery is uncertain. `undeliverable`: the applicant has no usable channel, the mail server
 * refused the address, or the form was deleted. `verified`: the code was correct. `rejected`: the code was wrong,
 * expired or used, or too many codes were tried.
 */
export const codeOutcomes = ['sent', 'not-sent', 'undeliverable', 'verified', 'rejected'] as const;
export type CodeOutcome = (typeof codeOutcomes)[number];

/** Returns a function that counts the outcome of one code. Call the function for each code that was sent or tried. */
export function createCodeMetrics({ registry }: Pick<Metrics, 'registry'>): (outcome: CodeOutcome) => void {
  const codes = new prom.Counter({
    name: 'formgate_codes_total',
    help: `Codes of applicants by outcome: ${codeOutcomes.join(', ')}`,
    labelNames: ['outcome'],
    registers: [registry],
  });
  for (const outcome of codeOutcomes) codes.inc({ outcome }, 0);
  return (outcome) => codes.inc({ outcome });
}
