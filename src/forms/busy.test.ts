// Locked forms and slow statements: who shares the form service with them still gets an answer, and soon.
import { randomUUIDv7 } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestForms, type TestForms } from '../../test/support/forms.ts';
import type { Answered } from '../../test/support/platform.ts';

let forms: TestForms;
let locker: pg.Client;
let otherTenant: { token: string; formId: string };
beforeAll(async () => {
  forms = await startTestForms();
  const { id, realm } = forms.platform.otherTenant;
  const token = await forms.tokenWith({ roles: ['intake-application'], realm });
  otherTenant = { token, formId: await copyTo(id, await forms.draft()) };
});
afterAll(() => forms.close());
beforeEach(async () => {
  locker = new pg.Client({ connectionString: forms.databaseUrl });
  await locker.connect();
  await locker.query("SET lock_timeout = '30s'; BEGIN");
});
afterEach(() => locker.end());

async function copyTo(tenantId: string, formId: string): Promise<string> {
  const id = randomUUIDv7();
  const columns =
    'definition_id, status, created, created_by, created_by_issuer, anonymous_applicant, one_per_applicant, applicant';
  await forms.pool.query(
    `INSERT INTO forms (id, tenant_id, ${columns}, last_accessed)
    SELECT $1, $2, ${columns}, last_accessed FROM forms WHERE id = $3`,
    [id, tenantId, formId],
  );
  return id;
}

const lock = (ids: string[]) => locker.query('SELECT FROM forms WHERE id = ANY($1) FOR UPDATE', [ids]);
const save = (formId: string, token = forms.token('intake')) =>
  forms.ask('PUT', `/${formId}/data`, { token, body: { data: {}, files: {} } });
const drafts = (count: number) => Promise.all(Array.from({ length: count }, () => forms.draft()));
const typeOf = ({ body }: Answered) => (body as { type: string }).type;

async function timed(work: () => Promise<Answered>): Promise<{ status: number; ms: number }> {
  const begun = performance.now();
  const { status } = await work();
  return { status, ms: performance.now() - begun };
}

async function metric(name: string): Promise<string> {
  const text = await (await fetch(`${forms.metricsUrl}/metrics`)).text();
  return text.split('\n').find((line) => line.startsWith(name)) ?? '';
}

it('saves and reads of other forms succeed at once while one form is locked and many save to it', async () => {
  const [locked = '', other = ''] = await drafts(2);
  await lock([locked]);
  let isOver = false;
  const refused = Promise.all(Array.from({ length: 14 }, () => save(locked))).finally(() => (isOver = true));
  await delay(200);
  for (let round = 0; round < 5; round += 1) {
    const saved = await timed(() => save(other));
    const read = await timed(() => forms.ask('GET', `/${other}/data`, { as: 'admin' }));
    expect([saved.status, read.status]).toEqual([200, 200]);
    expect(Math.max(saved.ms, read.ms)).toBeLessThan(800);
  }
  expect(isOver).toBe(false);
  expect(await metric('formgate_postgres_pool_connections{pool="requests",state="used"}')).toMatch(/ 2$/);
  expect(await metric('formgate_postgres_pool_waiting{pool="requests"}')).toMatch(/ 1[0-2]$/);
  for (const answer of await refused) {
    expect([answer.status, typeOf(answer)]).toEqual([503, 'urn:formgate:problem:busy']);
    expect(answer.headers.get('retry-after')).toBe('1');
  }
  expect(await metric('formgate_postgres_pool_refused_total{pool="requests",reason="late"}')).not.toBe('');
});

it('a save waits about a second for a form that another transaction has locked, and says that it is being changed', async () => {
  const formId = await forms.draft();
  await lock([formId]);
  const begun = performance.now();
  const answer = await save(formId);
  expect(performance.now() - begun).toBeGreaterThan(900);
  expect(performance.now() - begun).toBeLessThan(4_000);
  expect(answer.body).toMatchObject({
    type: 'urn:formgate:problem:busy',
    detail: 'The form is being changed by another request.',
  });
  await locker.query('ROLLBACK');
  expect((await save(formId)).status).toBe(200);
});

it('another tenant is served at once while one tenant floods the service with saves that have to wait', async () => {
  const locked = await drafts(12);
  await lock(locked);
  let isOver = false;
  const flood = Promise.all(locked.flatMap((id) => [save(id), save(id)])).finally(() => (isOver = true));
  await delay(200);
  for (let round = 0; round < 5; round += 1) {
    const saved = await timed(() => save(otherTenant.formId, otherTenant.token));
    expect(saved.status).toBe(200);
    expect(saved.ms).toBeLessThan(800);
  }
  expect(isOver).toBe(false);
  for (const answer of await flood) expect(typeOf(answer)).toBe('urn:formgate:problem:busy');
});
