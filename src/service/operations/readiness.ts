// Decides whether this pod gets requests. A pod is not ready while it has a problem that other pods do not share. An
// outage of a shared store does not affect readiness. Otherwise, all pods would leave the load balancer, and callers
// would get the error of the load balancer, which may be a 404.
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import { createReadinessMetrics } from './readiness-metrics.ts';

/**
 * Returns a problem for the operator, or undefined if the condition is met. A condition must not wait for other
 * services.
 */
export type Condition = () => string | undefined | Promise<string | undefined>;

export interface Conditions {
  /** Each condition must be met once before the pod first becomes ready. */
  first?: Record<string, Condition>;
  /** The pod is not ready while one of these conditions is not met. */
  local?: Record<string, Condition>;
}

export interface ReadinessReport {
  ready: boolean;
  draining: boolean;
  /** Problems of the conditions that are not met, keyed by the condition's name. */
  waitingFor: Record<string, string>;
}

export interface ReadinessOptions extends Conditions {
  isDraining(): boolean;
  metrics: Metrics;
  log: Logger;
}

export function createReadiness(options: ReadinessOptions): () => Promise<ReadinessReport> {
  const { first = {}, local = {}, isDraining, metrics, log } = options;
  const unmet = new Map(Object.entries(first));
  let wasReady: boolean | undefined;

  async function report(): Promise<ReadinessReport> {
    const waitingFor: Record<string, string> = {};
    for (const [name, condition] of [...unmet, ...Object.entries(local)]) {
      const problem = await condition();
      if (problem !== undefined) waitingFor[name] = problem;
      else unmet.delete(name);
    }
    const draining = isDraining();
    const isFit = Object.keys(waitingFor).length === 0;
    if (!draining && isFit !== wasReady) logChange(isFit, waitingFor);
    return { ready: isFit && !draining, draining, waitingFor };
  }

  function logChange(isFit: boolean, waitingFor: Record<string, string>): void {
    if (isFit) log.info('became ready');
    else if (wasReady) log.error({ waitingFor }, 'readiness ended');
    wasReady = isFit;
  }

  const reasons = ['draining', ...Object.keys(first), ...Object.keys(local)];
  createReadinessMetrics({ registry: metrics.registry, reasons, report });
  return report;
}
