// One run at a time. A run takes the turn by making a new generation of it; each of its transactions locks the turn's
// row and asks whether the generation still is its own, so a run that lost the turn, however late it wakes up, writes
// nothing. A holder that died loses it when its lease is over.
import type pg from 'pg';
import type { Clock } from '../src/service/clock.ts';
import { withTransaction } from '../src/service/postgres/postgres.ts';

/** Another run holds the turn now. */
export class TurnLostError extends Error {
  constructor() {
    super('Another run has taken the turn.');
    this.name = 'TurnLostError';
  }
}

export interface Turn {
  /** A bigint, as text. */
  readonly generation: string;
  /** Runs `work` in a transaction that commits only while the turn is ours. Rejects with TurnLostError when it is not. */
  transact<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T>;
  /** Renews the lease. Rejects with TurnLostError. */
  assert(): Promise<void>;
  /** Gives the turn back in a transaction, after `work`. Rejects with TurnLostError. */
  release(work: (client: pg.PoolClient) => Promise<void>): Promise<void>;
  /** Stops renewing the lease; the turn stays ours until it is over. */
  abandon(): void;
}

export interface TurnOptions {
  pool: pg.Pool;
  clock: Clock;
  /** Milliseconds from the last sign of life of a holder to the moment when somebody else may take the turn. */
  lease: number;
}

// A row that is locked belongs to a run that is at work at this moment.
const takeSql = `
WITH free AS (
  SELECT only_row FROM reconciler_turn WHERE held_until IS NULL OR held_until <= $1 FOR UPDATE SKIP LOCKED
)
UPDATE reconciler_turn t SET generation = t.generation + 1, held_until = $2
FROM free WHERE t.only_row = free.only_row
RETURNING t.generation`;

// A turn that was given back is not held again by a sign of life that was on its way.
const renewSql = 'UPDATE reconciler_turn SET held_until = $2 WHERE generation = $1 AND held_until IS NOT NULL';

/** Undefined when another run holds the turn. */
export async function takeTurn({ pool, clock, lease }: TurnOptions): Promise<Turn | undefined> {
  const end = () => new Date(clock().getTime() + lease);
  const [taken] = (await pool.query<{ generation: string }>(takeSql, [clock(), end()])).rows;
  if (!taken) return undefined;
  const { generation } = taken;

  async function hold(db: Pick<pg.PoolClient, 'query'>, until: Date | null): Promise<void> {
    const { rowCount } = await db.query(renewSql, [generation, until]);
    if (rowCount !== 1) throw new TurnLostError();
  }

  const assert = () => hold(pool, end());
  // While a run waits for the platform it has no transactions. A failed renewal shows at the next one.
  const heartbeat = setInterval(() => void assert().catch(() => undefined), Math.max(lease / 3, 10));
  heartbeat.unref();
  return {
    generation,
    assert,
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
