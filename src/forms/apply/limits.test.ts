// Tests the limits of the intake application, and outages of the services that it calls.
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findFreePort } from '../../../dev/ports.ts';
import { startTestApply, type TestApply } from '../../../test/support/apply.ts';
import { dumpDatabase, placesOf } from '../../../test/support/database-dump.ts';
import { configure, permit } from '../../../test/support/forms.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { startTcpGate, type TcpGate } from '../../../test/support/tcp-gate.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { createApplyStore } from './store.ts';

const minute = 60_000;
/** A tenant has two of them in reserve. */
const draftsTotal = 100;
let apply: TestApply;
let gate: TcpGate;
beforeAll(async () => {
  const port = await findFreePort();
  gate = await startTcpGate(port);
  const address = { PORT: String(port), APPLY_API_URL: `http://127.0.0.1:${gate.port}` };
  apply = await startTestApply({
    env: () => ({
      ...address,
      APPLY_DRAFTS_PER_ADDRESS: '3',
      APPLY_DRAFTS_PER_TENANT: '14',
      APPLY_DRAFTS_TOTAL: String(draftsTotal),
      APPLY_REQUEST_LIMIT: '200',
    }),
  });
  // Drafts are counted per clock hour. The clock is set to half past an hour, so that no hour ends during a test.
  apply.forms.advance(90 * minute - (apply.forms.now().getTime() % (60 * minute)));
});
afterAll(async () => {
  await apply.close();
  await gate.close();
});

const start = (address: string, email = `${randomUUID()}@example.org`, realm?: string) =>
  apply.browser(realm).ask('POST', '/definitions/permit/forms', {
    body: { email, language: 'en' },
    headers: { 'idempotency-key': randomUUID(), 'x-forwarded-for': address },
  });

async function limited(limit: string): Promise<number> {
  const text = await (await fetch(`${apply.forms.metricsUrl}/metrics`)).text();
  return Number(
    new RegExp(`^formgate_rate_limited_requests_total{limit="${limit}"} (\\d+)$`, 'm').exec(text)?.[1] ?? 0,
  );
}

it('drafts are limited by client address, by email address and by tenant, and the limits end with their hour', async () => {
  const byAddress = await Promise.all([1, 2, 3, 4].map(() => start('203.0.113.1')));
  expect(byAddress.map(({ status }) => status).sort()).toEqual([201, 201, 201, 429]);
  const refused = byAddress.find(({ status }) => status === 429);
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await limited('apply-drafts-address')).toBe(1);

  const email = 'same@example.org';
  const startSame = async (nth: number, address: string) =>
    (await start(address, nth % 2 ? email : email.toUpperCase())).status;
  // A stranger cannot use up the drafts of an email address.
  for (const [nth, status] of [201, 201, 201, 429].entries()) expect(await startSame(nth, '203.0.113.10')).toBe(status);
  for (let nth = 0; nth < 6; nth += 1) expect(await startSame(nth, `203.0.113.${11 + nth}`)).toBe(201);
  expect(await startSame(6, '203.0.113.17')).toBe(429);
  expect(await limited('apply-drafts-email')).toBe(1);
  expect((await start('203.0.113.20')).status).toBe(201);
  expect((await start('203.0.113.21')).status).toBe(201);
  const full = await start('203.0.113.22');
  expect(full).toMatchObject({ status: 503, body: { type: 'urn:formgate:problem:busy' } });
  expect(Number(full.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await limited('apply-drafts-tenant')).toBe(1);

  apply.forms.advance(60 * 60_000);
  expect((await start('203.0.113.1')).status).toBe(201);
});

it('drafts are limited in total, but a tenant has a fiftieth of the total even if others have used it up', async () => {
  apply.forms.advance(60 * minute);
  const { platform, pool } = apply.forms;
  await configure({ ...platform, tenant: platform.otherTenant }, 'platform', 'form-service', { permit });
  let address = 0;
  const startAt = async (realm?: string) => {
    address += 1;
    return start(`198.51.100.${address}`, undefined, realm);
  };
  for (const status of [201, 201, 201]) expect((await startAt()).status).toBe(status);
  const sql = `UPDATE apply_counts SET used = $1 WHERE name = 'apply-drafts-total' AND used = 1
    AND window_start = (SELECT max(window_start) FROM apply_counts)`;
  expect((await pool.query(sql, [draftsTotal])).rowCount).toBe(1);
  expect(await startAt()).toMatchObject({ status: 503, body: { type: 'urn:formgate:problem:busy' } });
  expect((await startAt('other')).status).toBe(201);
  expect((await startAt('other')).status).toBe(201);
  expect(await startAt('other')).toMatchObject({ status: 503, body: { type: 'urn:formgate:problem:busy' } });
  expect(await limited('apply-drafts-total')).toBe(2);
});

