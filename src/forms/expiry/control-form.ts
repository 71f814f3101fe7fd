// Distinguishes a form that is too slow to process from a database that is slow for every form. To do so, runs a stage
// on a control form: a small form that exists only within a savepoint.
import type pg from 'pg';
import { earlier } from '../../service/clock.ts';
import type { Policy } from './expiry.ts';
import { expiryStore, type Stage } from './store.ts';

const day = 86_400_000;
const policy: Policy = {
  tenantId: 'formgate:control',
  definitionId: 'control',
  retention: { warnBefore: day, lockAfter: 2 * day, deleteAfter: day },
};

/** For each stage, the status of a form that is due, and the milliseconds since its last access or its lock. */
const dueForms: Record<Stage, { status: string; age: number }> = {
  warn: { status: 'Draft', age: 1.5 * day },
  lock: { status: 'Draft', age: 3 * day },
  // This age exceeds the longest wait for the notice, so the form is deleted although its notice was not accepted.
  delete: { status: 'Locked', age: 1_000 * day },
};

const insertSql = `
INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
  one_per_applicant, applicant, last_accessed, locked)
VALUES (gen_random_uuid(), $1, $2, $3, $4, '{"id":"control","name":"control"}', 'core', true, false,
  '{"channels":[]}', $4, CASE WHEN $3 = 'Locked' THEN $4::timestamptz END)`;

/**
 * Processes a control form in the caller's transaction, and undoes all changes. Returns the number of processed forms,
 * which is 1. Rejects with the error of Postgres if the database is too slow even for this form.
 */
export async function tryControlForm(client: pg.ClientBase, stage: Stage, now: Date): Promise<number> {
  const { status, age } = dueForms[stage];
  const { tenantId, definitionId } = policy;
  const since = earlier(now, age);
  await client.query('SAVEPOINT control_form');
  await client.query(insertSql, [tenantId, definitionId, status, since]);
  const options = { position: { policies: [policy] }, now, limit: 1, dryRun: false };
  const batch = await expiryStore.batch(client, stage, options);
  await client.query('ROLLBACK TO SAVEPOINT control_form');
  return batch.warned + batch.locked + batch.deleted;
}
