// Stops each dependency of the form service and starts it again. Checks what callers, logs and metrics show during the
// outage, and that the same process works afterwards. src/forms/outages.test.ts covers faults of single responses.
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { EmbeddedPostgres } from '../../dev/postgres/ownership.ts';
import { placePostgres, startPostgres } from '../../dev/postgres/postgres.ts';
import { codeFor, draft, drained, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { anonymous, permit } from '../support/forms.ts';
import { type Answered, call } from '../support/platform.ts';
import { startTcpGate, type TcpGate } from '../support/tcp-gate.ts';
import { until } from '../support/until.ts';

const minute = 60_000;
let moved = 0;
const clock = () => new Date(Date.now() + moved);
let world: FormWorld;
let forms: FormReplica;
/** TCP proxies in front of the form service's dependencies. The event service is behind an HTTP tap instead. */
let gates: Record<'directory' | 'tenants' | 'configuration' | 'notifications' | 'access' | 'postgres', TcpGate>;
let env: Record<string, string>;
let postgres: EmbeddedPostgres;
let folder: string;
let pool: pg.Pool;
const password = randomBytes(16).toString('hex');
const startDatabase = () =>
  startPostgres({ directory: join(folder, 'postgres'), password, settings: { fsync: 'off', autovacuum: 'off' } });
const portOf = (url: string) => Number(new URL(url).port);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'formgate-outages-'));
  // If root runs the test, Postgres runs as another account, which must be able to enter the folder.
  await chmod(folder, 0o755);
  [world, postgres] = await Promise.all([startFormWorld(), startDatabase()]);
  const { url, access } = world.platform;
  const port = portOf(url);
  gates = {
    directory: await startTcpGate(port),
    tenants: await startTcpGate(port),
    configuration: await startTcpGate(port),
    notifications: await startTcpGate(portOf(world.notifications.url)),
    access: await startTcpGate(portOf(access.url)),
    postgres: await startTcpGate(portOf(postgres.url)),
  };
  const at = (name: keyof typeof gates) => `http://127.0.0.1:${gates[name].port}`;
  const database = new URL(await postgres.ensureDatabase('forms'));
  pool = new pg.Pool({ connectionString: database.href, max: 2 });
  pool.on('error', () => undefined);
  database.port = String(gates.postgres.port);
  env = {
    DATABASE_URL: database.href,
    DIRECTORY_URL: `${at('directory')}/directory/v2`,
    DIR_PLATFORM_TENANT_SERVICE_V2: `${at('tenants')}/api/tenant/v2`,
    DIR_PLATFORM_CONFIGURATION_SERVICE_V2: `${at('configuration')}/configuration/v2`,
    DIR_PLATFORM_NOTIFICATION_SERVICE_V1: `${at('notifications')}/subscription/v1`,
    ACCESS_SERVICE_URL: `${at('access')}/auth`,
    ACCESS_SERVICE_PUBLIC_URL: access.url,
    PLATFORM_TIMEOUT: 'PT2S',
  };
  forms = await world.start({ env, clock });
  await until('the registration', () => forms.logText().includes('registration written'));
});
afterAll(async () => {
  await world.close();
  await pool.end();
  for (const gate of Object.values(gates)) await gate.close();
  await postgres.stop();
  await rm(await placePostgres(join(folder, 'postgres')), { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
});
afterEach(() => Promise.all([world.events, ...Object.values(gates)].map((dependency) => dependency.open())));

const create = (replica = forms) =>
  replica.ask('POST', '', { as: 'intake', body: { definitionId: permit.id, applicant: anonymous() } });
const save = (id: string) =>
  forms.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: { name: 'Ana' }, files: {} } });
const operate = (id: string, operation: string) => forms.ask('POST', `/${id}`, { as: 'intake', body: { operation } });
const readWith = (id: string, code: string) =>
  forms.ask('GET', `/${id}/data`, { as: 'intake', headers: { 'x-form-code': code } });

function expectProblem({ status, headers, body }: Answered, statuses: number[]): void {
  expect(statuses).toContain(status);
  expect(headers.get('content-type')).toContain('application/problem+json');
  expect(body).toMatchObject({
    status,
    type: expect.stringMatching(/^urn:formgate:problem:/),
    errorMessage: expect.any(String),
  });
  if (status === 503) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
}

/** Returns the value of a metric of the form service; 0 if it does not exist. */
async function metric(name: string, labels: Record<string, string>, replica = forms): Promise<number> {
  const { text } = await call(`${replica.metricsUrl}/metrics`);
  const line = text
    .split('\n')
    .find(
      (one) =>
        one.startsWith(`${name}{`) && Object.entries(labels).every(([key, value]) => one.includes(`${key}="${value}"`)),
    );
  return Number(line?.split(' ').at(-1) ?? 0);
}

/** Returns the current end of the form service's log. `linesSince` returns the lines after it. */
const mark = () => forms.logText().length;
const linesSince = (from: number): Record<string, unknown>[] =>
  forms
    .logText()
    .slice(from)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/**
 * Repeats a request until it gets `status`. An open circuit breaker lets the next call through only after some seconds.
 */
