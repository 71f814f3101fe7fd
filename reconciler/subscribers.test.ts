// Tests which forms a run checks for duplicate subscribers if checks fail. The database is real.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { PlatformError, type PlatformErrorKind, type PlatformErrorOptions } from '../src/platform/platform-error.ts';
import { withTransaction } from '../src/service/postgres/postgres.ts';
import { createUrns } from '../src/service/urn.ts';
import { day, type ExpiryWorld, startExpiryWorld } from '../test/support/expiry.ts';
import type { Writer } from './lease.ts';
import { removeOtherSubscribers } from './subscribers.ts';

const urns = createUrns('urn:example');

let world: ExpiryWorld;
const writer: Writer = { dryRun: false, transact: (work) => withTransaction(world.pool, work) };
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterEach(async () => {
  await world.pool.query('DELETE FROM forms');
});
afterAll(() => world.close());

/** Adds forms whose checks are due, in this order, and returns their ids. */
async function addChecks(count: number): Promise<string[]> {
  const forms: string[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const id = await world.add({ subscriberId: 'own' });
    const due = new Date(world.now().getTime() - 60_000 + nth);
    await world.pool.query('INSERT INTO subscriber_checks VALUES ($1, $2)', [id, due]);
    forms.push(id);
  }
  return forms;
}

/** Performs a run in which the check of `form` fails. Returns the forms whose second subscriber was removed. */
async function runFailing(form: string, kind: PlatformErrorKind, options: PlatformErrorOptions): Promise<string[]> {
  const checked: string[] = [];
  let last = '';
  const notifications = {
    async subscribersOf(_tenant: string, _type: string, urn: string) {
      if (urn === urns.form(form)) throw new PlatformError('notifications', kind, options);
      last = urn;
      return ['own', 'second'];
    },
    removeSubscriber: async () => void checked.push(last),
  };
  expect(await world.run({ checks: { notifications, urns } })).toMatchObject({ outcome: 'succeeded' });
  return checked;
}

const urnsOf = (forms: string[]) => forms.map((form) => urns.form(form));

async function dueIn(form: string): Promise<number> {
  const sql = 'SELECT due FROM subscriber_checks WHERE form_id = $1';
  const { rows } = await world.pool.query<{ due: Date }>(sql, [form]);
  return (rows[0]?.due.getTime() ?? 0) - world.now().getTime();
}

it.each([
  ['status 500', 'failed', { upstreamStatus: 500 }],
  ['a malformed response', 'failed', { upstreamStatus: 200, reason: 'malformed at /results' }],
  ['a refusal', 'rejected', { upstreamStatus: 400 }],
] as const)(
  'a form whose check always fails with %s does not prevent the checks of other forms',
  async (_, kind, options) => {
    const [failing = '', ...others] = await addChecks(3);
    expect(await runFailing(failing, kind, options)).toEqual(urnsOf(others));
    expect(await dueIn(failing)).toBe(day);
  },
);

it('a form whose check times out ends the checks of this run, and the next run checks the other forms', async () => {
  const [failing = '', ...others] = await addChecks(3);
  expect(await runFailing(failing, 'timeout', {})).toEqual([]);
  expect(await runFailing(failing, 'timeout', {})).toEqual(urnsOf(others));
});

it('a slow service ends the checks of this run after the time limit, and the next run continues', async () => {
  const forms = await addChecks(10);
  const checked: string[] = [];
  const notifications = {
    async subscribersOf(_tenant: string, _type: string, urn: string) {
      checked.push(urn);
      await sleep(60);
      return ['own'];
    },
    removeSubscriber: async () => undefined,
  };
  const upkeep = { ...world.runOptions(), writer, checks: { notifications, urns }, timeLimit: 100 };
  await removeOtherSubscribers(upkeep);
  expect(checked.length).toBeLessThan(forms.length);
  for (let run = 1; run < forms.length; run += 1) await removeOtherSubscribers(upkeep);
  expect(checked).toEqual(urnsOf(forms));
});

it.each([
  ['is unreachable', 'unreachable', { reason: 'ECONNREFUSED' }],
  ['denies access', 'denied', { upstreamStatus: 403 }],
  ['is overloaded', 'failed', { upstreamStatus: 503 }],
] as const)('if the service %s, all forms wait for the next run', async (_, kind, options) => {
  const [failing = '', ...others] = await addChecks(3);
  expect(await runFailing(failing, kind, options)).toEqual([]);
  expect(await runFailing('', kind, options)).toEqual(urnsOf([failing, ...others]));
});
