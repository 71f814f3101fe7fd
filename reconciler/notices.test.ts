// Tests which mails an applicant who forgets a draft receives. Runs the form service, its outbox dispatcher, the
// reconciler and the platform server, with real mail. The tests advance the clocks of the form service and the
// reconciler.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dumpDatabase, placesOf } from '../test/support/database-dump.ts';
import { draft, type FormReplica, type FormWorld, startFormWorld } from '../test/support/form-world.ts';
import { anonymous, configure, permit } from '../test/support/forms.ts';
import { call, roleToken } from '../test/support/platform.ts';
import { isReferenceRun } from '../test/support/platform-behaviour.ts';
import { reconcileHere, reconcilerEnv } from '../test/support/reconciler.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
const patience = 60_000;

let world: FormWorld;
let forms: FormReplica;
let moved = 0;
const clock = () => new Date(Date.now() + moved);

beforeAll(async () => {
  world = await startFormWorld();
  forms = await world.start({ clock });
});
afterAll(() => world.close());

/**
 * Advances the clocks and runs the reconciler. Waits for deliveries first: the jump ends their claims, so that they
 * would run a second time, and the reference implementation would then have two subscribers of a form.
 */
async function reconcileAfter(milliseconds: number) {
  await delivered();
  moved += milliseconds;
  const env = reconcilerEnv(world.platform, world.databaseUrl);
  const result = await reconcileHere(env, { clock, arguments: { only: 'expire' } });
  expect(result).toMatchObject({ outcome: 'succeeded', failures: [] });
  await delivered();
  return result;
}

/**
 * Waits until all due rows of the outbox are delivered. Does not wait for the row that removes a subscriber, because it
 * is due later.
 */
async function delivered(): Promise<void> {
  const due = 'SELECT count(*)::int AS count FROM outbox WHERE accepted IS NULL AND not_before <= $1';
  const count = async () => (await world.pool.query(due, [clock()])).rows[0].count;
  await expect.poll(count, { timeout: patience }).toBe(0);
}

/** Removes a form definition from the tenant's configuration. */
async function unconfigure(definitionId: string): Promise<void> {
  const { access, tenant, url } = world.platform;
  const token = await roleToken(access, { 'configuration-service': ['configuration-admin'] }, { realm: 'core' });
  const path = `platform/form-service?tenantId=${encodeURIComponent(tenant.id)}`;
  const body = { operation: 'DELETE', property: definitionId };
  const { status } = await call(`${url}/configuration/v2/configuration/${path}`, { method: 'PATCH', token, body });
  expect(status).toBe(200);
}

const mailTo = (address: string, subject: string) =>
  world.platform.mailbox.waitFor((mail) => mail.to.includes(address) && mail.subject.includes(subject), patience);
const mailsTo = (address: string) => world.platform.mailbox.messages().filter((mail) => mail.to.includes(address));
/**
 * The time zone in which the platform server writes deadlines: the one with the earliest day. The platform's reference
 * implementation has only one time zone.
 */
const timeZone = isReferenceRun ? 'America/Edmonton' : 'Etc/GMT+12';
const onDay = (moment: Date) => new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone }).format(moment);

it('the form service exports no metrics of runs before the first run', async () => {
  const { text } = await call(`${forms.metricsUrl}/metrics`);
  expect(text).toContain('# TYPE formgate_reconciler_last_run_timestamp_seconds gauge');
  expect(text).not.toMatch(/^formgate_reconciler_/m);
});

describe('an applicant who does not come back', () => {
  const address = 'forgetful@example.org';
  let id = '';

  it('gets a mail with a warning of the lock', { timeout: 3 * patience }, async () => {
    id = await draft(forms, address);
    const { status } = await forms.ask('PUT', `/${id}/data`, {
      as: 'intake',
      body: { data: { name: 'canary-of-an-answer' }, files: {} },
    });
    expect(status).toBe(200);
    expect(placesOf(await dumpDatabase(world.pool), 'canary-of-an-answer')).not.toEqual([]);
    await mailTo(address, 'draft is saved');
    expect(await reconcileAfter(12 * day + minute)).toMatchObject({ counts: { warned: 1, locked: 0 } });
    const mail = await mailTo(address, 'will soon be locked');
    const { rows } = await world.pool.query('SELECT last_accessed FROM forms WHERE id = $1', [id]);
    expect(mail.text.replaceAll(/\s+/g, ' ')).toContain(onDay(new Date(rows[0].last_accessed.getTime() + 15 * day)));
  });

  it('gets a mail when the draft is locked, and can no longer open it', { timeout: 3 * patience }, async () => {
    expect(await reconcileAfter(3 * day)).toMatchObject({ counts: { warned: 0, locked: 1 } });
    const mail = await mailTo(address, 'draft is locked');
    const { rows } = await world.pool.query('SELECT locked FROM forms WHERE id = $1', [id]);
    expect(mail.text.replaceAll(/\s+/g, ' ')).toContain(onDay(new Date(rows[0].locked.getTime() + 15 * day)));
    const answer = await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } });
    expect(answer).toMatchObject({ status: 409, body: { type: 'urn:formgate:problem:form-locked' } });
  });

  it('gets a last mail when the form is deleted, and each mail once', { timeout: 3 * patience }, async () => {
    expect(await reconcileAfter(15 * day + minute)).toMatchObject({ counts: { deleted: 1, deletedNotNotified: 0 } });
    await mailTo(address, 'is deleted');
    expect(mailsTo(address).map(({ subject }) => subject.replace('Permit', '').trim())).toHaveLength(4);
    expect(await forms.ask('GET', `/${id}`, { as: 'admin' })).toMatchObject({ status: 410 });
  });

  it('leaves no data behind a quarter of an hour later: no row contains the address or form data', {
    timeout: 3 * patience,
  }, async () => {
    moved += 16 * minute;
    await delivered();
    const deadline = Date.now() + patience;
    for (;;) {
      const found = [
        ...placesOf(await dumpDatabase(world.pool), address),
        ...placesOf(await dumpDatabase(world.pool), 'canary-of-an-answer'),
        ...placesOf(await dumpDatabase(world.platformPool), address),
      ];
      if (found.length === 0) break;
      if (Date.now() > deadline) expect(found).toEqual([]);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(forms.logText()).not.toContain(address);
  });
});