const recovers = (ask: () => Promise<Answered>, status: number) =>
  expect.poll(async () => (await ask()).status, { interval: 100 }).toBe(status);

describe('while Postgres is stopped', () => {
  it('calls that need it get 503, the pod stays live and ready, and the same process works afterwards', async () => {
    const id = await draft(forms);
    await save(id);
    const failures = await metric('formgate_dependency_failures_total', { dependency: 'postgres' });
    const from = mark();
    await postgres.stop();
    const responses = await Promise.all([
      create(),
      save(id),
      operate(id, 'submit'),
      operate(id, 'send-code'),
      readWith(id, 'SOMECODE'),
      forms.ask('GET', '', { as: 'admin' }),
      forms.ask('GET', `/${id}`, { as: 'admin' }),
      forms.ask('DELETE', `/${id}`, { as: 'admin' }),
    ]);
    for (const response of responses) expectProblem(response, [503]);
    expect(
      await metric('formgate_dependency_failures_total', { dependency: 'postgres', kind: 'request' }),
    ).toBeGreaterThanOrEqual(8);
    expect(await metric('formgate_dependency_failures_total', { dependency: 'postgres' })).toBeGreaterThan(failures);
    const failed = linesSince(from).filter(({ msg }) => msg === 'request failed');
    expect(failed).toHaveLength(8);
    for (const line of failed)
      expect(line).toMatchObject({ level: 'error', status: 503, route: expect.stringMatching(/^\/form/) });
    expect((await call(`${forms.metricsUrl}/livez`)).status).toBe(200);
    expect((await call(`${forms.metricsUrl}/readyz`)).status).toBe(200);

    postgres = await startDatabase();
    await gates.postgres.open(portOf(postgres.url));
    const url = new URL(postgres.databaseUrl('forms'));
    await pool.end();
    pool = new pg.Pool({ connectionString: url.href, max: 2 });
    await recovers(() => forms.ask('GET', `/${id}`, { as: 'admin' }), 200);
    expect((await call(`${forms.metricsUrl}/readyz`)).status).toBe(200);
    expect((await forms.ask('GET', `/${id}/data`, { as: 'admin' })).body).toEqual({ data: { name: 'Ana' }, files: {} });
    expect((await operate(id, 'submit')).status).toBe(200);
    await drained(pool);
  });
});

