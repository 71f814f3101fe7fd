// The connection pools of the form service.
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import { createPool } from '../service/postgres/postgres.ts';
import { createSharedPool } from '../service/postgres/shared-pool.ts';
import type { FormsConfig } from './config.ts';
import { registerConnections, registerPoolName } from './registers/register-lock.ts';

export type Pools = ReturnType<typeof openPools>;

/**
 * Opens separate pools, so that many requests do not delay events, and long changes of registers do not delay requests.
 */
export function openPools({ config, log, metrics }: { config: FormsConfig; log: Logger; metrics: Metrics }) {
  const open = (name: string, size: number) => createPool({ url: config.DATABASE_URL, log, metrics, name, size });
  return {
    requests: open(requestPoolName, config.DATABASE_POOL_SIZE),
    outbox: open('outbox', 3),
    registers: open(registerPoolName, registerConnections),
  };
}

/** Label of the request pool in the metrics. */
const requestPoolName = 'requests';

export type RequestPool = ReturnType<typeof shareRequestPool>;

/** Keeps one locked form, or one tenant with slow statements, from taking all connections (decision 0032). */
export function shareRequestPool({ config, pools, metrics }: { config: FormsConfig; pools: Pools; metrics: Metrics }) {
  const details = {
    busy: 'Too many requests for this form or of this tenant are running.',
    locked: 'The form is being changed by another request.',
  };
  const size = config.DATABASE_POOL_SIZE;
  return createSharedPool({ pool: pools.requests, size, name: requestPoolName, details, metrics });
}
