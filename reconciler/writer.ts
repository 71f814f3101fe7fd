// How a run writes: in transactions that hold its lease. A dry run has none of it and reads only.
import type pg from 'pg';

export interface Writer {
  dryRun: boolean;
  transact<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T>;
}
