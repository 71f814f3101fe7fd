// Tests the budgets of codes in the database: which attempts and sends count for a form and for an address, and for how
// long. Also tests when a read session is open.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CodeWorld,
  emailTo,
  kiosk,
  otherKiosk,
  startCodeWorld,
  tenantId,
} from '../../../test/support/code-world.ts';
import type { Form } from '../forms/form.ts';

const minute = 60_000;
const hour = 60 * minute;

let world: CodeWorld;
beforeAll(async () => {
  world = await startCodeWorld();
});
afterAll(() => world.close());

const reserve = (form: Form, code: string, account = kiosk) =>
  world.store.reserveAttempt(world.attemptOf(form, code, account));
async function reserved(form: Form, code: string, account = kiosk): Promise<string> {
  const reservation = await reserve(form, code, account);
  if (reservation.outcome !== 'reserved') throw new Error(`the code is ${reservation.outcome}`);
  return reservation.id;
}
const tryWrong = async (form: Form, code: string) =>
  world.store.settleWrong(await reserved(form, code), world.attemptOf(form, code));
const tryRight = async (form: Form, code: string, account = kiosk) =>
  world.store.settleRight(await reserved(form, code, account), world.attemptOf(form, code, account));
const hasSession = ({ id }: Form, account = kiosk, now = world.now()) =>
  world.store.hasSession({ tenantId, formId: id, account, now });
const count = async (table: string, form: Form) =>
  (await world.pool.query(`SELECT FROM ${table} WHERE form_id = $1`, [form.id])).rowCount;

describe('wrong codes', () => {
  it('of all forms of an address count together, and those of a deleted form still do', async () => {
    const forms: Form[] = [];
    for (let nth = 0; nth < 4; nth += 1) forms.push(await world.addForm({ applicant: emailTo('same@example.org') }));
    const [first, second, third, last] = forms as [Form, Form, Form, Form];
    for (const [form, code] of [
      [first, 'A'],
      [first, 'B'],
      [second, 'C'],
      [second, 'D'],
      [third, 'E'],
    ] as const)
      expect(await tryWrong(form, code)).toBe(false);
    await world.pool.query('DELETE FROM forms WHERE id = $1', [first.id]);
    expect(await reserve(last, 'F')).toEqual({ outcome: 'spent', waitMs: hour });
  });

  it('of a form count, whatever its address is now', async () => {
    const form = await world.addForm();
    for (const code of ['A', 'B', 'C', 'D', 'E']) await tryWrong(form, code);
    const moved = { ...form, applicant: emailTo('new@example.org') };
    expect(await reserve(moved, 'F')).toMatchObject({ outcome: 'spent' });
    world.advance(hour - 1);
    expect(await reserve(moved, 'F')).toEqual({ outcome: 'spent', waitMs: 1 });
    world.advance(1);
    expect(await reserve(moved, 'F')).toMatchObject({ outcome: 'reserved' });
  });

  it('end the read sessions of the form with the fifth, and not before', async () => {
    const [form, other] = [await world.addForm(), await world.addForm()];
    await tryRight(form, 'RIGHT');
    await tryRight(other, 'RIGHT');
    for (const code of ['A', 'B', 'C', 'D']) await tryWrong(form, code);
    expect(await hasSession(form)).toBe(true);
    expect(await tryWrong(form, 'E')).toBe(false);
    expect([await hasSession(form), await hasSession(other)]).toEqual([false, true]);
    expect(await reserve(form, 'RIGHT')).toMatchObject({ outcome: 'spent' });
  });

  it('that are an hour old end no session', async () => {
    const form = await world.addForm();
    for (const code of ['A', 'B', 'C', 'D']) await tryWrong(form, code);
    world.advance(hour);
    await tryRight(form, 'RIGHT');
    await tryWrong(form, 'E');
    expect(await hasSession(form)).toBe(true);
  });
});

describe('an unfinished attempt', () => {
  it('keeps the same account from trying the same code for a minute', async () => {
    const form = await world.addForm();
    const id = await reserved(form, 'A');
    expect(await reserve(form, 'A')).toEqual({ outcome: 'underway' });
    expect(await reserve(form, 'A', otherKiosk)).toMatchObject({ outcome: 'reserved' });
    expect(await reserve(form, 'A', { ...kiosk, issuer: 'https://other.example' })).toMatchObject({
      outcome: 'reserved',
    });
    expect(await reserve(form, 'B')).toMatchObject({ outcome: 'reserved' });
    world.advance(minute - 1);
    expect(await reserve(form, 'A')).toEqual({ outcome: 'underway' });
    world.advance(1);
    expect(await reserve(form, 'A')).toEqual({ outcome: 'reserved', isRepeated: true, id: expect.any(String) });
    expect(await reserve(form, 'A')).toEqual({ outcome: 'underway' });
    expect(Number(id)).toBeGreaterThan(0);
  });

  it('with the code of another form of the address is another attempt', async () => {
    const applicant = emailTo('two-forms@example.org');
    const [form, other] = [await world.addForm({ applicant }), await world.addForm({ applicant })];
    await world.store.leaveUndecided(await reserved(form, 'A'), world.attemptOf(form, 'A'));
    const attempt = { ...world.attemptOf(other, 'A'), codeHash: world.attemptOf(form, 'A').codeHash };
    const reservation = await world.store.reserveAttempt(attempt);
    expect(reservation).toMatchObject({ outcome: 'reserved' });
    expect(await count('code_attempts', other)).toBe(1);
  });

  it('counts for a minute, and after that for the rest of the hour', async () => {
    const form = await world.addForm();
    for (const code of ['A', 'B', 'C', 'D', 'E']) await reserved(form, code);
    expect(await reserve(form, 'F')).toEqual({ outcome: 'spent', waitMs: minute });
    world.advance(minute);
    expect(await reserve(form, 'F')).toEqual({ outcome: 'spent', waitMs: hour - minute });
  });

  it('whose outcome is unknown does not count against the same code, but against others', async () => {
    const form = await world.addForm();
    for (const code of ['A', 'B', 'C', 'D']) await tryWrong(form, code);
    const id = await reserved(form, 'E');
    await world.store.leaveUndecided(id, world.attemptOf(form, 'E'));
    expect(await reserve(form, 'F')).toMatchObject({ outcome: 'spent' });
    expect(await reserve(form, 'E', otherKiosk)).toEqual({ outcome: 'reserved', isRepeated: true, id });
    expect(await reserve(form, 'E', otherKiosk)).toEqual({ outcome: 'underway' });
    await world.store.settleWrong(id, world.attemptOf(form, 'E', otherKiosk));
    expect(await reserve(form, 'E')).toMatchObject({ outcome: 'spent' });
  });

  it('that is refunded does not count', async () => {
    const form = await world.addForm();
    const id = await reserved(form, 'A');
    await reserved(form, 'B');
    await world.store.refundAttempt(id, world.attemptOf(form, 'A'));
    expect(await count('code_attempts', form)).toBe(1);
    expect(await reserve(form, 'A')).toMatchObject({ outcome: 'reserved' });
  });
});

