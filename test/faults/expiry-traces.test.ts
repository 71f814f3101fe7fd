// Tests that nothing of an applicant remains after the reconciler has deleted the form. No table of either database
// (jobs and subscriptions included), log line, event or metric contains the applicant's address, name, form data or
// code. The test sets the clock of the form service and of the reconciler.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../support/captured-log.ts';
import { dumpDatabase, placesOf, tells } from '../support/database-dump.ts';
import { codeFor, draft, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { permit } from '../support/forms.ts';
import { call } from '../support/platform.ts';
import { reconcileHere, reconcilerEnv, spawnReconciler } from '../support/reconciler.ts';
import { until } from '../support/until.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
const patience = 60_000;
const platformLog = captureLog('trace');
const runLog = captureLog('trace');
let moved = 0;
const clock = () => new Date(Date.now() + moved);
let world: FormWorld;
let forms: FormReplica;
let processOutput = '';

const key = randomUUID();
const address = `canary-${key}@example.org`;
const lateAddress = `canary-late-${key}@example.org`;
const phone = '+15550104478';
const name = `Canaria ${key}`;
const fieldValue = `canary-field-${key}`;
const fileName = `canary-file-${key}.pdf`;
const file = `urn:example:platform:file-service:v1:/files/${randomUUID()}`;
let code = '';
const secrets = () => ({ address, lateAddress, phone, name, fieldValue, fileName, code });
const ids: string[] = [];

async function reconcileAfter(milliseconds: number): Promise<Record<string, number>> {
  moved += milliseconds;
  const env = reconcilerEnv(world.platform, world.databaseUrl);
  const { outcome, counts } = await reconcileHere(env, { clock, log: runLog.log, arguments: { only: 'expire' } });
  expect(outcome).toBe('succeeded');
  return counts;
}

/** Resolves when all due outbox rows are delivered, and the platform has sent its notices. */
async function settled(): Promise<void> {
  const sql = `SELECT count(*)::int AS n FROM outbox
    WHERE accepted IS NULL AND (kind <> 'remove-subscriber' OR not_before <= $1)`;
  const left = 'SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM deliveries) AS n';
  await until('deliveries', async () => {
    const due = (await world.pool.query<{ n: number }>(sql, [clock()])).rows[0]?.n;
    const unsent = (await world.platformPool.query<{ n: string }>(left)).rows[0]?.n;
    return due === 0 && unsent === '0';
  });
}

const dumps = () => Promise.all([dumpDatabase(world.pool), dumpDatabase(world.platformPool)]);
const placesIn = async (secret: string) => (await dumps()).flatMap((dump) => placesOf(dump, secret)).sort();

/** Creates a draft with form data, a file, two channels and a used code. */
async function createFullDraft(): Promise<string> {
  const applicant = {
    addressAs: name,
    channels: [
      { channel: 'email', address },
      { channel: 'sms', address: phone },
    ],
  };
  const created = await forms.ask('POST', '', {
    as: 'intake',
    body: { definitionId: permit.id, applicant },
    headers: { 'idempotency-key': key },
  });
  const { id } = created.body as { id: string };
  await settled();
  expect((await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } })).status).toBe(202);
  code = await codeFor(world.platform, address);
  const read = await forms.ask('GET', `/${id}/data`, { as: 'intake', headers: { 'x-form-code': code } });
  expect(read.status).toBe(200);
  const body = { data: { name: fieldValue, more: [{ deep: fieldValue }] }, files: { [fileName]: file } };
  expect((await forms.ask('PUT', `/${id}/data`, { as: 'intake', body })).status).toBe(200);
  return id;
}

beforeAll(async () => {
  world = await startFormWorld({ log: platformLog });
  forms = await world.start({ clock });
  await until('the registration', () => forms.logText().includes('registration written'));
  ids.push(await createFullDraft());
  // This form is locked and deleted before its subscriber is created.
  await world.notifications.shut();
  ids.push(await draft(forms, lateAddress));
}, 120_000);
afterAll(() => world.close());

describe('an applicant whose form the expiry deletes', { timeout: 2 * patience }, () => {
  it('can be found before the deletion, so that the search is proven to work', async () => {
    expect(await placesIn(address)).toEqual([
      'public.codes.address',
      'public.forms.applicant',
      'public.subscriber_channels.address',
    ]);
    expect(await placesIn(lateAddress)).toEqual(['public.forms.applicant']);
    expect(await placesIn(fieldValue)).toEqual(['public.forms.data']);
    expect(await placesIn(fileName)).toEqual(['public.forms.files']);
  });

  it('is warned, locked out, and deleted', async () => {
    expect(await reconcileAfter(13 * day)).toMatchObject({ warned: 2 });
    await world.notifications.open();
    moved += 5 * minute;
    await settled();
    expect(await reconcileAfter(3 * day)).toMatchObject({ locked: 2 });
    await world.notifications.shut();
    await settled();
    expect(await reconcileAfter(16 * day)).toMatchObject({ deleted: 2, deletedNotNotified: 0 });
    await settled();
    await world.notifications.open();
    moved += 20 * minute;
    await settled();
    for (const id of ids) expect((await forms.ask('GET', `/${id}`, { as: 'admin' })).status).toBe(410);
    // Runs the reconciler as a process that logs at level trace, on the database of these forms.
    const env = { ...reconcilerEnv(world.platform, world.databaseUrl), LOG_LEVEL: 'trace' };
    const { code: exitCode, stdout, stderr } = await spawnReconciler(env, ['--only', 'expire']).ended;
    expect(exitCode).toBe(0);
    processOutput = stdout + stderr;
  });

  it('is in no row, job, subscription, subscriber or code afterwards', async () => {
    for (const [what, secret] of Object.entries(secrets())) expect([what, await placesIn(secret)]).toEqual([what, []]);
    for (const table of ['subscribers', 'subscriber_channels', 'subscriptions', 'subscription_criteria', 'codes'])
      expect([table, (await world.platformPool.query(`SELECT FROM ${table}`)).rowCount]).toEqual([table, 0]);
    for (const table of ['forms', 'used_codes', 'idempotency_keys'])
      expect([table, (await world.pool.query(`SELECT FROM ${table}`)).rowCount]).toEqual([table, 0]);
    const jobs = await world.platformPool.query('SELECT FROM graphile_worker.jobs');
    expect(jobs.rowCount).toBe(0);
  });

  it('was in no log line of the reconciler, the form service and the platform server, even at level trace', () => {
    const logs = { run: runLog.text(), process: processOutput, forms: forms.logText(), platform: platformLog.text() };
    for (const [whose, text] of Object.entries(logs)) {
      if (whose !== 'run') expect([whose, text.length > 100]).toEqual([whose, true]);
      for (const [what, secret] of Object.entries(secrets()))
        expect([whose, what, tells(text, secret)]).toEqual([whose, what, false]);
    }
  });

  it('was in no metric, and in events only with the name by which the applicant is addressed', async () => {
    const events = world.events.exchanges.filter(({ body }) => ids.some((id) => body.includes(id)));
    expect(events.length).toBeGreaterThanOrEqual(6);
    const metrics = await Promise.all(
      [forms.metricsUrl, world.platform.metricsUrl].map(async (url) => (await call(`${url}/metrics`)).text),
    );
    const { name: _addressedAs, ...rest } = secrets();
    for (const secret of Object.values(rest))
      for (const text of [...events.map(({ body }) => body), ...metrics]) expect(tells(text, secret)).toBe(false);
  });
});
