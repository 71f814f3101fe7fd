// Tests the report of the operations route. A core user gets the figures of all tenants; a tenant's administrator gets
// only those of the tenant.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { addOverdue } from '../../../test/support/overdue.ts';
import { call } from '../../../test/support/platform.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { putInQuarantine } from '../../service/quarantine/quarantine-store.ts';
import { writeRun } from '../expiry/run-store.ts';
import { operationsResponse } from './schema.ts';

let forms: TestForms;
let core: string;
let own: string;
let foreign: string;
beforeAll(async () => {
  forms = await startTestForms();
  core = await forms.tokenWith({ realm: 'core', roles: ['form-admin'] });
  [own, foreign] = [forms.platform.tenant.id, forms.platform.otherTenant.id];
});
afterAll(() => forms.close());
beforeEach(async () => {
  await forms.pool.query('TRUNCATE quarantine, reconciler_runs, outbox, forms CASCADE');
  // Requests within five seconds get the same result, so each test begins after this time.
  forms.advance(5_000);
});

const ask = (token = forms.token('admin'), query = '') => call(`${forms.url}/form/v1/operations${query}`, { token });
const read = async (token?: string, query?: string) => operationsResponse.parse((await ask(token, query)).body);
const forTenant = (id: string) => `?tenantId=${encodeURIComponent(id)}`;

async function addRun(generation: string, changes: object = {}): Promise<void> {
  const finished = forms.now();
  await writeRun(forms.pool, {
    ...{ generation, started: new Date(finished.getTime() - 60_000), finished, outcome: 'succeeded' },
    ...{ expirySucceeded: true, clientsSucceeded: true, counts: { locked: 3 }, conditions: { 'Ready=True': 2 } },
    ...{ oldestOverdue: null, overdueDeletions: 0, formsByStatus: null, retention: null, ...changes },
  });
}

