// Creates and releases quarantined notices. If Postgres refuses the outbox row of a lock or a deletion, the reconciler
// changes the form without the row, and the notice is quarantined. The quarantine entry contains the facts of the
// missing row, and a release writes the row.
import type pg from 'pg';
import { productVersion } from '../../service/operations/product-version.ts';
import { databaseRefusal, type NewQuarantineItem, type QuarantineCause } from '../../service/quarantine/quarantine.ts';
import { putInQuarantine, type ReleasedItem } from '../../service/quarantine/quarantine-store.ts';
import { storedOrigin } from '../../service/tracing/tracing.ts';
import type { BareStage, UnwrittenNotice } from '../expiry/store.ts';

export function noticeEntry(
  stage: BareStage,
  { formId, tenantId, facts }: UnwrittenNotice,
  cause: QuarantineCause,
): NewQuarantineItem {
  return { kind: `${stage}-notice`, item: formId, tenantId, about: { formId, ...facts }, ...cause };
}

// The outbox rows of a form must be written in the order of its changes, so the statement locks the form's row. If
// another transaction holds that lock, the form is skipped. Waiting could deadlock: a deletion locks the form before
// the quarantine entry, and a release locks the entry before the form.
const lockedForm = `JOIN forms f ON f.id = q.form_id AND f.status || '' = 'Locked'`;

/**
 * Returns SQL that writes the outbox row of a released notice. $1 the id of the quarantine entry, $2 now, $3 the trace,
 * $4 the id of the request. The event's timestamp is `first_seen`, the time when the form changed.
 */
const writeSql = (kind: string, join: string, lock: string) => `
WITH written AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, traceparent, request_id)
  SELECT q.form_id, q.tenant_id, '${kind}', q.about - 'formId', q.first_seen, $2, $3, $4
  FROM quarantine q ${join}
  WHERE q.id = $1 ${lock}
  RETURNING form_id
)
DELETE FROM quarantine q USING written WHERE q.id = $1`;

const writeSqlOf: Record<string, string> = {
  'lock-notice': writeSql('form-locked', lockedForm, 'FOR NO KEY UPDATE OF f SKIP LOCKED'),
  'delete-notice': writeSql('form-deleted', '', ''),
};

/** Keeps an entry whose row was not attempted. This version of the product, $2, will therefore retry it. */
const keepSql = `
UPDATE quarantine SET released = false, retried_by = array_remove(retried_by, $2) WHERE id = $1`;

export const isNotice = ({ kind }: Pick<ReleasedItem, 'kind'>) => Object.hasOwn(writeSqlOf, kind);

/**
 * Writes the outbox rows of released notices in the transaction of the release, and removes their entries. Returns the
 * ids of the entries that stay in quarantine. An entry stays if Postgres refuses its row again, if the form is no
 * longer locked, or if another transaction is changing the form.
 */
export async function resumeNotices(db: pg.ClientBase, items: readonly ReleasedItem[], now: Date): Promise<string[]> {
  const kept: string[] = [];
  for (const item of items) {
    const sql = writeSqlOf[item.kind];
    if (sql && !(await resumeNotice(db, item, sql, now))) kept.push(item.id);
  }
  return kept;
}

async function resumeNotice(db: pg.ClientBase, item: ReleasedItem, sql: string, now: Date): Promise<boolean> {
  await db.query('SAVEPOINT notice');
  try {
    const { rowCount } = await db.query(sql, [item.id, now, ...storedOrigin()]);
    if (rowCount === 0) await db.query(keepSql, [item.id, productVersion()]);
    await db.query('RELEASE SAVEPOINT notice');
    return rowCount !== 0;
  } catch (error) {
    const cause = databaseRefusal(error);
    if (!cause) throw error;
    await db.query('ROLLBACK TO SAVEPOINT notice');
    const { kind, item: formId, tenantId, about } = item;
    await putInQuarantine(db, [{ kind, item: formId, tenantId, about, ...cause }], now);
    return false;
  }
}