it('old counts are removed, and no address is stored', async () => {
  apply.forms.advance(60 * minute);
  const [address, email] = ['203.0.113.77', 'count.canary@example.org'];
  expect((await start(address, email)).status).toBe(201);
  const dump = await dumpDatabase(apply.forms.pool);
  for (const secret of [address, email])
    expect(placesOf(dump, secret).filter((place) => place.startsWith('public.apply_'))).toEqual([]);
  const store = createApplyStore(unsharedPool(apply.forms.pool));
  const window = (hours: number) => new Date(Date.UTC(2030, 0, 1, hours));
  const limits = [{ name: 'test', key: Buffer.from('key'), most: 2, amount: 1 }];
  const counted = await Promise.all([1, 2, 3, 4].map(() => store.count('tenant', limits, window(0))));
  expect(counted.filter((reached) => reached === undefined)).toHaveLength(2);
  for (let hours = 1; hours < 4; hours += 1) await store.count('tenant', limits, window(hours));
  const left = await apply.forms.pool.query('SELECT count(*)::int FROM apply_counts WHERE window_start < $1', [
    window(3),
  ]);
  expect(left.rows[0].count).toBeLessThan(10);
});

it('drafts that one address may not create use nothing of the tenant’s limit, however many are attempted concurrently', async () => {
  const store = createApplyStore(unsharedPool(apply.forms.pool));
  const begin = new Date(Date.UTC(2031, 0, 1));
  const limits = (address: number) => [
    { name: 'address', key: Buffer.from(`address ${address}`), most: 1, amount: 1 },
    { name: 'shared', key: Buffer.from('shared'), most: 20, amount: 1 },
  ];
  for (let address = 0; address < 15; address += 1) {
    const reached = await Promise.all([1, 2, 3, 4, 5].map(() => store.count('tenant', limits(address), begin)));
    expect(reached.filter((name) => name === undefined)).toHaveLength(1);
  }
  const { rows } = await apply.forms.pool.query(
    "SELECT used FROM apply_counts WHERE name = 'shared' AND window_start = $1",
    [begin],
  );
  expect(rows).toEqual([{ used: 15 }]);
});

it('requests of one address are limited', async () => {
  const page = apply.browser();
  const ask = () => page.ask('GET', `/forms/${randomUUID()}`, { headers: { 'x-forwarded-for': '203.0.113.99' } });
  await roomInWindow(minute, 20_000, apply.forms.now().getTime());
  const answers = await Promise.all(Array.from({ length: 201 }, ask));
  expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(0);
});

it('while the form service cannot be reached, requests get 502 with a log line and a metric, and then work again', async () => {
  const page = apply.browser();
  apply.forms.advance(60 * 60_000);
  expect((await start('203.0.113.200')).status).toBe(201);
  await gate.shut();
  const ask = () => page.ask('GET', '/definitions/permit', { headers: { 'x-forwarded-for': '203.0.113.201' } });
  expect(await ask()).toMatchObject({ status: 502, body: { type: 'urn:formgate:problem:dependency-failed' } });
  const [line] = apply.forms.log.lines().filter(({ msg }) => msg === 'intake application call failed');
  expect(line).toMatchObject({ kind: 'unreachable', reason: expect.stringMatching(/^[A-Z_]+$/) });
  // The log line must contain no path, because paths contain ids, and no address of the form service.
  expect(JSON.stringify(line)).not.toContain('/');
  const metrics = await (await fetch(`${apply.forms.metricsUrl}/metrics`)).text();
  expect(metrics).toMatch(/formgate_dependency_failures_total{dependency="form-api",kind="unreachable"} 1/);
  await gate.open();
  expect((await ask()).status).toBe(200);
});

it('codes that could not be sent do not use up the limit: as soon as the form service works again, a code is sent', async () => {
  const headers = { 'x-forwarded-for': '203.0.113.205' };
  const page = apply.browser();
  const { body } = await start('203.0.113.205');
  const ask = () => page.ask('POST', `/forms/${body.id}/codes`, { headers });
  await gate.shut();
  for (let attempt = 0; attempt < 6; attempt += 1) expect((await ask()).status).toBe(502);
  await gate.open();
  expect((await ask()).status).toBe(202);
  await roomInWindow(minute, 20_000, apply.forms.now().getTime());
  expect((await Promise.all([ask(), ask()])).map(({ status }) => status)).toContain(429);
});

it('a retry of a start gets the same draft, also at the limit, and counts only once', async () => {
  apply.forms.advance(60 * 60_000);
  const page = apply.browser();
  const key = randomUUID();
  const email = `${randomUUID()}@example.org`;
  const attempt = (body: object = { email, language: 'en' }) =>
    page.ask('POST', '/definitions/permit/forms', {
      body,
      headers: { 'idempotency-key': key, 'x-forwarded-for': '203.0.113.210' },
    });
  const first = await attempt();
  expect(first.status).toBe(201);
  const retries = await Promise.all([1, 2, 3, 4, 5].map(() => attempt()));
  expect(retries.map(({ status, body }) => [status, body.id])).toEqual(retries.map(() => [201, first.body.id]));
  expect((await start('203.0.113.210')).status).toBe(201);
  expect((await start('203.0.113.210')).status).toBe(201);
  expect((await start('203.0.113.210')).status).toBe(429);
  expect(await attempt()).toMatchObject({ status: 201, body: { id: first.body.id } });
  // Only an identical request counts as a retry.
  expect((await attempt({ email: 'other@example.org', language: 'en' })).status).toBe(429);
});

