// Measures the cost of outbox rows. Three contenders lock drafts: the reconciler's batches, the same statement without
// outbox rows, and a plain batched UPDATE. The contenders take turns after each batch, on drafts that are stored side
// by side.
import type pg from 'pg';
import type { Policy } from '../../src/forms/expiry/expiry.ts';
import { noticeLimitSql } from '../../src/forms/expiry/notice-limit.ts';
import { lockSql } from '../../src/forms/expiry/statements.ts';
import { expiryStore, type Position } from '../../src/forms/expiry/store.ts';
import { planSql } from '../../src/forms/outbox/settle-statements.ts';
import { median } from './load.ts';

const day = 86_400_000;
const retention = { warnBefore: 3 * day, lockAfter: 15 * day, deleteAfter: 15 * day };
const batchSize = 1_000;

export const contenders = ['with outbox rows', 'without them', 'plain batched UPDATE'] as const;
export const definitionsOf: Record<(typeof contenders)[number], string> = {
  'with outbox rows': 'bench-outbox',
  'without them': 'bench-no-outbox',
  'plain batched UPDATE': 'bench-plain',
};

type Locker = (client: pg.PoolClient) => Promise<number>;

const withoutOutboxSql = lockSql
  .replace(`, ${noticeLimitSql('locked', 'form-locked')}`, '')
  .replace(/, written AS \([\s\S]*?\n\)\n/, '\n');
const plainSql = `
WITH due AS (
  SELECT id FROM forms
  WHERE tenant_id = $1 AND definition_id = $2 AND status = 'Draft' AND NOT held
    AND last_accessed < $3 AND (last_accessed, id) > ($4, $5)
  ORDER BY last_accessed, id LIMIT $6 FOR UPDATE SKIP LOCKED
), locked AS (
  UPDATE forms f SET status = 'Locked', locked = $7, revision = f.revision + 1 FROM due WHERE f.id = due.id
  RETURNING f.id, f.last_accessed
)
SELECT (count(*) OVER ())::int AS locked, last_accessed::text AS at, id FROM locked
ORDER BY last_accessed DESC, id DESC LIMIT 1`;

const farPast = { at: '-infinity', id: '00000000-0000-0000-0000-000000000000' };

function policyOf(tenantId: string, definitionId: string): Policy {
  return { tenantId, definitionId, retention };
}

function lockWithOutbox(tenant: string): Locker {
  let position: Position | undefined = { policies: [policyOf(tenant, definitionsOf['with outbox rows'])] };
  return async (client) => {
    if (!position) return 0;
    const batch = await expiryStore.batch(client, 'lock', {
      position,
      now: new Date(),
      limit: batchSize,
      dryRun: false,
    });
    position = batch.next;
    return batch.locked;
  };
}

/** Returns a function that locks one batch, beginning where the previous batch ended. */
function walk(sql: string, values: (now: Date, after: typeof farPast) => unknown[]): Locker {
  let after = farPast;
  return async (client) => {
    await client.query(planSql);
    const [row] = (await client.query(sql, values(new Date(), after))).rows;
    if (row) after = { at: row.at, id: row.id };
    return row?.locked ?? 0;
  };
}

function lockers(tenant: string): Record<(typeof contenders)[number], Locker> {
  const before = new Date(Date.now() - retention.lockAfter);
  const deleteOn = new Date(Date.now() + retention.deleteAfter);
  if (withoutOutboxSql.includes('outbox'))
    throw new Error('the lock statement has changed: it still writes outbox rows');
  return {
    'with outbox rows': lockWithOutbox(tenant),
    'without them': walk(withoutOutboxSql, (now, { at, id }) => {
      const definition = definitionsOf['without them'];
      return [[tenant], [definition], [at], [id], [before.toISOString()], batchSize, now, [deleteOn.toISOString()]];
    }),
    'plain batched UPDATE': walk(plainSql, (now, { at, id }) => {
      const definition = definitionsOf['plain batched UPDATE'];
      return [tenant, definition, before.toISOString(), at, id, batchSize, now];
    }),
  };
}

export interface LockComparison {
  name: string;
  /** Milliseconds of all batches together; `batch` is the duration of the median batch. */
  total: number;
  batch: number;
  locked: number;
}

export async function compareLocks(pool: pg.Pool, tenant: string): Promise<LockComparison[]> {
  const taken = contenders.map((name) => ({ name, times: [] as number[], locked: 0, done: false }));
  const byName = lockers(tenant);
  const client = await pool.connect();
  for (let round = 0; taken.some(({ done }) => !done); round += 1)
    // Rotate the order, because the disk writes of one contender slow the next contender down.
    for (const contender of [...taken.slice(round % 3), ...taken.slice(0, round % 3)]) {
      const started = performance.now();
      await client.query('BEGIN');
      const locked = await byName[contender.name](client);
      await client.query('COMMIT');
      if (locked === batchSize) contender.times.push(performance.now() - started);
      contender.locked += locked;
      contender.done = locked < batchSize;
    }
  client.release();
  return taken.map(({ name, times, locked }) => ({
    name,
    locked,
    total: times.reduce((sum, time) => sum + time, 0),
    batch: median(times),
  }));
}
