// Measures how fast the dispatcher delivers a backlog to a server that accepts everything, compared with a loop that
// only sends requests to the same server. The comparison does not depend on the speed of the machine.
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createOutboxDatabase, type OutboxDatabase, type Sink, startSink } from '../../../test/support/outbox.ts';
import { startTestDispatcher } from '../../../test/support/outbox-dispatcher.ts';
import { sizeOf } from '../../../test/support/sizes.ts';

let database: OutboxDatabase;
let sink: Sink;

beforeEach(async () => {
  database = await createOutboxDatabase();
  sink = await startSink();
});

afterEach(async () => {
  await sink.close();
  await database.close();
});

/** Replaces all forms with new ones that have two events each. */
async function fill(forms: number): Promise<void> {
  await database.pool.query('TRUNCATE forms, outbox CASCADE');
  await database.pool.query(
    `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
       anonymous_applicant, one_per_applicant, last_accessed, applicant)
     SELECT gen_random_uuid(), 'urn:example:platform:tenant-service:v2:/tenants/t', 'permit', 'Draft', now(),
       '{"id":"s","name":"Intake"}', 'core', true, false, now(), '{"channels":[]}' FROM generate_series(1, $1)`,
    [forms],
  );
  await database.pool.query(
    `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
     SELECT id, tenant_id, kind, '{"definitionId":"permit","actor":{"id":"s","name":"Intake"}}', now(), now()
     FROM forms CROSS JOIN (VALUES ('form-created'), ('form-submitted')) kinds (kind) ORDER BY kind`,
  );
}

/** Delivers a backlog. Returns the number of events per second of CPU time. */
async function deliverBacklog(forms: number): Promise<number> {
  await fill(forms);
  await database.pool.query('ANALYZE');
  const started = performance.now();
  const cpu = process.cpuUsage();
  const dispatcher = startTestDispatcher({
    databaseUrl: database.url,
    sinkUrl: sink.url,
    pace: { poll: { min: 50, max: 1_000 } },
  });
  while ((await database.undelivered()) > 0) await sleep(100);
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  await dispatcher.stop();
  const rate = Math.round((forms * 2) / seconds);
  const byCpu = Math.round((forms * 2) / ((user + system) / 1e6));
  process.stdout.write(`dispatcher: ${rate} events per second, ${byCpu} per CPU second\n`);
  return byCpu;
}

/** Sends requests with the body of an event. Returns the number of requests per second of CPU time. */
async function sendPlainly(count: number): Promise<number> {
  const body = JSON.stringify({
    name: 'form-created',
    timestamp: new Date(),
    tenantId: 't',
    payload: { id: 'a form' },
  });
  const headers = { 'content-type': 'application/json' };
  let left = count;
  const sendAll = async () => {
    while (left > 0) {
      left -= 1;
      await (await request(`${sink.url}/plain`, { method: 'POST', headers, body })).body.json();
    }
  };
  const cpu = process.cpuUsage();
  await Promise.all(Array.from({ length: 16 }, sendAll));
  const { user, system } = process.cpuUsage(cpu);
  return Math.round(count / ((user + system) / 1e6));
}

it('the dispatcher delivers at least a third of the requests per CPU second that a plain loop sends', async () => {
  const size = sizeOf('OUTBOX_FORMS');
  // The test asserts only rates per CPU second, because the rate per second of real time depends on other processes of
  // the machine. Other processes also slow down the CPU, so the best of a few attempts counts.
  const third = 1 / 3;
  let best = 0;
  let attempts = 0;
  // The first requests are slower, because V8 has not compiled the code yet.
  await sendPlainly(size);
  while (best <= third && attempts < 4) {
    const plain = await sendPlainly(size);
    const share = (await deliverBacklog(size)) / plain;
    process.stdout.write(`dispatcher: ${share.toFixed(2)} of ${plain} plain requests per CPU second\n`);
    best = Math.max(best, share);
    attempts += 1;
  }
  // On a busy machine, a delivery may exceed its time limit and is then repeated.
  const delivered = sink.received.filter(({ path }) => path !== '/plain').map(({ body }) => JSON.stringify(body));
  expect(new Set(delivered).size).toBe(size * 2 * attempts);
  expect(best).toBeGreaterThan(third);
}, 240_000);
