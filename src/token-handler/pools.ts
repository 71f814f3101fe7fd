// Opens the connections of the token handler to Postgres. A change of a registration waits for the identity provider,
// so changes have their own pool.
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import { createPool } from '../service/postgres/postgres.ts';
import { changeConnections } from './clients/clients.ts';
import { changeSilence } from './clients/registration-locks.ts';
import type { TokenHandlerConfig } from './config.ts';

export interface PoolsOptions {
  config: Pick<TokenHandlerConfig, 'DATABASE_URL' | 'DATABASE_POOL_SIZE'>;
  log: Logger;
  metrics: Metrics;
}

export function openPools({ config, log, metrics }: PoolsOptions) {
  const database = { url: config.DATABASE_URL, log, metrics };
  return {
    pool: createPool({ ...database, name: 'requests', size: config.DATABASE_POOL_SIZE }),
    changePool: createPool({ ...database, name: 'registrations', size: changeConnections, silence: changeSilence }),
  };
}
