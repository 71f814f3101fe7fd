// Defines the readiness conditions that all services share. The identity provider must pass its check before the pod
// first becomes ready; the database pool must work at any time. Later outages of the identity provider, and the expiry
// of certificates, are reported but do not affect readiness.
import type pg from 'pg';
import {
  checkIdentityProvider,
  type IdentityProviderConfig,
  type IdentityProviderOptions,
} from '../auth/identity-provider.ts';
import { type WatchedAccount, watchIdentityProvider } from '../auth/identity-provider-watch.ts';
import { type PoolWatchOptions, watchPool } from '../postgres/pool-watch.ts';
import { createDependencyState } from './dependency-state.ts';
import type { Conditions } from './readiness.ts';
import { recordTrustedCertificates, type TrustedCertificates } from './trusted-certificates.ts';

export type PoolWatchPace = Partial<Pick<PoolWatchOptions, 'interval' | 'patience'>>;

export interface ProcessReadinessOptions extends Omit<IdentityProviderOptions, 'config' | 'account'> {
  /** The service's own account; undefined if the process has none. */
  account?: WatchedAccount | undefined;
  config: IdentityProviderConfig & TrustedCertificates;
  env: NodeJS.ProcessEnv;
  /** The database pool that requests use. */
  pool: pg.Pool;
  /** Overrides the intervals of the pool's watch. */
  watch?: PoolWatchPace | undefined;
}

export interface ProcessReadiness {
  conditions: Required<Conditions>;
  stop(): void;
}

export function watchReadiness({ pool, watch, env, ...options }: ProcessReadinessOptions): ProcessReadiness {
  const identityProvider = checkIdentityProvider(options);
  const showUp = (isUp: boolean) => options.metrics.dependencyUp.set({ dependency: 'postgres' }, Number(isUp));
  const stopWatch = watchIdentityProviderState(options);
  void recordTrustedCertificates(options.metrics.certificates, options.config, env.NODE_EXTRA_CA_CERTS);
  const requests = watchPool({ pool, url: options.config.DATABASE_URL, onChecked: showUp, ...watch });
  return {
    conditions: {
      first: { identity_provider: identityProvider.problem },
      local: { database_pool: requests.problem },
    },
    stop() {
      identityProvider.stop();
      stopWatch();
      requests.stop();
    },
  };
}

function watchIdentityProviderState({
  config,
  account,
  log,
  metrics,
}: Omit<ProcessReadinessOptions, 'pool' | 'env'>): () => void {
  const name = 'the identity provider';
  const state = createDependencyState({ dependency: 'identity-provider', name, log, metrics });
  return watchIdentityProvider({
    accessUrl: config.ACCESS_SERVICE_URL,
    account,
    state,
    certificates: metrics.certificates,
  });
}
