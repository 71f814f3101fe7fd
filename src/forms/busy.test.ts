// Checks that locked rows and slow statements delay neither other forms nor other tenants.
import { randomUUIDv7 } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestForms, type TestForms } from '../../test/support/forms.ts';
import type { Answered } from '../../test/support/platform.ts';
import { startStopwatch } from '../../test/support/stopwatch.ts';

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

/** Checks that each request succeeds within 900 ms. This limit is shorter than any wait for a lock or a connection. */
async function expectSoon(requests: (() => Promise<Answered>)[]): Promise<void> {
  const times: number[] = [];
  for (const request of [...requests, ...requests, ...requests]) {
    const begun = performance.now();
    expect((await request()).status).toBe(200);
    times.push(performance.now() - begun);
  }
  expect(Math.min(...times)).toBeLessThan(900);
}

async function metric(name: string): Promise<string> {
  const text = await (await fetch(`${forms.metricsUrl}/metrics`)).text();
  return text.split('\n').find((line) => line.startsWith(name)) ?? '';
}

it('saves and reads of other forms are not delayed while many saves wait for one locked row', async () => {
  const [locked = '', other = ''] = await drafts(2);
  await lock([locked]);
  const refused = Promise.all(Array.from({ length: 14 }, () => save(locked)));
  await expect.poll(() => metric('formgate_postgres_pool_waiting{pool="requests"}')).toMatch(/ 1[0-2]$/);
  // A background query may use another connection for a moment.
  await expect
    .poll(() => metric('formgate_postgres_pool_connections{pool="requests",state="used"}'), { interval: 5 })
    .toMatch(/ 2$/);
  await expectSoon([() => save(other), () => forms.ask('GET', `/${other}/data`, { as: 'admin' })]);
  for (const response of await refused) {
    expect([response.status, typeOf(response)]).toEqual([503, 'urn:formgate:problem:busy']);
    expect(response.headers.get('retry-after')).toBe('1');
  }
  expect(await metric('formgate_postgres_pool_refused_total{pool="requests",reason="late"}')).not.toBe('');
});

it('a save of a form whose row is locked is refused after about a second, and says that the form is being changed', async () => {
  const formId = await forms.draft();
  await lock([formId]);
  const begun = performance.now();
  const stopwatch = startStopwatch();
  const response = await save(formId);
  expect(performance.now() - begun).toBeGreaterThan(900);
  // The limit is below 5 s, because other services give up after waiting 5 s for a response.
  expect(stopwatch.stop()).toBeLessThan(4_500);
  expect(response.body).toMatchObject({
    type: 'urn:formgate:problem:busy',
    detail: 'The form is being changed by another request.',
  });
  await locker.query('ROLLBACK');
  expect((await save(formId)).status).toBe(200);
});

it('another tenant is not delayed while one tenant floods the service with saves that have to wait', async () => {
  const locked = await drafts(12);
  await lock(locked);
  const flood = Promise.all(locked.flatMap((id) => [save(id), save(id)]));
  await expect.poll(() => metric('formgate_postgres_pool_connections{pool="requests",state="used"}')).toMatch(/ 5$/);
  await expectSoon([() => save(otherTenant.formId, otherTenant.token)]);
  for (const response of await flood) expect(typeOf(response)).toBe('urn:formgate:problem:busy');
});
