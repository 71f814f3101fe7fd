// Defines the metrics of token refreshes.
import prom from 'prom-client';

/**
 * The outcomes that the metric of refreshes counts: the kinds of RefreshOutcome, and two more. `abandoned`: the replica
 * died during the attempt. `late`: the outcome was not stored, because the session had already ended or had other
 * tokens.
 */
export const refreshOutcomes = [
  ...(['refreshed', 'refused', 'unused', 'client-refused', 'unknown', 'foreign'] as const),
  ...(['abandoned', 'late'] as const),
] as const;
export type CountedRefresh = (typeof refreshOutcomes)[number];

export interface RefreshMetrics {
  outcomes: { inc(labels: { outcome: CountedRefresh }): void };
  refusals: prom.Counter<'reason'>;
}

export interface RefreshMetricsOptions {
  registry: prom.Registry;
  /** Returns the numbers of running and waiting refreshes. Called at each scrape of the metrics. */
  queue(): { running: number; waiting: number };
}

export function createRefreshMetrics({ registry, queue }: RefreshMetricsOptions): RefreshMetrics {
  const registers = [registry];
  new prom.Gauge({
    name: 'formgate_token_refreshes_in_progress',
    help: 'Token refreshes by state: running (the identity provider has not responded yet), waiting (in the queue before they are sent)',
    labelNames: ['state'],
    registers,
    collect() {
      const { running, waiting } = queue();
      this.set({ state: 'running' }, running);
      this.set({ state: 'waiting' }, waiting);
    },
  });
  const outcomes = new prom.Counter({
    name: 'formgate_token_refreshes_total',
    help: `Token refreshes by outcome (${refreshOutcomes.join(', ')})`,
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of refreshOutcomes) outcomes.inc({ outcome }, 0);
  return {
    outcomes,
    refusals: new prom.Counter({
      name: 'formgate_token_refresh_refusals_total',
      help: 'Token refreshes that did not start because too many were waiting, by reason: full (the queue was full), late (waited too long)',
      labelNames: ['reason'],
      registers,
    }),
  };
}
