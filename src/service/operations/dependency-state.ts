// Tracks whether a dependency can be reached. Exports the state as a metric, and logs one line when the dependency
// becomes unreachable and one when it is back. This module sends no requests: the code that uses or watches the
// dependency reports results.
import type { Logger } from './log.ts';

export type DependencyStatus = 'up' | 'unreachable' | 'refused';

/** The dependencies whose state is logged and exported as a metric. */
export const watchedDependencies = ['postgres', 'redis', 'identity-provider'] as const;

export interface DependencyState {
  /** State of the dependency; undefined until the first report. */
  readonly status: DependencyStatus | undefined;
  /** Reports that the dependency has responded. */
  up(): void;
  /**
   * Reports that the dependency did not respond, or that it `refused` this process's credentials. A later `unreachable`
   * does not replace `refused`, because the errors of a cluster's nodes may alternate between the two. `facts` are
   * logged, and must not contain secrets.
   */
  down(status: 'unreachable' | 'refused', facts: Record<string, unknown>): void;
}

export interface DependencyStateOptions {
  /** Value of the metric's label `dependency`. */
  dependency: (typeof watchedDependencies)[number];
  /** Subject of the log messages, such as `Redis` or `the identity provider`. */
  name: string;
  log: Pick<Logger, 'info' | 'error'>;
  metrics: { dependencyUp: { set(labels: { dependency: string }, value: number): void } };
}

/** Creates the state of one dependency of a process. The metric has no value before the first report. */
export function createDependencyState({ dependency, name, log, metrics }: DependencyStateOptions): DependencyState {
  let status: DependencyStatus | undefined;
  /** `performance.now()` of the first failure since the dependency was last up. */
  let downSince = 0;
  const change = (next: DependencyStatus) => {
    if (status !== 'unreachable' && status !== 'refused') downSince = performance.now();
    status = next;
    metrics.dependencyUp.set({ dependency }, Number(next === 'up'));
  };
  return {
    get status() {
      return status;
    },
    up() {
      if (status === 'up') return;
      const wasDown = status !== undefined;
      const downForMs = Math.round(performance.now() - downSince);
      change('up');
      if (wasDown) log.info({ dependency, downForMs }, `${name} is reachable again`);
      else log.info({ dependency }, `${name} is reachable`);
    },
    down(next, facts) {
      if (status === next || status === 'refused') return;
      change(next);
      const message = next === 'refused' ? `${name} refuses the credentials` : `${name} is unreachable`;
      log.error({ dependency, ...facts }, message);
    },
  };
}