describe('a read session', () => {
  it('is open for half an hour, for one account and one form', async () => {
    const [form, other] = [await world.addForm(), await world.addForm()];
    expect(await tryRight(form, 'RIGHT')).toBe(true);
    expect(await hasSession(form)).toBe(true);
    expect(await hasSession(other)).toBe(false);
    expect(await hasSession(form, otherKiosk)).toBe(false);
    expect(await hasSession(form, { ...kiosk, issuer: 'https://other.example' })).toBe(false);
    const end = world.now().getTime() + 30 * minute;
    expect(await hasSession(form, kiosk, new Date(end - 1))).toBe(true);
    expect(await hasSession(form, kiosk, new Date(end))).toBe(false);
  });

  it('is opened once by two checks of one account, and stays closed for a code that another account used', async () => {
    const form = await world.addForm();
    const [mine, others] = [await reserved(form, 'RIGHT'), await reserved(form, 'RIGHT', otherKiosk)];
    expect(await world.store.settleRight(mine, world.attemptOf(form, 'RIGHT'))).toBe(true);
    expect(await world.store.settleRight(mine, world.attemptOf(form, 'RIGHT'))).toBe(true);
    expect(await world.store.settleRight(others, world.attemptOf(form, 'RIGHT', otherKiosk))).toBe(false);
    expect([await count('used_codes', form), await count('code_attempts', form)]).toEqual([1, 0]);
    world.advance(30 * minute);
    expect(await world.store.settleRight(mine, world.attemptOf(form, 'RIGHT'))).toBe(false);
    expect(await reserve(form, 'RIGHT')).toEqual({ outcome: 'used' });
  });

  it('makes a later "wrong" from the service for the same code count as right', async () => {
    const form = await world.addForm();
    const id = await reserved(form, 'RIGHT', otherKiosk);
    await tryRight(form, 'RIGHT');
    expect(await world.store.settleWrong(id, world.attemptOf(form, 'RIGHT'))).toBe(true);
    expect(await count('code_attempts', form)).toBe(0);
    expect(await reserve(form, 'RIGHT')).toEqual({ outcome: 'session' });
  });
});

describe('old rows', () => {
  it('are deleted with the next attempt or send, once they are an hour old', async () => {
    const [form, other] = [await world.addForm(), await world.addForm()];
    await reserved(form, 'A');
    await world.store.reserveSend(world.keysOf(form), world.now());
    world.advance(hour - 1);
    await reserved(other, 'B');
    await world.store.reserveSend(world.keysOf(other), world.now());
    expect([await count('code_attempts', form), await count('code_sends', form)]).toEqual([1, 1]);
    world.advance(1);
    await reserved(other, 'C');
    expect([await count('code_attempts', form), await count('code_sends', form)]).toEqual([0, 1]);
    world.advance(minute);
    await world.store.reserveSend(world.keysOf(other), world.now());
    expect(await count('code_sends', form)).toBe(0);
  });
});

describe('a right code that another account has used', () => {
  it('opens no session, even if that use commits at the same time', async () => {
    const form = await world.addForm();
    const { id } = (await reserve(form, 'A')) as { id: string };
    const { codeHash, now } = world.attemptOf(form, 'A');
    const other = await world.pool.connect();
    await other.query('BEGIN');
    await other.query(
      `INSERT INTO used_codes (form_id, code_hash, issuer, subject, session_until)
       VALUES ($1, $2, $3, $4, $5::timestamptz + interval '30 minutes')`,
      [form.id, codeHash, otherKiosk.issuer, otherKiosk.subject, now],
    );
    const settling = world.store.settleRight(id, world.attemptOf(form, 'A'));
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'transactionid' AND query LIKE '%used_codes%'";
    await expect.poll(async () => (await world.pool.query(waiting)).rowCount).toBe(1);
    await other.query('COMMIT');
    other.release();
    expect(await settling).toBe(false);
  });
});
