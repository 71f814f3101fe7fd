// Tests over HTTP, with the real notification service and real mail, that a signed-in person cannot flood the address
// of a stranger with notices, and that legitimate applicants still get their notices.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';
import { samplesOf } from '../../../test/support/metric-growth.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

const minute = 60_000;
const data = { name: 'Ana' };
const newAddress = () => `${randomUUID()}@example.org`;
const to = (address: string) => ({ applicant: { channels: [{ channel: 'email', address }] } });

/** Creates a form and returns its id. */
async function create(caller: { as: Who } | { token: string }, body: object): Promise<string> {
  const answer = await forms.ask('POST', '', { ...caller, body: { definitionId: 'permit', ...body } });
  expect(answer.status).toBe(201);
  return (answer.body as { id: string }).id;
}

/** Deletes a form after its events were delivered. A form that is deleted earlier has no subscriber, and no mail. */
async function remove(id: string, as: Who): Promise<void> {
  const waiting = 'SELECT FROM outbox WHERE form_id = $1 AND accepted IS NULL';
  await expect.poll(async () => (await forms.pool.query(waiting, [id])).rowCount, { interval: 20 }).toBe(0);
  expect((await forms.ask('DELETE', `/${id}`, { as })).status).toBe(204);
}

/**
 * Waits until all events are accepted, the expected mails have arrived, and a mail about a later form of a clerk has
 * arrived as well. Then expects that the address got no other mails.
 */
async function expectMails(address: string, expected: string[]): Promise<void> {
  const waiting = 'SELECT FROM outbox WHERE accepted IS NULL AND not_before <= $1';
  const subjects = () => {
    const sent = forms.platform.mailbox.messages().filter((mail) => mail.to.includes(address));
    return sent.map(({ subject }) => /saved|received|deleted|unlocked/i.exec(subject)?.[0] ?? subject).sort();
  };
  const patience = { interval: 20, timeout: 30_000 };
  await expect.poll(async () => (await forms.pool.query(waiting, [forms.now()])).rowCount, patience).toBe(0);
  await expect.poll(() => subjects().length, patience).toBeGreaterThanOrEqual(expected.length);
  const last = newAddress();
  await create({ as: 'clerk' }, { ...to(last), data, submit: true });
  await forms.platform.mailbox.waitFor((mail) => mail.to.includes(last));
  await sleep(300);
  expect(subjects()).toEqual(expected);
}

const eventsOf = async (ids: string[], kind: string) => {
  const sql = 'SELECT FROM outbox WHERE form_id = ANY($1) AND kind = $2 AND accepted IS NOT NULL';
  return (await forms.pool.query(sql, [ids, kind])).rowCount;
};

const suppressed = async () =>
  (await samplesOf(forms.metricsUrl, 'formgate_suppressed_notices_total'))[''] ?? Number.NaN;

/** The caller whose token has this email address. */
const personWith = async (claims: object) => ({
  token: await forms.tokenWith({ realmRoles: ['applicant'], claims: { name: 'Ana', ...claims } }),
});

describe('a stranger whose address a signed-in applicant enters', () => {
  it('gets one mail in a minute if drafts are created and deleted in a loop, and every event is sent', async () => {
    const [victim, before] = [newAddress(), await suppressed()];
    const ids: string[] = [];
    for (let nth = 0; nth < 4; nth += 1) {
      const id = await create({ as: 'alice' }, to(victim));
      await remove(id, 'alice');
      ids.push(id);
    }
    await expectMails(victim, ['saved']);
    expect([await eventsOf(ids, 'form-created'), await eventsOf(ids, 'form-deleted')]).toEqual([4, 4]);
    expect((await suppressed()) - before).toBe(7);
  });

  it('gets at most five mails in an hour, whatever happens to the forms', async () => {
    const victim = newAddress();
    const submitted: string[] = [];
    for (let nth = 0; nth < 4; nth += 1) {
      const id = await create({ as: 'alice' }, { ...to(victim), data });
      expect((await forms.ask('POST', `/${id}`, { as: 'alice', body: { operation: 'submit' } })).status).toBe(200);
      submitted.push(id, await create({ as: 'alice' }, { ...to(victim), data, submit: true }));
    }
    await expectMails(victim, ['received', 'received', 'received', 'received', 'saved']);
    expect(await eventsOf(submitted, 'form-submitted')).toBe(8);
    forms.advance(61 * minute);
    await remove(await create({ as: 'alice' }, to(victim)), 'alice');
    await expectMails(victim, ['received', 'received', 'received', 'received', 'saved', 'saved']);
  });

  it('gets no mail about the deletion of a draft by an administrator if no earlier mail was about it', async () => {
    const victim = newAddress();
    const [known, unknown] = [await create({ as: 'intake' }, to(victim)), await create({ as: 'intake' }, to(victim))];
    await remove(known, 'admin');
    await remove(unknown, 'admin');
    await expectMails(victim, ['deleted', 'saved']);
    expect(await eventsOf([known, unknown], 'form-deleted')).toBe(2);
  });

  it('gets the mails that an administrator causes, even if other mails about the form were suppressed', async () => {
    const victim = newAddress();
    await create({ as: 'alice' }, to(victim));
    const id = await create({ as: 'alice' }, to(victim));
    await forms.setStatus(id, 'Locked');
    expect((await forms.ask('POST', `/${id}`, { as: 'admin', body: { operation: 'unlock' } })).status).toBe(200);
    await remove(id, 'admin');
    await expectMails(victim, ['deleted', 'saved', 'unlocked']);
  });
});

describe('the receipt of a submitted form', () => {
  it('is sent within a minute after the mail about the draft', async () => {
    const address = newAddress();
    const person = await personWith({ email: address });
    const id = await create(person, { data });
    expect((await forms.ask('POST', `/${id}`, { ...person, body: { operation: 'submit' } })).status).toBe(200);
    await expectMails(address, ['received', 'saved']);
  });

  it.each<[string, (address: string) => Promise<{ as: Who } | { token: string }>]>([
    ['a person’s own verified address', (email) => personWith({ email: email.toUpperCase(), email_verified: true })],
    ['an applicant of a clerk', async () => ({ as: 'clerk' })],
    ['an applicant of an intake application', async () => ({ as: 'intake' })],
    [
      'an applicant of a service account',
      () => personWith({ azp: 'portal', preferred_username: 'service-account-portal' }),
    ],
  ])('is always sent to %s', async (_whose, callerFor) => {
    const address = newAddress();
    const caller = await callerFor(address);
    for (let nth = 0; nth < 6; nth += 1) await create(caller, { ...to(address), data, submit: true });
    await expectMails(address, Array(6).fill('received'));
  });
});
