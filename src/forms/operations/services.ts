// Builds the objects that the operations route uses.
import type { Clock } from '../../service/clock.ts';
import type { Refusals } from '../../service/operations/refusals.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { FindPolicy } from '../expiry/dates.ts';
import { readRecentRuns, readRunHistory } from '../expiry/run-store.ts';
import { deliveryServices } from '../outbox/claim-statements.ts';
import { createStorageStore } from '../storage/store.ts';
import { createReadOperations, type ReadOperations } from './operations.ts';
import { createOperationsStore, requesterOfOperations } from './store.ts';

export interface OperationsServicesOptions {
  pool: SharedPool;
  findPolicy: FindPolicy;
  refusals: Refusals;
  config: { TENANT_STORAGE_LIMIT: number };
  clock: Clock;
}

export function createOperationsServices(options: OperationsServicesOptions): { read: ReadOperations } {
  const { pool, findPolicy, refusals, config, clock } = options;
  const db = {
    query: (text: string, values: unknown[] = []) => pool.query(requesterOfOperations(), text, values),
  } as Queryable;
  const storage = createStorageStore(db);
  const read = createReadOperations({
    ...{ store: createOperationsStore(pool, deliveryServices), policyOf: findPolicy, refusals, clock },
    readRuns: (count) => readRecentRuns(db, count),
    readHistory: () => readRunHistory(db),
    async storageOf(tenantId) {
      const { bytes = 0, measured = null } = (await storage.read([tenantId]))[0] ?? {};
      return { bytes, limit: config.TENANT_STORAGE_LIMIT, measured };
    },
  });
  return { read };
}
