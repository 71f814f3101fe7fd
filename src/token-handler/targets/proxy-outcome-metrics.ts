// Counts proxied requests by outcome. The counters of a target are created when the target is first used, so that later
// requests need not look up labels. Only a limited number of targets have their own label, because tenants choose the
// names of targets.
import prom from 'prom-client';
import { type ProxyOutcome, proxyOutcomes } from './proxy-outcome.ts';

/** The counters for one value of the label `target`. */
export type OutcomeCounters = Readonly<Record<ProxyOutcome, prom.Counter.Internal>>;

export interface ProxyOutcomes {
  /** Counters for requests that name no target of the session's client. */
  readonly ofNoTarget: OutcomeCounters;
  /** Returns the counters of a target. `targetId` must be the id of a target in the configuration of a client. */
  of(targetId: string): OutcomeCounters;
}

export interface ProxyOutcomesOptions {
  registry: prom.Registry;
  namesTargets: boolean;
}

/** Maximum number of targets that have their own label. Further targets are counted as `other`. */
const mostTargets = 100;

export function createProxyOutcomes({ registry, namesTargets }: ProxyOutcomesOptions): ProxyOutcomes {
  const requests = new prom.Counter<'outcome' | 'target'>({
    name: 'formgate_proxied_requests_total',
    help: `Proxied requests by outcome (${proxyOutcomes.join(', ')}), and by target if METRICS_TARGETS is on`,
    labelNames: ['outcome', 'target'],
    registers: [registry],
  });
  const create = (outcome: ProxyOutcome, target: string) => {
    const counter = requests.labels(outcome, target);
    // Exports the value 0 before the first request, because a query for a rate would otherwise miss the first failure.
    counter.inc(0);
    return counter;
  };
  const bind = (target: string) =>
    Object.fromEntries(proxyOutcomes.map((outcome) => [outcome, create(outcome, target)])) as OutcomeCounters;
  const ofNoTarget = bind('');
  if (!namesTargets) return { ofNoTarget, of: () => ofNoTarget };
  const ofOthers = bind('other');
  const known = new Map<string, OutcomeCounters>();
  return {
    ofNoTarget,
    of(targetId) {
      const counters = known.get(targetId);
      if (counters) return counters;
      if (known.size >= mostTargets) return ofOthers;
      const bound = bind(targetId);
      known.set(targetId, bound);
      return bound;
    },
  };
}
