// Tests notices and events that fail because of their content. Such an item must be quarantined after a limited number
// of failures, and must not delay others. The SMTP server refuses one address.
import type { Socket } from 'node:net';
import pg from 'pg';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { untriedBy } from '../../service/quarantine/quarantine-store.ts';
import { createDeliveryStore } from './deliveries-store.ts';
import { createJobQuarantine, createNoticeQuarantine } from './job-quarantine.ts';

let server: SMTPServer;
/** The connections of the mail server. */
const sockets = new Set<Socket>();
let platform: TestPlatform;
let database: pg.Pool;
let tenant: string;
const log = captureLog();
const refused = new Set<string>();
const taken: string[] = [];

beforeAll(async () => {
  server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo({ address }, _session, done) {
      if (!refused.has(address)) return done();
      done(Object.assign(new Error(`mailbox ${address} unknown`), { responseCode: 550 }));
    },
    onData(stream, { envelope }, done) {
      taken.push(...envelope.rcptTo.map(({ address }) => address));
      stream.resume().once('end', () => done());
    },
  });
  server.on('error', () => undefined);
  server.server.on('connection', (socket: Socket) => sockets.add(socket));
  const port = await listenOnLoopback(server.server);
  platform = await startTestPlatform({ env: { SMTP_URL: `smtp://127.0.0.1:${port}` }, log: log.log });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  tenant = platform.tenant.id.split('/').at(-1) ?? '';
  await setTemplate('Hi');
});
afterAll(async () => {
  await database.end();
  await platform.close();
  server.close();
});
beforeEach(async () => {
  taken.length = 0;
  refused.clear();
  await database.query('TRUNCATE quarantine, events, subscribers CASCADE');
});

const setTemplate = async (subject: string) => {
  const templates = { email: { subject, body: 'x' } };
  const type = { id: 'u', name: 'U', channels: ['email'], events: [{ namespace: 'f', name: 'e', templates }] };
  await database.query(
    `INSERT INTO configurations VALUES ('core', 'platform', 'notification-service') ON CONFLICT DO NOTHING`,
  );
  await database.query(
    `INSERT INTO configuration_revisions VALUES ('core', 'platform', 'notification-service', 0, now(), now(), $1)
     ON CONFLICT (tenant, namespace, name, revision) DO UPDATE SET configuration = excluded.configuration`,
    [{ u: type }],
  );
};
const addSubscriber = async (id: string) => {
  await database.query(`INSERT INTO subscribers VALUES ($1, $2, null, 'Ana', now())`, [id, tenant]);
  await database.query(`INSERT INTO subscriber_channels VALUES ($1, 'email', $2, 0)`, [id, `${id}@example.org`]);
  await database.query(`INSERT INTO subscriptions VALUES ($1, 'u', $2, true)`, [id, tenant]);
};
const addEvent = async (context = '{}') => {
  await database.query(
    `WITH e AS (
       INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted)
       VALUES (gen_random_uuid(), $1, 'f', 'e', now(), $2, '{}', now()) RETURNING sequence)
     SELECT graphile_worker.add_job('route-event', json_build_object('event', sequence::text), max_attempts => 32767) FROM e`,
    [tenant, context],
  );
};
/** Makes waiting jobs due immediately. */
const hurry = () =>
  database.query(
    `SELECT graphile_worker.reschedule_jobs(array_agg(id), run_at => now()) FROM graphile_worker.jobs
     WHERE locked_at IS NULL AND run_at > now() HAVING count(*) > 0`,
  );
const entries = async () =>
  (await database.query('SELECT kind, tenant_id, reason, detail, released FROM quarantine ORDER BY item')).rows;
const jobs = async () => (await database.query('SELECT FROM graphile_worker.jobs')).rowCount;
const settled = () =>
  expect
    .poll(
      async () => {
        await hurry();
        return jobs();
      },
      { interval: 50 },
    )
    .toBe(0);

it('a notice that the mail server always refuses is quarantined, delivered after its release, and deleted with its subscriber', async () => {
  await Promise.all(['good', 'bad', 'worse'].map(addSubscriber));
  refused.add('bad@example.org').add('worse@example.org');
  await addEvent();
  await settled();
  expect(taken).toEqual(['good@example.org']);
  const entry = { kind: 'delivery', tenant_id: tenant, reason: 'mail-refused', detail: 'SMTP 550', released: false };
  expect(await entries()).toEqual([entry, entry]);
  const metrics = await (await fetch(`${platform.metricsUrl}/metrics`)).text();
  expect(metrics).toContain('formgate_quarantined_items{kind="delivery",reason="mail-refused"} 2');
  expect(metrics).toContain('formgate_jobs_waiting{queue="deliveries"} 0');
  expect(log.text()).toContain('item quarantined');
  expect(log.text()).not.toContain('example.org');

  refused.delete('bad@example.org');
  expect(await createNoticeQuarantine(database).release('all')).toHaveLength(2);
  await settled();
  expect(taken).toEqual(['good@example.org', 'bad@example.org']);
  // Eight attempts before the release, and one after it.
  expect((await database.query('SELECT attempts FROM quarantine WHERE NOT released')).rows).toEqual([{ attempts: 9 }]);
  expect(await createNoticeQuarantine(database).counts()).toEqual([
    { kind: 'delivery', reason: 'mail-refused', count: 1 },
  ]);
});