describe('while the notification service is stopped', () => {
  it('sending and checking a code get 502, wrong codes are not counted, and both work afterwards', async () => {
    const address = 'outage@example.org';
    const id = await draft(forms, address);
    await drained(pool);
    expect((await operate(id, 'send-code')).status).toBe(202);
    const code = await codeFor(world.platform, address);
    const labels = { dependency: 'notifications', kind: 'unreachable' };
    const failures = await metric('formgate_dependency_failures_total', labels);
    const from = mark();
    await gates.notifications.shut();
    expectProblem(await readWith(id, code), [502]);
    moved += 2 * minute;
    expectProblem(await operate(id, 'send-code'), [502]);
    // The check of the registered type may have failed in the background too.
    expect(await metric('formgate_dependency_failures_total', labels)).toBeGreaterThanOrEqual(failures + 2);
    const warned = linesSince(from).filter(
      ({ msg, operation }) => msg === 'platform call failed' && String(operation).endsWith(' code'),
    );
    expect(warned).toMatchObject([
      { level: 'warn', dependency: 'notifications', operation: 'check code', kind: 'unreachable' },
      { level: 'warn', dependency: 'notifications', operation: 'send code', kind: 'unreachable' },
    ]);
    await gates.notifications.open();
    await recovers(() => readWith(id, code), 200);
    await recovers(() => operate(id, 'send-code'), 202);
  });

  it('many calls open the circuit, so that further calls get 502 with Retry-After immediately until it closes again', async () => {
    const id = await draft(forms);
    await drained(pool);
    await gates.notifications.shut();
    const responses: Answered[] = [];
    for (let nth = 0; nth < 14; nth += 1) responses.push(await operate(id, 'send-code'));
    for (const response of responses) expectProblem(response, [502]);
    expect(Number(responses.at(-1)?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await metric('formgate_platform_circuit_open', { dependency: 'notifications' })).toBe(1);
    await gates.notifications.open();
    await recovers(() => operate(id, 'send-code'), 202);
    expect(await metric('formgate_platform_circuit_open', { dependency: 'notifications' })).toBe(0);
  });

  it('calls to a service that hangs get 504 after the time limit', async () => {
    const id = await draft(forms);
    await drained(pool);
    gates.notifications.freeze();
    expectProblem(await operate(id, 'send-code'), [504]);
    await gates.notifications.open();
    // The code may have been sent, so the address gets no other code for a minute.
    moved += 2 * minute;
    await recovers(() => operate(id, 'send-code'), 202);
  });
});

describe('while the configuration service is stopped', () => {
  it('a cached definition grants permission for five minutes, and validates submits for a day', async () => {
    moved += 10 * minute;
    const id = await draft(forms);
    await save(id);
    // This request reads the definition's schema, which is cached for longer than the definition's roles.
    const kept = await forms.ask('PUT', `/${id}/data?validate=true`, {
      as: 'intake',
      body: { data: { name: 'Ana' }, files: {} },
    });
    expect(kept.status).toBe(200);
    const from = mark();
    await gates.configuration.shut();
    moved += 4 * minute + 50_000;
    expect((await create()).status).toBe(201);
    moved += 20_000;
    expectProblem(await create(), [502]);
    moved += 60 * minute;
    expectProblem(await create(), [502, 503]);
    expect((await operate(id, 'submit')).status).toBe(200);
    expect(await metric('formgate_platform_stale_serves_total', { dependency: 'configuration' })).toBeGreaterThan(0);
    expect(linesSince(from)).toContainEqual(
      expect.objectContaining({
        msg: 'platform service fails; its last responses are served',
        dependency: 'configuration',
      }),
    );
    expect(linesSince(from)).toContainEqual(
      expect.objectContaining({ msg: 'platform call failed', dependency: 'configuration', kind: 'unreachable' }),
    );
    await gates.configuration.open();
    await recovers(create, 201);
  });

  it('registers get 502, and can be read again afterwards', async () => {
    const list = async () => call(`${forms.url}/form/v1/registers`, { token: world.token('admin') });
    await recovers(list, 200);
    await gates.configuration.shut();
    expectProblem(await list(), [502]);
    await gates.configuration.open();
    await recovers(list, 200);
  });
});

describe('while the event service is stopped', () => {
  it('forms can be created, saved and submitted; their events wait, show in metrics and logs, and arrive in order afterwards', async () => {
    // Waits for the delivery of earlier events, which would otherwise be counted too.
    await drained(pool);
    const before = world.events.exchanges.length;
    // Repeated failures of deliveries are logged once a minute, and an earlier test may have caused one.
    moved += 2 * minute;
    const from = mark();
    await world.events.shut();
    const id = await draft(forms);
    expect((await save(id)).status).toBe(200);
    expect((await operate(id, 'submit')).status).toBe(200);
    const failures = () => metric('formgate_outbox_deliveries_total', { kind: 'form-created', outcome: 'failed' });
    await expect.poll(failures).toBeGreaterThan(0);
    expect(await metric('formgate_outbox_undelivered', { kind: 'form-created' })).toBe(1);
    expect(linesSince(from)).toContainEqual(
      expect.objectContaining({ level: 'warn', outbox: 'events', msg: 'outbox delivery failed' }),
    );
    await world.events.open();
    await drained(pool);
    const names = world.events.exchanges
      .slice(before)
      .filter(({ body, status }) => status === 200 && body.includes(id))
      .map(({ body }) => (JSON.parse(body) as { name: string }).name);
    expect(names).toEqual(['form-created', 'form-submitted']);
  });
});

describe('while the identity provider is stopped', () => {
  it('tokens signed with cached keys are accepted; platform calls get 502 once the token of the service has expired', async () => {
    const id = await draft(forms);
    await drained(pool);
    await gates.access.shut();
    const { access } = world.platform;
    const fresh = await access.foreignToken({ aud: access.urns.service('form-service') }, { now: clock() });
    // 403, not 401: the token is valid, but has no role.
    expect((await forms.ask('GET', '', { token: fresh })).status).toBe(403);
    expect((await save(id)).status).toBe(200);
    const from = mark();
    moved += 20 * minute;
    expectProblem(await operate(id, 'send-code'), [502, 503]);
    expect(linesSince(from)).toContainEqual(
      expect.objectContaining({
        dependency: 'identity-provider',
        operation: 'sign in the service account',
        kind: 'unreachable',
      }),
    );
    await gates.access.open();
    await recovers(() => operate(id, 'send-code'), 202);
  });

  it.each([
    ['the identity provider', ['access']],
    ['the tenant service', ['tenants']],
    ['the platform', ['directory', 'tenants', 'configuration']],
  ] as const)(
    'a form service that starts without %s rejects callers, and works as soon as that is back',
    async (_what, away) => {
      for (const name of away) await gates[name].shut();
      const late = await world.start({ env, clock });
      onTestFinished(() => late.close());
      expect((await call(`${late.metricsUrl}/livez`)).status).toBe(200);
      expectProblem(await create(late), [502, 503]);
      expect(
        (await metric('formgate_dependency_failures_total', { dependency: 'identity-provider' }, late)) +
          (await metric('formgate_dependency_failures_total', { dependency: 'tenants' }, late)),
      ).toBeGreaterThan(0);
      for (const name of away) await gates[name].open();
      await recovers(() => create(late), 201);
      await expect.poll(() => late.logText()).toContain('registration written');
    },
  );
});
