// Opens the connections to Postgres. Each kind of work has its own pool. A burst of requests therefore does not delay
// events, and long changes of registers do not delay requests.
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import { createPool } from '../service/postgres/postgres.ts';
import { createSharedPool, type SharedPool } from '../service/postgres/shared-pool.ts';
import type { FormsConfig } from './config.ts';
import { registerConnections, registerPoolName, registerSilence } from './registers/register-lock.ts';

export interface PoolsOptions {
  config: Pick<FormsConfig, 'DATABASE_URL' | 'DATABASE_POOL_SIZE'>;
  log: Logger;
  metrics: Metrics;
}

export type Pools = ReturnType<typeof openPools>;

/** Label of the request pool in the metrics. */
const requestPoolName = 'requests';
const outboxConnections = 3;

export function openPools({ config, log, metrics }: PoolsOptions) {
  const database = { url: config.DATABASE_URL, log, metrics };
  const open = (name: string, size: number) => createPool({ ...database, name, size });
  return {
    requests: open(requestPoolName, config.DATABASE_POOL_SIZE),
    outbox: open('outbox', outboxConnections),
    registers: createPool({ ...database, name: registerPoolName, size: registerConnections, silence: registerSilence }),
  };
}

/** Maximum number of Postgres connections that one process opens. */
export function mostConnections(config: Pick<FormsConfig, 'DATABASE_POOL_SIZE'>): number {
  return config.DATABASE_POOL_SIZE + outboxConnections + registerConnections;
}

/**
 * Limits the connections of the request pool that one form and one tenant can use (decision 0032). One locked form, or
 * one tenant with slow statements, therefore cannot take all connections.
 */
export function shareRequestPool({ config, pools, metrics }: PoolsOptions & { pools: Pools }): SharedPool {
  const details = {
    busy: 'Too many requests for this form or of this tenant are running.',
    locked: 'The form is being changed by another request.',
  };
  const size = config.DATABASE_POOL_SIZE;
  return createSharedPool({ pool: pools.requests, size, name: requestPoolName, details, metrics });
}
