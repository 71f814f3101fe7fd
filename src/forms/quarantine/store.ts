// The quarantine of the form service. It contains forms that the expiry cannot change, outbox rows that cannot be
// written or delivered, and core clients that the reconciler cannot write.
import type { Clock } from '../../service/clock.ts';
import { productVersion } from '../../service/operations/product-version.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import { createQuarantineStore, type QuarantineStore, untriedBy } from '../../service/quarantine/quarantine-store.ts';
import { outboxKinds } from '../outbox/event-catalogue.ts';
import { resumeNotices } from './notices.ts';

const isOutboxKind = (kind: string) => (outboxKinds as readonly string[]).includes(kind);

/**
 * The number of refusals that a released row gets. This number exceeds the limit, so the next refusal quarantines the
 * row again.
 */
const spent = 1_000;

const resumeSql = `
UPDATE outbox SET not_before = $2, refusals = ${spent}
WHERE sequence = ANY ($1::bigint[]) AND accepted IS NULL AND not_before = 'infinity'`;

/**
 * The release of a quarantined outbox row makes the row due. The release of a notice writes its missing row. The next
 * run of the reconciler retries released forms and core clients.
 */
export function createFormsQuarantine({ pool, clock }: { pool: SharedPool; clock: Clock }): QuarantineStore {
  return createQuarantineStore({
    pool,
    async resume(db, items) {
      const sequences = items.filter(({ kind }) => isOutboxKind(kind)).map(({ item }) => item);
      if (sequences.length > 0) await db.query(resumeSql, [sequences, clock()]);
      return resumeNotices(db, items, clock());
    },
  });
}

const tidySql = `
DELETE FROM quarantine q
WHERE (q.kind IN ('warn', 'lock') AND NOT EXISTS (SELECT FROM forms f WHERE f.id = q.form_id AND f.status = 'Draft'))
  OR (q.kind IN ('delete', 'lock-notice') AND NOT EXISTS (SELECT FROM forms f WHERE f.id = q.form_id AND f.status = 'Locked'))
  OR (q.kind = ANY ($1) AND NOT EXISTS (
    SELECT FROM outbox o WHERE o.accepted IS NULL
      AND o.sequence = CASE WHEN q.kind = ANY ($1) THEN q.item::bigint END))`;

/** Removes quarantine entries whose item no longer exists or has been processed. */
export async function tidyQuarantine(db: Queryable): Promise<void> {
  await db.query(tidySql, [outboxKinds]);
}

const sinceSql = `
SELECT count(*)::int AS count FROM quarantine
WHERE NOT released AND kind = ANY ($1)
  AND last_tried > coalesce(
    (SELECT started FROM reconciler_runs WHERE expiry_succeeded IS NOT NULL ORDER BY generation DESC LIMIT 1),
    '-infinity')`;

/**
 * Counts the outbox rows that were quarantined since the last run with an expiry started. Only such a run counts them,
 * at the end of its expiry, so the end of a run would miss rows. A row that was quarantined during the last expiry may
 * count twice.
 */
export async function countSinceLastRun(db: Queryable): Promise<number> {
  return (await db.query<{ count: number }>(sinceSql, [outboxKinds])).rows[0]?.count ?? 0;
}

const retriesSql = `SELECT count(*)::int AS count FROM quarantine WHERE released OR (${untriedBy('$1')})`;

/** Counts the items that the next run of the reconciler will retry. */
export async function countRetries(db: Queryable): Promise<number> {
  return (await db.query<{ count: number }>(retriesSql, [productVersion()])).rows[0]?.count ?? 0;
}