describe('GET /form/v1/operations', () => {
  it('returns the last ten runs, newest first, with counts and core clients for core users only', async () => {
    for (let generation = 1; generation <= 12; generation += 1)
      await addRun(String(generation), generation === 12 ? { outcome: 'failed', expirySucceeded: false } : {});
    const everything = await read(core);
    expect(everything).toMatchObject({ scope: 'all', coreClients: { 'Ready=True': 2 } });
    expect(everything.reconciler.runs).toHaveLength(10);
    expect(everything.reconciler.runs[0]).toMatchObject({ outcome: 'failed', counts: { locked: 3 } });
    const share = await read();
    expect(share).toMatchObject({ scope: 'tenant', coreClients: null });
    expect(share.reconciler.lastSuccess).toEqual(everything.reconciler.lastSuccess);
    expect(share.reconciler.runs.map(({ counts }) => counts)).toEqual(Array(10).fill(null));
  });

  it('counts the quarantine and the undelivered outbox rows, of all tenants or of one', async () => {
    const about = { formId: randomUUID(), definitionId: 'permit' };
    const item = (nth: number, tenantId: string) =>
      ({ kind: 'lock', item: String(nth), tenantId, about, reason: 'database-refused', detail: 'x' }) as const;
    await putInQuarantine(forms.pool, [item(1, own), item(2, own), item(3, foreign)], forms.now());
    await forms.pool.query("UPDATE quarantine SET released = true WHERE item = '1'");
    const insert = `INSERT INTO outbox (form_id, tenant_id, kind, created, not_before, claimed_until, accepted)
      SELECT gen_random_uuid(), $1, 'form-created', $2, $3, $6, $4 FROM generate_series(1, $5)`;
    // The dispatcher leaves claimed rows alone, but not those whose claim ends more than a day from now.
    const claimed = new Date(forms.now().getTime() + 12 * 3_600_000);
    const old = new Date(forms.now().getTime() - 60_000);
    const later = new Date(forms.now().getTime() + 3_600_000);
    await forms.pool.query(insert, [own, old, old, null, 2, claimed]);
    await forms.pool.query(insert, [own, old, later, null, 5, claimed]);
    await forms.pool.query(insert, [own, old, old, old, 5, claimed]);
    await forms.pool.query(insert, [foreign, forms.now(), old, null, 1_001, claimed]);
    expect(await read()).toMatchObject({
      quarantine: { count: 2, released: 1, isMinimum: false },
      outbox: { count: 2, oldest: old.toISOString(), isMinimum: false },
    });
    expect(await read(core)).toMatchObject({
      quarantine: { count: 3, released: 1, isMinimum: false },
      outbox: { count: 1_000, oldest: old.toISOString(), isMinimum: true },
    });
    expect(await read(core, forTenant(own))).toMatchObject({ scope: 'tenant', quarantine: { count: 2 } });
  });

  it('returns what the forms of one tenant occupy', async () => {
    const [limit, measured] = [34_359_738_368, forms.now().toISOString()];
    await forms.pool.query(
      `INSERT INTO tenant_storage (tenant_id, bytes, measured) VALUES ($1, 12345678901, $2)
      ON CONFLICT (tenant_id) DO UPDATE SET bytes = excluded.bytes, measured = excluded.measured`,
      [own, measured],
    );
    expect(await read()).toMatchObject({ storage: { bytes: 12_345_678_901, limit, measured } });
    expect(await read(core, forTenant(foreign))).toMatchObject({ storage: { bytes: 0, limit, measured: null } });
    expect(await read(core)).toMatchObject({ storage: null });
  });

  it('counts a tenant’s overdue drafts and deletions, and returns the counts of the last run for all tenants', async () => {
    const oldest = new Date(forms.now().getTime() - 1_000);
    await addRun('1', { oldestOverdue: oldest, overdueDeletions: 7 });
    const overdue = { tenantId: own, count: 3, name: 'overdue' };
    await addOverdue(forms.pool, { ...overdue, days: 16 });
    await addOverdue(forms.pool, { ...overdue, days: 14 });
    await addOverdue(forms.pool, { ...overdue, days: 90, held: true });
    const [locked] = await addOverdue(forms.pool, { ...overdue, days: 16, count: 1 });
    await forms.pool.query("UPDATE forms SET status = 'Locked', locked = $2 WHERE id = $1", [
      locked,
      new Date(forms.now().getTime() - 17 * 86_400_000),
    ]);
    const share = (await read()).overdue;
    expect(share).toMatchObject({ drafts: { count: 3, isMinimum: false }, deletions: { count: 1, isMinimum: false } });
    expect(Math.round((forms.now().getTime() - Date.parse(share.oldest ?? '')) / 86_400_000)).toBe(1);
    expect((await read(core)).overdue).toEqual({
      drafts: null,
      oldest: oldest.toISOString(),
      deletions: { count: 7, isMinimum: false },
    });
    expect((await read(core, forTenant(foreign))).overdue).toMatchObject({ drafts: { count: 0 }, oldest: null });
  });

  it('counts the requests that this pod refused, and shows a tenant only its own', async () => {
    const token = await forms.tokenWith({ roles: ['form-admin'] });
    const check = () => call(`${forms.url}/form/v1/definitions/check`, { method: 'POST', token, body: [] });
    await roomInWindow(60_000, 15_000, forms.now().getTime());
    await Promise.all(Array.from({ length: 60 }, check));
    expect((await check()).status).toBe(429);
    const { limits } = await read();
    expect(limits.pod).not.toBe('');
    expect(limits.refused).toContainEqual(
      expect.objectContaining({ method: 'POST', route: '/form/v1/definitions/check', status: 429 }),
    );
    expect((await read(core)).limits.refused).toMatchObject([{ route: '/form/v1/definitions/check', status: 429 }]);
    expect((await read(core, forTenant(foreign))).limits.refused).toEqual([]);
  });

  it('is for form-admin, and reads the database once in five seconds', async () => {
    for (const who of ['intake', 'alice', 'clerk', 'assessor', 'nobody'] as const)
      expect([who, (await ask(forms.token(who))).status]).toEqual([who, 403]);
    expect((await ask('nonsense')).status).toBe(401);
    expect((await ask(undefined, forTenant(foreign))).status).toBe(403);
    expect((await ask(core, '?tenantId=urn:nobody')).status).toBe(400);
    const { asOf } = await read();
    expect((await read()).asOf).toBe(asOf);
    forms.advance(5_000);
    expect((await read()).asOf).not.toBe(asOf);
  });
});