it.each([
  ['rejects', '22P05'],
  ['cannot route within the statement timeout', '57014'],
])('an event that Postgres %s is quarantined, and the next one is routed', async (_what, state) => {
  await addSubscriber('good');
  await database.query(`
    CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF EXISTS (SELECT FROM events e WHERE e.sequence = NEW.event AND e.context ? 'bad')
      THEN RAISE EXCEPTION 'Ana' USING ERRCODE = '${state}'; END IF;
      RETURN NEW; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION refuse()`);
  await addEvent('{"bad":1}');
  await addEvent();
  await settled();
  await database.query('DROP TRIGGER refuse ON deliveries');
  expect(taken).toEqual(['good@example.org']);
  expect(await entries()).toMatchObject([{ kind: 'event', reason: 'database-refused', detail: `SQLSTATE ${state}` }]);
  await createNoticeQuarantine(database).release('all');
  await settled();
  expect(taken).toHaveLength(2);
});

it.each([
  ['a subscriber was just deleted', '23503'],
  ['of a deadlock', '40P01'],
  ['a concurrent transaction got in its way', '40001'],
  ['it waited too long for a lock', '55P03'],
])('an event whose routing often fails because %s (%s) is not quarantined', async (_why, state) => {
  await addSubscriber('good');
  await database.query(`
    CREATE SEQUENCE attempts;
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('attempts') < 10 THEN RAISE EXCEPTION 'not now' USING ERRCODE = '${state}'; END IF;
      RETURN NEW; END $$;
    CREATE TRIGGER fail BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION fail()`);
  onTestFinished(async () => void (await database.query('DROP FUNCTION fail CASCADE; DROP SEQUENCE attempts')));
  await addEvent();
  await settled();
  expect(taken).toEqual(['good@example.org']);
  expect(await entries()).toEqual([]);
});

it('an event with very many subscribers is routed: its notices get no priority that is out of range', async () => {
  const client = await database.connect();
  onTestFinished(() => client.release());
  await client.query('BEGIN');
  await client.query(
    `WITH s AS (
       INSERT INTO subscribers SELECT 's' || n, $1, null, 'Ana', now() FROM generate_series(1, 2000) n RETURNING id)
     INSERT INTO subscriptions SELECT id, 'u', $1, true FROM s`,
    [tenant],
  );
  const { rows } = await client.query<{ sequence: string }>(
    `INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted)
     VALUES (gen_random_uuid(), $1, 'f', 'e', now(), '{}', '{}', now()) RETURNING sequence`,
    [tenant],
  );
  const event = { sequence: rows[0]?.sequence ?? '', tenant, correlationId: null };
  await createDeliveryStore(client).route(event, { typeId: 'u', after: '', size: 5_000 }, new Date());
  expect((await client.query('SELECT FROM deliveries WHERE event = $1', [event.sequence])).rowCount).toBe(2_000);
  const priorities = `SELECT DISTINCT priority FROM graphile_worker.jobs ORDER BY 1`;
  const found = (await client.query<{ priority: number }>(priorities)).rows.map(({ priority }) => priority);
  await client.query('ROLLBACK');
  expect(found).toEqual(Array.from({ length: 101 }, (_, level) => level));
});

/** The mail server accepts each mail, but closes the connection instead of replying. */
function neverReply() {
  const { onData } = server;
  onTestFinished(() => {
    server.onData = onData;
  });
  server.onData = (stream) => {
    stream.resume().once('end', () => {
      taken.push('once more');
      for (const socket of sockets) socket.destroy();
    });
  };
}

it('a notice that the mail server may have delivered each time is quarantined after twelve attempts', async () => {
  neverReply();
  await addSubscriber('ana');
  await addEvent();
  await settled();
  expect(taken).toHaveLength(12);
  const entry = {
    kind: 'delivery',
    tenant_id: tenant,
    reason: 'mail-unconfirmed',
    detail: 'no reply',
    released: false,
  };
  expect(await entries()).toEqual([entry]);
});

it.each(['this', 'the former'])(
  'a new version beside an old one retries a notice once, if a pod of %s version makes the attempt',
  async (sender) => {
    neverReply();
    await addSubscriber('ana');
    await addEvent();
    await settled();
    const asIfTriedBy = (version: string) => database.query('UPDATE quarantine SET version = $1', [version]);
    const quarantine = createJobQuarantine({ pool: database, clock: () => new Date(), log: log.log });
    await asIfTriedBy('0.0.1');
    for (let minute = 0; minute < 3; minute += 1) {
      await quarantine.upkeep();
      await settled();
      if (sender === 'the former') await asIfTriedBy('0.0.1');
      // Pods of the former version release nothing either.
      expect(await database.query(`SELECT FROM quarantine WHERE ${untriedBy(`'0.0.1'`)}`)).toMatchObject({
        rowCount: 0,
      });
    }
    expect(taken).toHaveLength(13);
    // The next version retries the notice again, and so does a release.
    expect(await database.query(`SELECT FROM quarantine WHERE ${untriedBy(`'1000.0.0'`)}`)).toMatchObject({
      rowCount: 1,
    });
    await createNoticeQuarantine(database).release('all');
    await settled();
    expect(taken).toHaveLength(14);
  },
);

it('a busy mail server does not lead to quarantine', async () => {
  await addSubscriber('slow');
  let refusals = 0;
  server.onRcptTo = (_address, _session, done) => {
    refusals += 1;
    done(refusals < 12 ? Object.assign(new Error('busy'), { responseCode: 451 }) : null);
  };
  await addEvent();
  await settled();
  expect(taken).toEqual(['slow@example.org']);
  expect(await entries()).toEqual([]);
});
