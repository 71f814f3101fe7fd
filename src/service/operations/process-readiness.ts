// Defines the readiness conditions of all services: the identity provider before the pod first becomes ready, and the
// database pool at any time.
import type pg from 'pg';
import {
  checkIdentityProvider,
  type IdentityProviderConfig,
  type IdentityProviderOptions,
} from '../auth/identity-provider.ts';
import { type PoolWatchOptions, watchPool } from '../postgres/pool-watch.ts';
import type { Conditions } from './readiness.ts';

export interface ProcessReadinessOptions extends Omit<IdentityProviderOptions, 'config'> {
  config: IdentityProviderConfig & { DATABASE_URL: string };
  /** The pool that requests use. */
  pool: pg.Pool;
  /** Overrides of the times of the pool's watch. */
  watch?: Partial<PoolWatchOptions> | undefined;
}

export interface ProcessReadiness {
  conditions: Required<Conditions>;
  stop(): void;
}

export function watchReadiness({ pool, watch, ...options }: ProcessReadinessOptions): ProcessReadiness {
  const identityProvider = checkIdentityProvider(options);
  const showUp = (isUp: boolean) => options.metrics.dependencyUp.set({ dependency: 'postgres' }, Number(isUp));
  const requests = watchPool({ pool, url: options.config.DATABASE_URL, onChecked: showUp, ...watch });
  return {
    conditions: {
      first: { identity_provider: identityProvider.problem },
      local: { database_pool: requests.problem },
    },
    stop() {
      identityProvider.stop();
      requests.stop();
    },
  };
}
