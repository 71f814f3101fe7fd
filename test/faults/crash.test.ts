// Kills the form service between any two statements. The process kills itself at a chosen step (see
// test/support/crash-points.ts), and a new process starts on the same database. Then the test checks both sides: the
// forms, and the events that the platform received. It sends each request many times, and kills the process before
// every CRASH_STRIDE-th step, beginning at a random step of the first five. CRASH_STRIDE=1 covers every step. TEST_SEED
// repeats the random choice.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomOf } from '../support/abort-schedule.ts';
import { codeFor, draft, drained, type FormProcess, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { anonymous, permit } from '../support/forms.ts';
import type { Answered } from '../support/platform.ts';
import { seedOfRun, sizeOf } from '../support/sizes.ts';
import { until } from '../support/until.ts';

/**
 * Timeout of a test in milliseconds. Each crash costs a start of the process, which takes half a second on an idle
 * machine.
 */
const timeout = 400_000;

let world: FormWorld;
let forms: FormProcess;
beforeAll(async () => {
  world = await startFormWorld();
  forms = await spawn();
  await until('the registration', () => forms.logText().includes('registration written'));
});
afterAll(() => world.close());

/** Environment in which the form service removes the subscriber of a deleted form without delay. */
const env = { SUBSCRIBER_REMOVAL_DELAY: 'PT0S', PGAPPNAME: 'killed' };
const spawn = () => world.spawn(env);

/**
 * Waits until Postgres has ended the last statement of the dead process, and makes the outbox claims of that process
 * expire.
 */
async function expireClaims(): Promise<void> {
  const running = "SELECT FROM pg_stat_activity WHERE application_name = 'killed' AND datname = current_database()";
  await expect
    .poll(async () => (await world.pool.query(running)).rowCount, {
      interval: 10,
    })
    .toBe(0);
  await world.pool.query('UPDATE outbox SET claimed_until = NULL, not_before = created');
}

/** Starts the next process, after the outbox claims of the dead process have expired. */
async function restart(): Promise<void> {
  expect(await forms.ended).toBe('SIGKILL');
  await expireClaims();
  forms = await spawn();
}

interface Request {
  method: string;
  path: string;
  as: 'intake' | 'admin' | 'alice';
  body?: unknown;
  headers?: Record<string, string>;
}

interface Walk<C> {
  prepare(): Promise<C>;
  request(context: C): Request;
  /**
   * Checks the response to the repeated request, and the state after it. The first attempt may have had its whole
   * effect, or none.
   */
  judge(repeat: Answered, context: C): Promise<void>;
}

const stride = sizeOf('CRASH_STRIDE');
const random = randomOf(seedOfRun(import.meta.filename));

/**
 * Sends the request repeatedly, and crashes the process before a later step each time, until the request completes.
 * Returns an upper bound of the request's number of steps.
 */
async function walk<C>({ prepare, request, judge }: Walk<C>): Promise<number> {
  let crashes = 0;
  for (let step = 1 + Math.floor(random() * Math.min(stride, 5)); ; step += stride) {
    const context = await prepare();
    const { method, path, headers, ...asked } = request(context);
    const crashing = { ...asked, headers: { ...headers, 'x-crash-at': String(step) } };
    const first = await forms.ask(method, path, crashing).catch(() => undefined);
    if (first) {
      expect(first.status).toBeLessThan(300);
      if (crashes > 0) return step - 1;
      // The random first step was beyond the last step of the request, so nothing has crashed yet. Begins again at step
      // 1.
      step = 1 - stride;
      continue;
    }
    crashes += 1;
    await restart();
    await drained(world.pool);
    await expectConsistency();
    const repeat = await forms.ask(method, path, { ...asked, ...(headers && { headers }) });
    const judged = judge(repeat, context).then(() => drained(world.pool));
    await judged.then(expectConsistency).catch((error: unknown) => {
      throw new Error(`killed before step ${step}`, { cause: error });
    });
  }
}

interface SentEvent {
  name: string;
  correlationId: string;
  context: { formId: string; idempotencyKey: string };
}

/** Returns the events that the event service accepted, in the order of acceptance. Omits repeats with the same key. */
function acceptedEvents(): SentEvent[] {
  const events = world.events.exchanges
    .filter(
      ({ method, target, status }) => method === 'POST' && target.startsWith('/event/v1/events') && status === 200,
    )
    .map(({ body }) => JSON.parse(body) as SentEvent);
  const byKey = new Map<string, SentEvent>();
  for (const event of events) {
    const key = event.context.idempotencyKey;
    expect(byKey.get(key)?.name ?? event.name).toBe(event.name);
    if (!byKey.has(key)) byKey.set(key, event);
  }
  return [...byKey.values()];
}

/** Checks the invariants of all forms of all tests. They hold whenever the outbox is empty. */
async function expectConsistency(): Promise<void> {
  const { rows } = await world.pool.query<{ id: string; status: string; deleted: boolean }>(
    `SELECT id, status, false AS deleted FROM forms
    UNION ALL SELECT form_id, 'Draft', true FROM tombstones`,
  );
  const told = Map.groupBy(acceptedEvents(), ({ context }) => context.formId);
  for (const { id, status, deleted } of rows) {
    const names = told.get(id)?.map(({ name }) => name) ?? [];
    const submitted = names.includes('form-submitted') && (deleted || status === 'Submitted');
    expect([id, ...names]).toEqual([
      id,
      'form-created',
      ...(submitted ? ['form-submitted'] : []),
      ...(deleted ? ['form-deleted'] : []),
    ]);
    if (status === 'Submitted') expect(submitted).toBe(true);
    told.delete(id);
  }
  expect([...told.keys()]).toEqual([]);
  await expectSubscribers(rows.filter(({ deleted }) => !deleted).map(({ id }) => id));
}

/** Checks that the notification service has one subscriber for each form, and no data of removed subscribers. */
async function expectSubscribers(formIds: string[]): Promise<void> {
  const { rows } = await world.platformPool.query<{ user_id: string; parts: string[] }>(
    `SELECT s.user_id, array_agg(DISTINCT c.address) AS parts FROM subscribers s
    LEFT JOIN subscriber_channels c ON c.subscriber_id = s.id GROUP BY s.id ORDER BY s.user_id`,
  );
  const urns = formIds.map((id) => world.platform.access.urns.form(id)).sort();
  expect(rows.map(({ user_id }) => user_id)).toEqual(urns);
  const { rows: left } = await world.platformPool.query(
    `SELECT subscriber_id FROM subscriber_channels UNION SELECT subscriber_id FROM subscriptions
    UNION SELECT subscriber_id FROM subscription_criteria UNION SELECT subscriber_id FROM codes
    EXCEPT SELECT id FROM subscribers`,
  );
  expect(left).toEqual([]);
}

const countOf = async (sql: string, values: unknown[]) => (await world.pool.query(sql, values)).rowCount;
const newAddress = () => `${randomUUID()}@example.org`;
const answers = { data: { name: 'Ana' }, files: {} };
const submit = { operation: 'submit' };

/** Creates a draft with form data that may be submitted. */
async function filledDraft(): Promise<{ id: string; etag: string }> {
  const id = await draft(forms);
  const saved = await forms.ask('PUT', `/${id}/data`, { as: 'intake', body: answers });
  return { id, etag: saved.headers.get('etag') ?? '' };
}

describe('the form service, killed before each of its statements and before its response', { timeout }, () => {
  it('while it creates a form, stores the form with its events or neither; a repeat returns that one form', async () => {
    const crashes = await walk({
      prepare: async () => ({ address: newAddress(), key: randomUUID() }),
      request: ({ address, key }) => ({
        method: 'POST',
        path: '',
        as: 'intake',
        body: { definitionId: permit.id, applicant: anonymous(address) },
        headers: { 'idempotency-key': key },
      }),
      async judge({ status, body }, { address }) {
        expect(status).toBe(201);
        const sql = "SELECT id FROM forms WHERE applicant -> 'channels' -> 0 ->> 'address' = $1";
        expect((await world.pool.query(sql, [address])).rows).toEqual([{ id: (body as { id: string }).id }]);
      },
    });
    expect(crashes).toBeGreaterThanOrEqual(2);
  });

  it.each([
    ['an intake application’s', 'intake'],
    ['a signed-in applicant’s', 'alice'],
  ] as const)(
    'while it saves %s form data, stores all of it or none; a repeat saves it or gets 412',
    async (_whose, as) => {
      const crashes = await walk({
        prepare: async () => {
          if (as === 'intake') return draft(forms);
          const { body } = await forms.ask('POST', '', { as, body: { definitionId: permit.id } });
          return (body as { id: string }).id;
        },
        request: (id) => ({
          method: 'PUT',
          path: `/${id}/data`,
          as,
          body: answers,
          headers: { 'if-match': '"1"' },
        }),
        async judge({ status }, id) {
          expect([200, 412]).toContain(status);
          const saved = await forms.ask('GET', `/${id}/data`, { as: 'admin' });
          expect(saved.body).toEqual(answers);
          expect(saved.headers.get('etag')).toBe('"2"');
        },
      });
      expect(crashes).toBeGreaterThanOrEqual(2);
    },
  );

  it('while it submits a form, leaves a submitted form with its event or a draft without; a repeat returns the one submission', async () => {
    const crashes = await walk({
      prepare: async () => ({ ...(await filledDraft()), key: randomUUID() }),
      request: ({ id, key }) => ({
        method: 'POST',
        path: `/${id}`,
        as: 'intake',
        body: submit,
        headers: { 'idempotency-key': key },
      }),
      async judge({ status, body }, { id, key }) {
        expect(status).toBe(200);
        const { rows } = await world.pool.query<{ submitted: Date }>('SELECT submitted FROM forms WHERE id = $1', [id]);
        expect(body).toEqual({ id, status: 'Submitted', submitted: rows[0]?.submitted.toISOString() });
        const headers = { 'idempotency-key': key };
        expect((await forms.ask('POST', `/${id}`, { as: 'intake', body: submit, headers })).body).toEqual(body);
      },
    });
    expect(crashes).toBeGreaterThanOrEqual(3);
  });

  it('while an administrator deletes a form, keeps it or removes it with all its data; a repeat gets 204', async () => {
    const crashes = await walk({
      prepare: filledDraft,
      request: ({ id }) => ({ method: 'DELETE', path: `/${id}`, as: 'admin' }),
      judge: async ({ status }, { id }) => {
        expect(status).toBe(204);
        await expectGone(id);
      },
    });
    expect(crashes).toBeGreaterThanOrEqual(3);
  });

  it('while an intake application deletes a form by a code, keeps it or removes it; a repeat gets 204', async () => {
    const crashes = await walk({
      async prepare() {
        const address = newAddress();
        const id = await draft(forms, address);
        await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } });
        const code = await codeFor(world.platform, address);
        const headers = { 'x-form-code': code };
        expect((await forms.ask('GET', `/${id}/data`, { as: 'intake', headers })).status).toBe(200);
        return { id, headers };
      },
      request: ({ id, headers }) => ({ method: 'DELETE', path: `/${id}`, as: 'intake', headers }),
      judge: async ({ status }, { id }) => {
        expect(status).toBe(204);
        await expectGone(id);
      },
    });
    expect(crashes).toBeGreaterThanOrEqual(5);
  });

  it('while it sends a code, can send another one after a minute; deleting the form leaves no trace of it', async () => {
    const crashes = await walk({
      async prepare() {
        const address = newAddress();
        return { address, id: await draft(forms, address) };
      },
      request: ({ id }) => ({ method: 'POST', path: `/${id}`, as: 'intake', body: { operation: 'send-code' } }),
      async judge({ status }, { id, address }) {
        expect([202, 429]).toContain(status);
        await world.pool.query("UPDATE code_sends SET sent = sent - interval '1 minute'");
        const seen = new Set(world.platform.mailbox.messages().map((message) => message.id));
        const again = await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } });
        expect(again.status).toBe(202);
        const headers = { 'x-form-code': await codeFor(world.platform, address, seen) };
        expect((await forms.ask('GET', `/${id}/data`, { as: 'intake', headers })).status).toBe(200);
        expect((await forms.ask('DELETE', `/${id}`, { as: 'intake', headers })).status).toBe(204);
        await expectGone(id);
      },
    });
    expect(crashes).toBeGreaterThanOrEqual(8);
  });
});

