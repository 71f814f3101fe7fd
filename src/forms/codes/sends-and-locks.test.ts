// Tests the budget of sends in the database, and how attempts, sends and deletions of the same form wait for each
// other.
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type CodeWorld,
  emailTo,
  kiosk,
  problemOf,
  startCodeWorld,
  tenantId,
} from '../../../test/support/code-world.ts';
import type { Form } from '../forms/form.ts';
import { lockKeys } from './code.ts';

const minute = 60_000;

let world: CodeWorld;
beforeAll(async () => {
  world = await startCodeWorld();
});
afterAll(() => world.close());

const send = (form: Form) => world.store.reserveSend(world.keysOf(form), world.now());

describe('sends', () => {
  it('to an address are a minute apart, and at most five an hour for all its forms', async () => {
    const applicant = emailTo('sends@example.org');
    for (let nth = 1; nth <= 5; nth += 1) {
      expect(await send(await world.addForm({ applicant }))).toEqual({ id: expect.any(String) });
      if (nth < 5) expect(await send(await world.addForm({ applicant }))).toEqual({ waitMs: minute });
      world.advance(minute);
    }
    expect(await send(await world.addForm({ applicant }))).toEqual({ waitMs: 55 * minute });
    expect(await send(await world.addForm())).toEqual({ id: expect.any(String) });
    world.advance(55 * minute);
    expect(await send(await world.addForm({ applicant }))).toEqual({ id: expect.any(String) });
  });

  it('of a form are a minute apart, whatever its address is now', async () => {
    const form = await world.addForm();
    await send(form);
    expect(await send({ ...form, applicant: emailTo('moved@example.org') })).toEqual({ waitMs: minute });
  });

  it('of a form and sends to its address have separate budgets', async () => {
    const [form, other] = [await world.addForm(), await world.addForm({ applicant: emailTo('new@example.org') })];
    for (const each of [form, form, form, other, other]) {
      expect(await send(each)).toEqual({ id: expect.any(String) });
      world.advance(minute);
    }
    expect(await send({ ...form, applicant: other.applicant })).toEqual({ id: expect.any(String) });
  });

  it('to an address still count after its form was deleted', async () => {
    const applicant = emailTo('deleted@example.org');
    const form = await world.addForm({ applicant });
    await send(form);
    await world.pool.query('DELETE FROM forms WHERE id = $1', [form.id]);
    expect(await send(await world.addForm({ applicant }))).toEqual({ waitMs: minute });
  });

  it('that are refunded do not count', async () => {
    const form = await world.addForm();
    const other = await world.addForm();
    await send(other);
    const reservation = await send(form);
    await world.store.refundSend('id' in reservation ? reservation.id : '', world.keysOf(form));
    expect(await send(form)).toEqual({ id: expect.any(String) });
    expect(await send(other)).toEqual({ waitMs: minute });
  });
});

describe('each statement', () => {
  it('takes the shares of the tenant and the form', async () => {
    const form = await world.addForm();
    const { store } = world;
    const keys = world.keysOf(form);
    world.requesters.length = 0;
    await store.reserveAttempt(world.attemptOf(form));
    await store.settleWrong('0', world.attemptOf(form));
    await store.settleRight('0', world.attemptOf(form));
    await store.leaveUndecided('0', keys);
    await store.refundAttempt('0', keys);
    await store.hasSession({ tenantId, formId: form.id, account: kiosk, now: world.now() });
    await store.reserveSend(keys, world.now());
    await store.refundSend('0', keys);
    expect(world.requesters).toEqual(Array(8).fill({ tenant: tenantId, member: form.id }));
  });
});

describe('concurrent operations', () => {
  let form: Form;
  beforeEach(async () => {
    form = await world.addForm();
  });

  /**
   * Runs `work` while another transaction holds the locks that `sql` takes. The result's `waits` is true if `work` had
   * to wait for these locks.
   */
  async function during(sql: string, values: unknown[], work: () => Promise<unknown>) {
    const other: pg.PoolClient = await world.pool.connect();
    try {
      await other.query('BEGIN');
      await other.query(sql, values);
      let isSettled = false;
      const result = work().finally(() => {
        isSettled = true;
      });
      result.catch(() => undefined);
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      let waits = false;
      while (!waits && !isSettled) waits = (await world.pool.query(waiting)).rowCount !== 0;
      await other.query('COMMIT');
      return { waits, result };
    } finally {
      other.release();
    }
  }

  const operations: [string, () => Promise<unknown>][] = [
    ['an attempt', () => world.store.reserveAttempt(world.attemptOf(form))],
    ['a wrong code', () => world.store.settleWrong('0', world.attemptOf(form))],
    ['a send', () => send(form)],
  ];
  const rightCode = () => world.store.settleRight('0', world.attemptOf(form));

  it.each(operations)('%s waits for another request of the form or of the address', async (_what, work) => {
    for (const key of lockKeys(world.keysOf(form))) {
      const { waits, result } = await during('SELECT pg_advisory_xact_lock($1)', [key], work);
      expect(waits).toBe(true);
      await result;
    }
  });

  // With "wrong code", a person who clicked twice would believe that the draft was not deleted.
  it.each([...operations, ['a right code', rightCode]] as const)(
    '%s during the deletion of the form ends with "gone"',
    async (_what, work) => {
      const { waits, result } = await during('DELETE FROM forms WHERE id = $1', [form.id], work);
      expect(waits).toBe(true);
      expect(await problemOf(result)).toMatchObject({ slug: 'gone' });
    },
  );

  it('a save of the form does not block a code', async () => {
    const update = 'UPDATE forms SET revision = revision + 1 WHERE id = $1';
    const { waits, result } = await during(update, [form.id], () => world.store.reserveAttempt(world.attemptOf(form)));
    expect(waits).toBe(false);
    expect(await result).toMatchObject({ outcome: 'reserved' });
  });
});