it('concurrent requests of one start count once', async () => {
  apply.forms.advance(60 * 60_000);
  const page = apply.browser();
  await page.ask('POST', `/forms/${randomUUID()}/code-checks`, { body: { code: 'ABCDEF' } });
  const email = `${randomUUID()}@example.org`;
  const headers = { 'idempotency-key': randomUUID(), 'x-forwarded-for': '203.0.113.211' };
  const attempt = () => page.ask('POST', '/definitions/permit/forms', { body: { email, language: 'en' }, headers });
  const answers = await Promise.all([1, 2, 3, 4, 5].map(attempt));
  expect(new Set(answers.map(({ status, body }) => `${status} ${body.id}`)).size).toBe(1);
  expect(answers[0]?.status).toBe(201);
  expect((await start('203.0.113.211')).status).toBe(201);
  expect((await start('203.0.113.211')).status).toBe(201);
  expect((await start('203.0.113.211')).status).toBe(429);
});

/** Lets creations of forms fail with `busy` until the returned function is called. */
async function lockForms(): Promise<() => Promise<void>> {
  const lock = await apply.forms.pool.connect();
  await lock.query('BEGIN; LOCK TABLE forms IN EXCLUSIVE MODE');
  return async () => {
    await lock.query('COMMIT');
    lock.release();
  };
}

const busy = { status: 503, body: { type: 'urn:formgate:problem:busy' } };

it('a start that creates a draft counts although an earlier request of the same start was refused meanwhile', async () => {
  apply.forms.advance(60 * minute);
  const page = apply.browser();
  // The browser gets its cookie.
  await page.ask('POST', `/forms/${randomUUID()}/code-checks`, { body: { code: 'ABCDEF' } });
  let address = '';
  const attemptBoth = async (): Promise<number> => {
    address = `203.0.113.${212 + attempts++}`;
    const headers = { 'idempotency-key': randomUUID(), 'x-forwarded-for': address };
    const body = { email: `${randomUUID()}@example.org`, language: 'en' };
    const attempt = () => page.ask('POST', '/definitions/permit/forms', { body, headers });
    const unlock = await lockForms();
    const first = attempt();
    await setTimeout(600);
    const second = attempt();
    expect(await first.finally(unlock)).toMatchObject(busy);
    return (await second).status;
  };
  let attempts = 0;
  // On a slow machine, the second request may be refused too.
  await expect.poll(attemptBoth, { timeout: 15_000 }).toBe(201);
  for (const status of [201, 201, 429]) expect((await start(address)).status).toBe(status);
});

it('starts that are refused because the service is busy do not use up the limits', async () => {
  apply.forms.advance(60 * minute);
  const address = '203.0.113.230';
  const unlock = await lockForms();
  const refused = await Promise.all([1, 2, 3].map(() => start(address)));
  await unlock();
  for (const answer of refused) expect(answer).toMatchObject(busy);
  for (const status of [201, 201, 201, 429]) expect((await start(address)).status).toBe(status);
});

it('starts that create no draft do not use up the limits: refused ones, and those that the form service did not get', async () => {
  apply.forms.advance(60 * minute);
  // `define` advances the clock by 6 minutes.
  const opens = new Date(apply.forms.now().getTime() + 20 * minute);
  await apply.forms.define({
    ...{ id: 'later', name: 'Later', anonymousApply: true, applicantRoles: ['applicant'] },
    intake: { opens: opens.toISOString() },
  });
  const address = '203.0.113.220';
  const email = `${randomUUID()}@example.org`;
  const attempt = (definition: string, to = email) =>
    apply.browser().ask('POST', `/definitions/${definition}/forms`, {
      body: { email: to, language: 'en' },
      headers: { 'idempotency-key': randomUUID(), 'x-forwarded-for': address },
    });
  for (let nth = 0; nth < 4; nth += 1) {
    expect((await attempt('later')).body).toMatchObject({
      ...{ type: 'urn:formgate:problem:intake-closed', opens: opens.toISOString(), closes: null },
    });
    expect((await attempt('permit', 'no address')).status).toBe(400);
    expect((await attempt('unknown')).status).toBe(404);
  }
  await gate.shut();
  for (let nth = 0; nth < 4; nth += 1) expect((await attempt('permit')).status).toBe(502);
  await gate.open();
  apply.forms.advance(14 * minute);
  expect((await attempt('later')).status).toBe(201);
  expect((await attempt('permit')).status).toBe(201);
  expect((await attempt('permit')).status).toBe(201);
  expect((await attempt('permit')).status).toBe(429);
});