async function expectGone(id: string): Promise<void> {
  expect((await forms.ask('GET', `/${id}`, { as: 'admin' })).status).toBe(410);
  for (const table of ['idempotency_keys', 'used_codes', 'code_attempts', 'code_sends'])
    expect([table, await countOf(`SELECT FROM ${table} WHERE form_id = $1`, [id])]).toEqual([table, 0]);
}

describe('the dispatcher, killed before and after each of its statements', { timeout }, () => {
  /**
   * Starts the dispatcher repeatedly, until there is nothing to deliver. Kills it at its first, second, third, fourth
   * or fifth step, in turn. Returns the number of crashes.
   */
  async function crashUntilDrained(): Promise<number> {
    await forms.kill();
    await Promise.all([world.events.open(), world.notifications.open()]);
    for (let crashes = 0; ; crashes += 1) {
      await expireClaims();
      const dispatcher = world.launch({ ...env, CRASH_DISPATCHER_AT: String((crashes % 5) + 1) });
      if (!(await drained(world.pool, 60_000, dispatcher.hasEnded))) {
        expect(await dispatcher.ended).toBe('SIGKILL');
        continue;
      }
      await dispatcher.kill();
      await restart();
      return crashes;
    }
  }
  /**
   * Waits until all rows are delivered, then shuts the taps (HTTP proxies), so that the event service and the
   * notification service look stopped. All later rows belong to one form, so a process has one claim at a time, and
   * five steps are enough to record a result.
   */
  const shut = async () => {
    await drained(world.pool);
    await Promise.all([world.events.shut(), world.notifications.shut()]);
  };

  it('delivers everything in order, once or again with the same key, and leaves nothing of a deleted form', async () => {
    await shut();
    const { id } = await filledDraft();
    expect((await forms.ask('POST', `/${id}`, { as: 'intake', body: submit })).status).toBe(200);
    // For each of the rows subscribe, form-created and form-submitted, the process is killed three times: after the
    // claim, and before and after the statement that counts the event and records the result. The last kill comes after
    // all deliveries, so `crashUntilDrained` may not see it.
    expect(await crashUntilDrained()).toBeGreaterThanOrEqual(8);
    await expectConsistency();

    await shut();
    expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
    expect(await crashUntilDrained()).toBeGreaterThanOrEqual(5);
    await expectConsistency();
    await expectGone(id);
  });

  it('leaves nothing of a form that was deleted before its applicant was subscribed', async () => {
    await shut();
    const { id } = await filledDraft();
    expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
    expect(await crashUntilDrained()).toBeGreaterThanOrEqual(8);
    await expectConsistency();
    await expectGone(id);
  });
});
