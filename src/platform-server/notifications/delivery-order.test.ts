// Tests that the notices about a form reach a subscriber in the order of the form's events, even if one is delayed.
import pg from 'pg';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import {
  type Caller,
  callerOf,
  type MailServer,
  putTypes,
  send,
  settled,
  startMailServer,
  subscribe,
  typeId,
} from '../../../test/support/notices.ts';
import { startTestPlatform } from '../../../test/support/platform.ts';

let mail: MailServer;
let caller: Caller;
let database: pg.Pool;
let logged: CapturedLog;

beforeEach(async () => {
  logged = captureLog();
  mail = await startMailServer();
  onTestFinished(() => mail.close());
  const env = { SMTP_URL: `smtp://127.0.0.1:${mail.port}` };
  const platform = await startTestPlatform({ env, log: logged.log });
  onTestFinished(() => platform.close());
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  onTestFinished(() => database.end());
  caller = await callerOf(platform);
  await putTypes(caller);
});

const lock = (reference: string, correlationId: string | undefined) =>
  send(caller, { correlationId, payload: { reference, deleteOn: '2026-09-04T17:00:00Z' } });

/** Returns a list to which the subjects of mails are added in the order in which the mail server accepts them. */
function acceptedMails(refusals: Record<string, number>, responseCode = 451): string[] {
  const accepted: string[] = [];
  mail.behave(({ subject = '' }) => {
    const left = refusals[subject] ?? 0;
    refusals[subject] = left - 1;
    if (left > 0) throw Object.assign(new Error('not now'), { responseCode });
    accepted.push(subject);
  });
  return accepted;
}

it('a notice that the mail server defers arrives before the later ones about its form', async () => {
  const accepted = acceptedMails({ 'Locked A-1': 1, 'Locked A-2': 1 });
  await subscribe(caller, 'ana@example.org');
  await lock('A-1', 'form:a');
  await lock('A-2', 'form:a');
  await lock('A-3', 'form:a');
  await lock('B-1', 'form:b');
  await lock('C-1', undefined);
  await settled(database);
  expect(accepted.filter((subject) => subject.includes('A-'))).toEqual(['Locked A-1', 'Locked A-2', 'Locked A-3']);
  // The notices about other forms did not wait.
  expect(accepted.slice(0, 2).toSorted()).toEqual(['Locked B-1', 'Locked C-1']);
});

it('a notice waits for the routing of an earlier event about its form', async () => {
  const accepted = acceptedMails({});
  await subscribe(caller, 'ana@example.org');
  // The first event is stored without a routing job.
  const { rows } = await database.query<{ sequence: string }>(
    `INSERT INTO events (id, tenant, namespace, name, occurred, correlation_id, context, payload, accepted)
     SELECT gen_random_uuid(), tenant, 'form-service', 'form-locked', now(), 'form:a', '{}',
       '{"reference": "A-1", "deleteOn": "2026-09-04T17:00:00Z"}', now() FROM subscriptions RETURNING sequence`,
  );
  await lock('A-2', 'form:a');
  await lock('B-1', 'form:b');
  const waiting = 'SELECT FROM graphile_worker.jobs WHERE run_at > now() AND last_error IS NULL';
  await expect.poll(async () => (await database.query(waiting)).rowCount).toBe(1);
  await expect.poll(() => accepted).toEqual(['Locked B-1']);
  await database.query("SELECT graphile_worker.add_job('route-event', json_build_object('event', $1::text))", [
    rows[0]?.sequence,
  ]);
  await settled(database);
  expect(accepted).toEqual(['Locked B-1', 'Locked A-1', 'Locked A-2']);
});

it('a notice in quarantine does not hold back the later ones', async () => {
  const accepted = acceptedMails({ 'Locked A-1': 100 }, 550);
  await subscribe(caller, 'ana@example.org');
  await lock('A-1', 'form:a');
  await expect.poll(async () => (await database.query('SELECT FROM deliveries WHERE refusals > 0')).rowCount).toBe(1);
  await database.query('UPDATE deliveries SET refusals = 7');
  await lock('A-2', 'form:a');
  // Makes the next attempt due immediately.
  await database.query('UPDATE graphile_worker._private_jobs SET run_at = now() WHERE attempts > 0');
  await expect.poll(() => accepted).toEqual(['Locked A-2']);
  expect((await database.query('SELECT FROM deliveries WHERE quarantined')).rowCount).toBe(1);
});

it('a burst of notices of one tenant fails no job', async () => {
  const accepted = acceptedMails({});
  const addresses = Array.from({ length: 30 }, (_, index) => `burst${index}@example.org`);
  for (const address of addresses) await subscribe(caller, address, undefined, { type: typeId });
  await lock('A-1', 'form:a');
  await settled(database);
  expect(accepted).toHaveLength(30);
  expect(logged.text()).not.toContain('job failed');
});
