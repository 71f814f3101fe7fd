// A reconciler run over thousands of forms, of which 100 are broken in different ways. The run locks or deletes all
// forms, including the broken ones. Items that cannot be written or delivered are quarantined with a reason: the
// notices of 15 forms, and the subscribers of 15 others. Later runs skip the quarantined items. QUARANTINE_FORMS is the
// number of forms.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { permit } from '../support/forms.ts';
import { call } from '../support/platform.ts';
import { poison, poisons, refuseOutboxRows } from '../support/poison.ts';
import { reconcileHere, reconcilerEnv, spawnReconciler } from '../support/reconciler.ts';
import { sizeOf } from '../support/sizes.ts';

const day = 86_400_000;
const total = sizeOf('QUARANTINE_FORMS');
let world: FormWorld;
let forms: FormReplica;
let env: Record<string, string>;
let poisoned: string[];
beforeAll(async () => {
  world = await startFormWorld();
  env = reconcilerEnv(world.platform, world.databaseUrl);
  forms = await world.start();
  // Skip the delivery of thousands of events, which would only take time.
  await world.events.shut();
});
afterAll(() => world.close());

/**
 * Adds forms: half are drafts last opened 20 days ago; the others were locked 20 days ago, and their notices were
 * accepted. Returns the ids.
 */
async function addForms(): Promise<string[]> {
  const { rows } = await world.pool.query<{ id: string }>(
    `WITH made AS (
       INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
         anonymous_applicant, one_per_applicant, applicant, last_accessed, locked)
       SELECT gen_random_uuid(), $1, $2, CASE WHEN n % 2 = 0 THEN 'Draft' ELSE 'Locked' END, moment,
         '{"id":"intake","name":"Intake"}', 'demo', true, false, '{"channels":[]}', moment,
         CASE WHEN n % 2 = 1 THEN moment END
       FROM generate_series(0, $3 - 1) n, LATERAL (SELECT now() - interval '20 days' - n * interval '1 ms' AS moment) m
       RETURNING id, tenant_id, locked
     ), told AS (
       INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
       SELECT id, tenant_id, 'form-locked', jsonb_build_object('definitionId', $2), locked, locked, locked
       FROM made WHERE locked IS NOT NULL
     ) SELECT id FROM made ORDER BY random()`,
    [world.platform.tenant.id, permit.id, total],
  );
  return rows.map(({ id }) => id);
}

/** Gives the applicants of these forms an address that the notification service does not accept. */
async function rejectSubscribers(ids: string[]): Promise<void> {
  await world.pool.query(
    `UPDATE forms SET applicant = '{"channels":[{"channel":"email","address":"no address"}]}' WHERE id = ANY ($1)`,
    [ids],
  );
  await world.pool.query(
    `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
     SELECT id, tenant_id, 'subscribe', jsonb_build_object('definitionId', definition_id), now(), now()
     FROM forms WHERE id = ANY ($1)`,
    [ids],
  );
}

const inQuarantine = async () =>
  (
    await world.pool.query<{
      kind: string;
      reason: string;
      detail: string;
      formId: string;
      attempts: number;
      tried: Date;
    }>('SELECT kind, reason, detail, form_id AS "formId", attempts, last_tried AS tried FROM quarantine ORDER BY item')
  ).rows;
const due = async () =>
  (
    await world.pool.query<{ id: string }>(
      `SELECT id FROM forms WHERE (status = 'Draft' AND last_accessed < now() - interval '15 days')
         OR (status = 'Locked' AND locked < now() - interval '15 days')`,
    )
  ).rows.map(({ id }) => id);

it('all forms are locked or deleted although 100 are defective, and exit code 3 reports the defects once', async () => {
  const ids = await addForms();
  const untouched = [...ids];
  const take = (count: number) => untouched.splice(0, count);
  for (const assignment of Object.values(poisons)) await poison(world.pool, take(6), assignment);
  const failing = take(15);
  await refuseOutboxRows(world.pool, failing);
  const subscribers = take(100 - (total - untouched.length));
  await world.pool.query('DELETE FROM refused_forms');
  await rejectSubscribers(subscribers);
  expect(untouched).toHaveLength(total - 100);
  poisoned = ids.slice(0, 100);
  await expect.poll(async () => (await inQuarantine()).length).toBe(subscribers.length);
  await world.pool.query('INSERT INTO refused_forms SELECT unnest($1::uuid[])', [failing]);

  const first = await spawnReconciler(env).ended;
  expect({ code: first.code, stderr: first.stderr }).toEqual({ code: 3, stderr: '' });
  expect(await due()).toEqual([]);
  const entries = await inQuarantine();
  const of = (formIds: string[]) => entries.filter(({ formId }) => formIds.includes(formId));
  for (const entry of of(failing))
    expect(entry).toMatchObject({
      kind: expect.stringMatching(/^(?:lock|delete)-notice$/),
      reason: 'database-refused',
      detail: 'SQLSTATE 22P05',
    });
  expect(of(failing)).toHaveLength(15);
  // The deletion of a form also deletes the form's quarantine entry.
  const left = await world.pool.query<{ id: string }>('SELECT id FROM forms WHERE id = ANY ($1)', [subscribers]);
  expect(of(subscribers)).toHaveLength(left.rows.length);
  for (const entry of of(subscribers))
    expect(entry).toMatchObject({ kind: 'subscribe', reason: 'service-refused', detail: 'notifications 400' });
  expect(first.stdout).not.toMatch(/no address|Main Street/);

  const second = await spawnReconciler(env, ['--accept-quarantine']).ended;
  expect(second.code).toBe(0);
  expect((await spawnReconciler(env).ended).code).toBe(0);
  expect(await inQuarantine()).toEqual(entries);

  const { text } = await call(`${forms.metricsUrl}/metrics`);
  expect(text).toMatch(/formgate_quarantined_items\{kind="(?:lock|delete)-notice",reason="database-refused"\} [1-9]/);
  expect(text).toMatch(/^formgate_overdue_deletions 0/m);
});

it('forms with quarantined notices can be deleted by people and by the reconciler, and leave no quarantine entry', async () => {
  await world.pool.query('DELETE FROM forms WHERE id <> ALL ($1)', [poisoned]);
  const { rows } = await world.pool.query<{ id: string }>(
    `SELECT form_id AS id FROM quarantine WHERE kind = 'lock-notice' LIMIT 1`,
  );
  const id = rows[0]?.id;
  await world.pool.query('DELETE FROM refused_forms');
  expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
  expect((await inQuarantine()).filter(({ formId }) => formId === id)).toEqual([]);

  const token = world.token('admin');
  const { body } = await call(`${forms.url}/form/v1/quarantine?top=100`, { token });
  for (const item of (body as { results: { id: string }[] }).results)
    await call(`${forms.url}/form/v1/quarantine/${item.id}`, { method: 'POST', token, body: { operation: 'release' } });
  expect(await reconcileHere(env, { arguments: { only: 'expire' } })).toMatchObject({ outcome: 'succeeded' });
  expect(await due()).toEqual([]);
  const later = () => new Date(Date.now() + 40 * day);
  expect(await reconcileHere(env, { clock: later, arguments: { only: 'expire' } })).toMatchObject({
    outcome: 'succeeded',
  });
  expect((await world.pool.query('SELECT FROM forms')).rowCount).toBe(0);
  expect((await inQuarantine()).filter(({ kind }) => kind !== 'subscribe')).toEqual([]);
});
