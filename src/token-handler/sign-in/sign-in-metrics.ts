// Defines the metrics of sign-ins. Values of the label `reason` are `none`, `cancelled`, and the names of failure
// pages.
import prom from 'prom-client';

export const signInOutcomes = ['succeeded', 'failed', 'abandoned'] as const;
export type SignInOutcome = (typeof signInOutcomes)[number];

export interface SignInMetricsOptions {
  registry: prom.Registry;
  /** Returns the number of clients whose sign-ins keep failing. */
  failingClients(): number;
}

export function createSignInMetrics({ registry, failingClients }: SignInMetricsOptions) {
  const registers = [registry];
  const signIns = new prom.Counter<'outcome' | 'reason'>({
    name: 'formgate_sign_ins_total',
    help: `Sign-ins by outcome (${signInOutcomes.join(', ')}) and reason (none, cancelled, or the page that the person got)`,
    labelNames: ['outcome', 'reason'],
    registers,
  });
  signIns.inc({ outcome: 'succeeded', reason: 'none' }, 0);
  new prom.Gauge({
    name: 'formgate_sign_in_failing_clients',
    help: 'Clients whose last five or more sign-ins at this pod all failed, within 15 minutes',
    registers,
    collect() {
      this.set(failingClients());
    },
  });
  return { signIns: signIns as { inc(labels: { outcome: SignInOutcome; reason: string }): void } };
}