describe('an applicant who comes back', () => {
  it('after the warning keeps the draft, and gets another warning only when it is unused again', {
    timeout: 2 * patience,
  }, async () => {
    const address = 'careful@example.org';
    const id = await draft(forms, address);
    await reconcileAfter(13 * day);
    await mailTo(address, 'will soon be locked');
    await forms.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: { name: 'Ana' }, files: {} } });
    expect(await reconcileAfter(12 * day - minute)).toMatchObject({ counts: { warned: 0, locked: 0 } });
    expect(await reconcileAfter(2 * minute)).toMatchObject({ counts: { warned: 1, locked: 0 } });
    await expect
      .poll(() => mailsTo(address).filter(({ subject }) => subject.includes('will soon be locked')).length, {
        timeout: patience,
      })
      .toBe(2);
    await world.pool.query('DELETE FROM forms WHERE id = $1', [id]);
  });
});

describe('a definition in the configuration service', () => {
  it('sets how long its drafts are kept', { timeout: 3 * patience }, async () => {
    const retention = { warnBefore: 'P0D', lockAfter: 'PT6H', deleteAfter: 'P1D' };
    await configure(world.platform, 'platform', 'form-service', { [permit.id]: { ...permit, retention } });
    const id = await draft(forms, 'quick@example.org');
    expect(await reconcileAfter(6 * 60 * minute + minute)).toMatchObject({ counts: { warned: 0, locked: 1 } });
    const { rows } = await world.pool.query('SELECT status FROM forms WHERE id = $1', [id]);
    expect(rows).toEqual([{ status: 'Locked' }]);
    expect(await reconcileAfter(day + minute)).toMatchObject({ counts: { deleted: 1 } });
  });

  it('that was removed leaves the default periods to its drafts', { timeout: 3 * patience }, async () => {
    const removed = { ...permit, id: 'removed', retention: { lockAfter: 'P900D' } };
    await configure(world.platform, 'platform', 'form-service', { removed });
    const body = { definitionId: 'removed', applicant: anonymous('removed@example.org') };
    const { status, body: created } = await forms.ask('POST', '', { as: 'intake', body });
    expect(status).toBe(201);
    expect(await reconcileAfter(14 * day)).toMatchObject({ counts: { locked: 0, skippedDefinitions: 0 } });
    await unconfigure('removed');
    expect(await reconcileAfter(2 * day)).toMatchObject({ counts: { locked: 1, skippedDefinitions: 0 } });
    await world.pool.query('DELETE FROM forms WHERE id = $1', [(created as { id: string }).id]);
  });

  it('that is invalid keeps its drafts, and the run reports it', { timeout: 3 * patience }, async () => {
    await draft(forms, 'kept@example.org');
    await configure(world.platform, 'platform', 'form-service', {
      [permit.id]: { ...permit, retention: { lockAfter: 'P999999D' } },
    });
    expect(await reconcileAfter(99 * day)).toMatchObject({ counts: { locked: 0, skippedDefinitions: 1 } });
  });
});

describe('the metrics of the form service', () => {
  it('describe the last run: its time, duration and counts, and how overdue the oldest draft is', async () => {
    const { text } = await call(`${forms.metricsUrl}/metrics`);
    expect(text).toMatch(/^formgate_reconciler_last_success_timestamp_seconds\{part="expire"\} \d{10}(?:\.\d+)?$/m);
    expect(text).toMatch(/^formgate_reconciler_last_run_duration_seconds \d/m);
    expect(text).toContain('formgate_reconciler_last_run_outcome{outcome="succeeded"} 1');
    expect(text).toContain('formgate_reconciler_last_run_count{outcome="skippedDefinitions"} 1');
    const overdue = Number(/^formgate_oldest_overdue_draft_seconds (.*)$/m.exec(text)?.[1]);
    expect(overdue).toBeGreaterThan((83 * day) / 1_000);
    expect(overdue).toBeLessThan((85 * day) / 1_000);
  });
});
