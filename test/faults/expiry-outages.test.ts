// Outages while drafts expire. Without the event service, no notice of a lock can be accepted, so no form is deleted
// before the hard limit. Without a mail server, the platform server keeps the notices that it accepted. The test sets
// the clock of the form service and of the reconciler.
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../support/captured-log.ts';
import { draft, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { type MailCounter, startMailCounter } from '../support/mail-counter.ts';
import { call } from '../support/platform.ts';
import { reconcileHere, reconcilerEnv } from '../support/reconciler.ts';
import { until } from '../support/until.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
const patience = 60_000;
const timeout = 3 * patience;
let moved = 0;
const clock = () => new Date(Date.now() + moved);
let world: FormWorld;
let forms: FormReplica;
let mail: MailCounter;
beforeAll(async () => {
  mail = await startMailCounter();
  world = await startFormWorld({ platformEnv: { SMTP_URL: mail.url } });
  forms = await world.start({ clock });
  await until('the registration', () => forms.logText().includes('registration written'));
});
afterAll(async () => {
  await world.close();
  await mail.close();
});

afterEach(() => world.events.open());

async function reconcileAfter(milliseconds: number) {
  moved += milliseconds;
  const log = captureLog();
  const env = reconcilerEnv(world.platform, world.databaseUrl);
  const result = await reconcileHere(env, { clock, log: log.log, arguments: { only: 'expire' } });
  expect(result).toMatchObject({ outcome: 'succeeded', failures: [] });
  const notNotified = log.lines().filter((line) => 'audit' in line);
  return { ...result.counts, audited: notNotified.map(({ form }) => form) };
}

const statusOf = async (id: string) => {
  const { status, body } = await forms.ask('GET', `/${id}`, { as: 'admin' });
  return status === 200 ? (body as { status: string }).status : status;
};
const eventsOf = (id: string) =>
  world.events.exchanges
    .filter(({ body, status }) => status === 200 && body.includes(id))
    .map(({ body }) => (JSON.parse(body) as { name: string }).name);
const subjectsTo = (address: string) =>
  mail.mails.filter(({ to }) => to === address).map(({ subject }) => subject.replace(/^.*(?:is|be) /, ''));

/** Waits until all outbox rows are delivered, except for removals of subscribers that are not due yet. */
async function delivered(): Promise<void> {
  const sql = `SELECT count(*)::int AS n FROM outbox
    WHERE accepted IS NULL AND (kind <> 'remove-subscriber' OR not_before <= $1)`;
  const due = async () => (await world.pool.query<{ n: number }>(sql, [clock()])).rows[0]?.n;
  await expect.poll(due, { timeout: patience }).toBe(0);
}

/**
 * Moves the clock past the pause that the dispatcher makes after an outage, and waits until all outbox rows are
 * delivered.
 */
async function backToWork(): Promise<void> {
  moved += 5 * minute;
  await delivered();
}

const lagOf = async (kind: string) => {
  const { text } = await call(`${forms.metricsUrl}/metrics`);
  return Number(
    new RegExp(`^formgate_outbox_oldest_undelivered_seconds\\{kind="${kind}"\\} (.*)$`, 'm').exec(text)?.[1],
  );
};

describe('while the event service is down', { timeout }, () => {
  it('a locked form is kept beyond its deletion date, and is deleted after its notice was accepted', async () => {
    const address = `${randomUUID()}@example.org`;
    const id = await draft(forms, address);
    await delivered();
    await world.events.shut();
    expect(await reconcileAfter(15 * day + minute)).toMatchObject({ locked: 1 });
    expect(await reconcileAfter(29 * day)).toMatchObject({ deleted: 0, waiting: 1, audited: [] });
    expect(await statusOf(id)).toBe('Locked');
    expect(await lagOf('form-locked')).toBeGreaterThanOrEqual((29 * day) / 1_000);

    await world.events.open();
    await backToWork();
    expect(eventsOf(id)).toEqual(['form-created', 'form-locked']);
    expect(await reconcileAfter(minute)).toMatchObject({ deleted: 1, deletedNotNotified: 0, audited: [] });
    expect(await statusOf(id)).toBe(410);
    await expect.poll(() => subjectsTo(address).length, { timeout: patience }).toBe(3);
    await delivered();
  });

  it('for more than 15 days, a locked form is deleted 15 days after its date without a notice, and the audit log names it', async () => {
    const address = `${randomUUID()}@example.org`;
    const id = await draft(forms, address);
    await delivered();
    await world.events.shut();
    expect(await reconcileAfter(15 * day + minute)).toMatchObject({ locked: 1 });
    const locked = clock().getTime();
    for (const days of [1, 14, 15, 16, 29])
      expect(await reconcileAfter(locked + days * day - clock().getTime())).toMatchObject({ deleted: 0, audited: [] });
    expect(await reconcileAfter(locked + 30 * day - minute - clock().getTime())).toMatchObject({
      deleted: 0,
      waiting: 1,
      audited: [],
    });
    expect(await statusOf(id)).toBe('Locked');
    expect(await reconcileAfter(2 * minute)).toMatchObject({ deleted: 1, deletedNotNotified: 1, audited: [id] });
    expect(await statusOf(id)).toBe(410);
    const { rows } = await world.pool.query('SELECT notified FROM tombstones WHERE form_id = $1', [id]);
    expect(rows).toEqual([{ notified: false }]);

    // The undelivered events are kept: the applicant is notified late, and the subscriber is removed afterwards.
    await world.events.open();
    await backToWork();
    expect(eventsOf(id)).toEqual(['form-created', 'form-locked', 'form-deleted']);
    await expect.poll(() => subjectsTo(address).length, { timeout: patience }).toBe(3);
    moved += 16 * minute;
    await delivered();
    const urn = world.platform.access.urns.form(id);
    expect((await world.platformPool.query('SELECT FROM subscribers WHERE user_id = $1', [urn])).rowCount).toBe(0);
  });

  it('a form that was unlocked and locked again is deleted only after the notice of its second lock', async () => {
    const id = await draft(forms);
    await delivered();
    expect(await reconcileAfter(15 * day + minute)).toMatchObject({ locked: 1 });
    await delivered();
    const unlocked = await forms.ask('POST', `/${id}`, { as: 'admin', body: { operation: 'unlock' } });
    expect(unlocked.status).toBe(200);
    await delivered();
    await world.events.shut();
    expect(await reconcileAfter(15 * day + minute)).toMatchObject({ locked: 1 });
    expect(await reconcileAfter(16 * day)).toMatchObject({ deleted: 0, waiting: 1 });
    await world.events.open();
    await backToWork();
    expect(await reconcileAfter(minute)).toMatchObject({ deleted: 1, deletedNotNotified: 0 });
    await delivered();
  });
});

describe('while only the mail server is down', { timeout }, () => {
  it('forms are locked and deleted as usual, and the platform server sends the notices later', async () => {
    const addresses = Array.from({ length: 5 }, () => `${randomUUID()}@example.org`);
    for (const address of addresses) await draft(forms, address);
    await delivered();
    for (const address of addresses) await expect.poll(() => subjectsTo(address).length, { timeout: patience }).toBe(1);
    await mail.shut();
    expect(await reconcileAfter(15 * day + minute)).toMatchObject({ locked: 5 });
    await delivered();
    expect(await reconcileAfter(15 * day + minute)).toMatchObject({ deleted: 5, deletedNotNotified: 0 });
    await delivered();
    const kept = async () => (await world.platformPool.query('SELECT FROM deliveries')).rowCount;
    await expect.poll(kept, { timeout: patience }).toBe(10);
    await mail.open();
    await expect.poll(kept, { timeout: 2 * patience, interval: 200 }).toBe(0);
    for (const address of addresses) {
      const mails = mail.mails.filter(({ to }) => to === address);
      expect(mails).toHaveLength(3);
      expect(new Set(mails.map(({ messageId }) => messageId)).size).toBe(3);
    }
  });
});
