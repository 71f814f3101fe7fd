// Applicants and administrators use forms while a reconciler in another process expires the same forms. Every response
// matches the final state of the form. The tests of the reconciler cover races for single rows.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { addOverdue } from '../support/overdue.ts';
import type { Answered } from '../support/platform.ts';
import { reconcilerEnv, spawnReconciler } from '../support/reconciler.ts';

const patience = 60_000;
let world: FormWorld;
let forms: FormReplica;
beforeAll(async () => {
  world = await startFormWorld();
  forms = await world.start();
  // Each lock and deletion takes 20 ms longer, so that the reconciler still works when the requests begin.
  await world.pool.query(`
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(0.02); RETURN coalesce(NEW, OLD); END $$;
    CREATE TRIGGER slow_lock BEFORE UPDATE ON forms FOR EACH ROW
      WHEN (OLD.status = 'Draft' AND NEW.status = 'Locked') EXECUTE FUNCTION wait();
    CREATE TRIGGER slow_deletion BEFORE DELETE ON forms FOR EACH ROW EXECUTE FUNCTION wait();`);
});
afterAll(() => world.close());

const add = (count: number, name: string) =>
  addOverdue(world.pool, { tenantId: world.platform.tenant.id, count, days: 16, name });
const kindsOf = async (id: string) => {
  const sql = "SELECT kind FROM outbox WHERE form_id = $1 AND kind LIKE 'form-%' ORDER BY sequence";
  return (await world.pool.query<{ kind: string }>(sql, [id])).rows.map(({ kind }) => kind);
};
const formOf = async (id: string) =>
  (await world.pool.query('SELECT status, held, data FROM forms WHERE id = $1', [id])).rows[0];
const begun = async (sql: string) => (await world.pool.query(sql)).rowCount ?? 0;

/**
 * Sends a request for each form, beginning with the newest. The reconciler begins with the oldest form, so the requests
 * and the reconciler meet at some form.
 */
async function whileRunning(ids: string[], hasBegun: string, ask: (id: string) => Promise<Answered>) {
  const env = { ...reconcilerEnv(world.platform, world.databaseUrl), BATCH_SIZE: '1' };
  const running = spawnReconciler(env, ['--only', 'expire']);
  await expect.poll(() => begun(hasBegun), { timeout: patience, interval: 2 }).toBeGreaterThan(0);
  const responses = new Map<string, Answered>();
  for (const id of ids) responses.set(id, await ask(id));
  const { code, lines } = await running.ended;
  expect([code, lines.find(({ outcome }) => outcome !== undefined)]).toMatchObject([0, { outcome: 'succeeded' }]);
  return responses;
}

describe('during a run of the reconciler', { timeout: 3 * patience }, () => {
  it('a save gets 200 and the draft is kept, or gets 409 form-locked and saves nothing', async () => {
    const ids = await add(80, 'saving');
    const responses = await whileRunning(ids, "SELECT FROM forms WHERE status = 'Locked'", (id) =>
      forms.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: { name: 'saved' }, files: {} } }),
    );
    for (const [id, { status, body }] of responses) {
      expect([200, 409]).toContain(status);
      if (status === 409) expect(body).toMatchObject({ type: 'urn:formgate:problem:form-locked' });
      const saved = { status: 'Draft', data: { name: 'saved' } };
      expect(await formOf(id)).toMatchObject(status === 200 ? saved : { status: 'Locked', data: { name: 'Ana' } });
      expect(await kindsOf(id)).toEqual(status === 200 ? [] : ['form-locked']);
    }
    expect([...responses.values()].some(({ status }) => status === 200)).toBe(true);
  });

  it('a hold keeps the form in the status that its response shows', async () => {
    await world.pool.query('DELETE FROM forms');
    const ids = await add(80, 'holding');
    const responses = await whileRunning(ids, "SELECT FROM forms WHERE status = 'Locked'", (id) =>
      forms.ask('POST', `/${id}`, { as: 'admin', body: { operation: 'hold' } }),
    );
    for (const [id, { status, body }] of responses) {
      expect(status).toBe(200);
      const { status: found } = body as { status: string };
      expect(await formOf(id)).toMatchObject({ status: found, held: true });
      expect(await kindsOf(id)).toEqual(found === 'Draft' ? [] : ['form-locked']);
    }
    expect([...responses.values()].some(({ body }) => (body as { status: string }).status === 'Draft')).toBe(true);
  });

  it('an unlock gets 200 and the form is a draft again, or gets 410 and the form is deleted', async () => {
    await world.pool.query('DELETE FROM forms');
    const ids = await add(80, 'unlocking');
    await world.pool.query(
      `UPDATE forms SET status = 'Locked', locked = last_accessed - interval '16 days', revision = 2`,
    );
    await world.pool.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
      SELECT id, tenant_id, 'form-locked', '{"definitionId":"permit"}', locked, locked, locked FROM forms`,
    );
    const responses = await whileRunning(ids, 'SELECT FROM tombstones', (id) =>
      forms.ask('POST', `/${id}`, { as: 'admin', body: { operation: 'unlock' } }),
    );
    for (const [id, { status }] of responses) {
      expect([200, 410]).toContain(status);
      expect((await formOf(id))?.status).toBe(status === 200 ? 'Draft' : undefined);
      expect(await kindsOf(id)).toEqual(['form-locked', status === 200 ? 'form-unlocked' : 'form-deleted']);
    }
    expect([...responses.values()].some(({ status }) => status === 200)).toBe(true);
  });
});
