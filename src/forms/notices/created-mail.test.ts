// Tests the mail about a created draft over HTTP, with the real notification service and real mail. Callers must not be
// able to flood an address with such mails, or to put their own text into them.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { samplesOf } from '../../../test/support/metric-growth.ts';

const minute = 60_000;

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

const create = (applicant: object) =>
  forms.ask('POST', '', { as: 'intake', body: { definitionId: 'permit', applicant } });
const byEmail = (address: string) => ({ addressAs: 'Ana', channels: [{ channel: 'email', address }] });
const newAddress = () => `${randomUUID()}@example.org`;
const sendCode = (id: string) => forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } });

async function draft(address: string): Promise<string> {
  return ((await create(byEmail(address))).body as { id: string }).id;
}

async function submit(id: string): Promise<void> {
  await forms.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: { name: 'Ana' }, files: {} } });
  expect((await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'submit' } })).status).toBe(200);
}

const mails = (address: string, subject: RegExp) =>
  forms.platform.mailbox.messages().filter((mail) => mail.to.includes(address) && subject.test(mail.subject));

/**
 * Waits until the events of the forms `ids` are accepted and a later mail has arrived. Then expects `count` mails about
 * created drafts.
 */
async function expectCreatedMails(address: string, ids: string[], count: number): Promise<void> {
  const accepted = async () => {
    const sql = `SELECT count(*)::int FROM outbox WHERE kind = 'form-created' AND accepted IS NOT NULL AND form_id = ANY($1)`;
    return (await forms.pool.query<{ count: number }>(sql, [ids])).rows[0]?.count;
  };
  await expect.poll(accepted).toBe(ids.length);
  const last = ids.at(-1) ?? '';
  await submit(last);
  await expect.poll(() => mails(address, /received/).length).toBeGreaterThan(0);
  await expect.poll(() => mails(address, /saved/).length).toBeGreaterThanOrEqual(count);
  await sleep(300);
  expect(mails(address, /saved/).length).toBe(count);
}

/**
 * Waits until no outbox row is undelivered, and then moves the clock forward. Otherwise, claims of rows would expire,
 * and the rows would be delivered twice.
 */
async function later(minutes: number): Promise<void> {
  const waiting = 'SELECT FROM outbox WHERE accepted IS NULL';
  await expect.poll(async () => (await forms.pool.query(waiting)).rowCount, { interval: 20 }).toBe(0);
  forms.advance(minutes * minute);
}

const suppressed = async () =>
  (await samplesOf(forms.metricsUrl, 'formgate_suppressed_notices_total'))[''] ?? Number.NaN;

describe('the mail about a created draft', () => {
  it('is sent once for 40 drafts that are created concurrently for one address, and every event is sent', async () => {
    const address = newAddress();
    const before = await suppressed();
    const spelled = (index: number) => (index % 2 ? address : address.toUpperCase());
    const ids = await Promise.all(Array.from({ length: 40 }, (_, index) => draft(spelled(index))));
    await expectCreatedMails(address, ids, 1);
    expect((await suppressed()) - before).toBe(39);
  });

  it('is sent again after a minute, five times within the hour, and again after that', async () => {
    const address = newAddress();
    const ids: string[] = [];
    for (let nth = 0; nth < 8; nth += 1) {
      ids.push(await draft(address));
      await later(2);
    }
    await later(60);
    ids.push(await draft(address));
    await expectCreatedMails(address, ids, 6);
  });

  it('is not sent within a minute after a code', async () => {
    const address = newAddress();
    const first = await draft(address);
    await later(2);
    expect((await sendCode(first)).status).toBe(202);
    const second = await draft(address);
    await expectCreatedMails(address, [first, second], 1);
  });

  it('is suppressed even if the address is given in another channel', async () => {
    const address = newAddress();
    const sms = { channel: 'sms', address: '+15550100001' };
    const ids = [await draft(address)];
    const other = await create({ channels: [{ channel: 'email', address }, sms] });
    ids.push((other.body as { id: string }).id);
    await expectCreatedMails(address, ids, 1);
    const facts = await forms.pool.query("SELECT facts FROM outbox WHERE form_id = $1 AND kind = 'form-created'", [
      ((await create({ channels: [sms, { channel: 'email', address }] })).body as { id: string }).id,
    ]);
    expect(facts.rows[0].facts).toMatchObject({ noticeSuppressed: true });
  });

  it('never delays or refuses a code', async () => {
    const address = newAddress();
    for (let nth = 0; nth < 6; nth += 1) {
      const id = await draft(address);
      if (nth < 5) expect((await sendCode(id)).status).toBe(202);
      await later(2);
    }
    const other = newAddress();
    for (let nth = 0; nth < 6; nth += 1) await draft(other);
    expect((await sendCode(await draft(other))).status).toBe(202);
  });
});

describe('the name in the greeting of mails', () => {
  it.each([
    ['has more than 100 characters', 'x'.repeat(101)],
    ['has a line break', 'Ana\nYour account is locked'],
    ['ends in a line break', 'Ana\r\n'],
    ['has a line separator', 'Ana\u2028Bob'],
    ['has a NUL character', 'Ana\u0001'],
    ['has a bidirectional override', 'Ana \u202egro.live'],
    ['has an isolate', 'Ana \u2066x'],
    ['has a URL', 'Ana, see https://evil.example/pay'],
    ['has a URL in capitals', 'HTTP://EVIL'],
    ['has a domain', 'Win at evil.com now'],
    ['has a domain with a path', 't.co/abc'],
    ['has a domain with another dot', 'evil。com'],
    ['has a mail address', 'write to bob@evil.com'],
  ])('is refused with a pointer if it %s', async (_what, addressAs) => {
    const { status, body } = await create({ ...byEmail(newAddress()), addressAs });
    expect(status).toBe(400);
    expect(body).toMatchObject({ errors: [{ pointer: '/applicant/addressAs' }] });
  });

  it.each([
    'Ana',
    'J.R.R. Tolkien',
    'Dr. María-José O’Neill, Ph.D.',
    'محمد علی',
    'Ana / Bob',
    'Company No. 5 Ltd.',
    '李小龍',
    'x'.repeat(100),
  ])('may be %s', async (addressAs) => {
    expect((await create({ ...byEmail(newAddress()), addressAs })).status).toBe(201);
  });

  it('is omitted for a signed-in person whose name is a web address', async () => {
    const token = await forms.tokenWith({
      roles: ['applicant'],
      realmRoles: ['applicant'],
      claims: { name: 'evil.com' },
    });
    const { status, body } = await forms.ask('POST', '', { token, body: { definitionId: 'permit' } });
    expect(status).toBe(201);
    const { id } = body as { id: string };
    const { rows } = await forms.pool.query('SELECT applicant FROM forms WHERE id = $1', [id]);
    expect(rows[0].applicant.addressAs).toBeUndefined();
  });
});
