// Lets one run work at a time. A run acquires the lease by increasing its generation. Each of its transactions locks the
// lease's row and checks that the generation is still its own, so that a run that lost the lease writes nothing, however
// late it resumes. A run that died loses the lease when it expires.
import type pg from 'pg';
import type { Clock } from '../src/service/clock.ts';
import { withTransaction } from '../src/service/postgres/postgres.ts';

/** Another run holds the lease now. */
export class LeaseLostError extends Error {
  constructor() {
    super('Another run has taken the lease.');
    this.name = 'LeaseLostError';
  }
}

/** How a run writes: in transactions that commit only while it holds the lease. A dry run reads only. */
export interface Writer {
  dryRun: boolean;
  /** Rejects with LeaseLostError if another run has taken the lease. */
  transact<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T>;
}

export interface Lease extends Pick<Writer, 'transact'> {
  /** A bigint, as text. */
  readonly generation: string;
  /** Extends the lease. Rejects with LeaseLostError. */
  renew(): Promise<void>;
  /** Ends the lease in a transaction, after `work`. Rejects with LeaseLostError. */
  release(work: (client: pg.PoolClient) => Promise<void>): Promise<void>;
  /** Stops renewing the lease, which then expires. */
  abandon(): void;
}

export interface LeaseOptions {
  pool: pg.Pool;
  clock: Clock;
  /** Milliseconds from the last renewal until another run may take the lease. */
  duration: number;
}

// The table of the lease is called reconciler_turn. SKIP LOCKED: a locked row belongs to a run that is in a transaction.
const acquireSql = `
WITH free AS (
  SELECT only_row FROM reconciler_turn WHERE held_until IS NULL OR held_until <= $1 FOR UPDATE SKIP LOCKED
)
UPDATE reconciler_turn t SET generation = t.generation + 1, held_until = $2
FROM free WHERE t.only_row = free.only_row
RETURNING t.generation`;

// A renewal that arrives late does not revive a released lease.
const renewSql = 'UPDATE reconciler_turn SET held_until = $2 WHERE generation = $1 AND held_until IS NOT NULL';

/** Undefined when another run holds the lease. */
export async function acquireLease({ pool, clock, duration }: LeaseOptions): Promise<Lease | undefined> {
  const end = () => new Date(clock().getTime() + duration);
  const [acquired] = (await pool.query<{ generation: string }>(acquireSql, [clock(), end()])).rows;
  if (!acquired) return undefined;
  const { generation } = acquired;

  async function hold(db: Pick<pg.PoolClient, 'query'>, until: Date | null): Promise<void> {
    const { rowCount } = await db.query(renewSql, [generation, until]);
    if (rowCount !== 1) throw new LeaseLostError();
  }

  const renew = () => hold(pool, end());
  // While a run waits for the platform it has no transactions. After a failed renewal, the next transaction fails.
  const heartbeat = setInterval(() => void renew().catch(() => undefined), Math.max(duration / 3, 10));
  heartbeat.unref();
  return {
    generation,
    renew,
    transact: (work) =>
      withTransaction(pool, async (client) => {
        await hold(client, end());
        return work(client);
      }),
    async release(work) {
      clearInterval(heartbeat);
      await withTransaction(pool, async (client) => {
        await hold(client, end());
        await work(client);
        await hold(client, null);
      });
    },
    abandon: () => clearInterval(heartbeat),
  };
}
