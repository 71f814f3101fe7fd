// The quarantine of the token handler's database: what registrations leave to be done and cannot be finished.

import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { createQuarantineStore, type QuarantineStore } from '../../service/quarantine/quarantine-store.ts';
import { type LeftoverKind, tables } from './leftover-store.ts';

/** Refusals that a released row starts with: it is quarantined again by its first. */
const spent = 1_000;

/** A release makes the row due at once. */
export function createLeftoverQuarantine({ pool, clock }: { pool: pg.Pool; clock: Clock }): QuarantineStore {
  return createQuarantineStore({
    pool: unsharedPool(pool),
    async resume(db, items) {
      for (const kind of Object.keys(tables) as LeftoverKind[]) {
        const ids = items.flatMap((item) => (item.kind === `client-${kind}` ? [item.item] : []));
        await db.query(
          `UPDATE ${tables[kind]} SET not_before = $2, refusals = ${spent} WHERE id::text = ANY ($1) AND not_before = 'infinity'`,
          [ids, clock()],
        );
      }
      return [];
    },
  });
}

/** Removes the entries of what has been done since. */
export async function tidyLeftoverQuarantine(pool: pg.Pool): Promise<void> {
  for (const [kind, table] of Object.entries(tables))
    await pool.query(
      `DELETE FROM quarantine q WHERE q.kind = $1 AND NOT EXISTS (SELECT FROM ${table} t WHERE t.id::text = q.item)`,
      [`client-${kind}`],
    );
}
