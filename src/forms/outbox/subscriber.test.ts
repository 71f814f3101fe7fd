// Follows a form's subscriber from its creation to its removal. Covers every order of the form's deletion and the
// dispatcher's deliveries. A subscriber without a form must never remain.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createOutboxDatabase, type OutboxDatabase, type Sink, startSink } from '../../../test/support/outbox.ts';
import {
  startTestDispatcher,
  type TestDispatcher,
  type TestDispatcherOptions,
} from '../../../test/support/outbox-dispatcher.ts';
import { eraseAgain } from '../expiry/erasure-store.ts';
import { createOutboxStore, type OutboxStore } from './store.ts';

const channels = [{ channel: 'email', address: 'canary-address@example.org' }];
const quarterHour = 15 * 60_000;

let database: OutboxDatabase;
let sink: Sink;
let dispatchers: TestDispatcher[] = [];
/** The subscribers at the notification service, keyed by id. */
let subscribers: Map<string, { userId: string; channels: unknown[] }>;
let shift: number;

const clock = () => new Date(Date.now() + shift);

beforeEach(async () => {
  database = await createOutboxDatabase();
  sink = await startSink();
  subscribers = new Map();
  shift = 0;
  sink.answer(keepSubscribers as never);
});

afterEach(async () => {
  await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop()));
  dispatchers = [];
  await sink.close();
  await database.close();
});

/**
 * Imitates the notification service. It keeps one subscriber for each user id, with the addresses of the first request.
 */
function keepSubscribers(request: { method: string; path: string; body: Record<string, unknown> }) {
  if (request.path.includes('/subscriptions')) {
    const userId = String(request.body.userId);
    const known = [...subscribers].find(([, subscriber]) => subscriber.userId === userId)?.[0];
    const id = known ?? randomUUID();
    if (!known) subscribers.set(id, { userId, channels: request.body.channels as unknown[] });
    const subscriber = { id, channels: subscribers.get(id)?.channels };
    return { status: 200, body: { subscriberId: id, typeId: 'form-status-updates', subscriber } };
  }
  if (request.method !== 'DELETE') return undefined;
  const id = new URL(request.path, 'http://sink').pathname.split('/').at(-1) ?? '';
  return subscribers.delete(id) ? { status: 200, body: { deleted: true } } : { status: 404 };
}

function start(options: Partial<TestDispatcherOptions> = {}): TestDispatcher {
  const dispatcher = startTestDispatcher({ databaseUrl: database.url, sinkUrl: sink.url, clock, ...options });
  dispatchers.push(dispatcher);
  return dispatcher;
}

function store(): OutboxStore {
  return createOutboxStore({ pool: database.pool, removalDelay: quarterHour, noticeTime: 0, deleteFiles: false });
}

async function create(): Promise<string> {
  const form = await database.addForm({ channels, at: clock() });
  await database.addRow(form, 'subscribe', { at: clock() });
  await database.addRow(form, 'form-created', { at: clock(), facts: { actor: { id: 'a', name: 'canary-actor' } } });
  return form;
}

async function remove(form: string): Promise<void> {
  const { rows } = await database.pool.query<{ subscriber_id: string | null }>(
    'DELETE FROM forms WHERE id = $1 RETURNING subscriber_id',
    [form],
  );
  const subscriberId = rows[0]?.subscriber_id;
  await database.addRow(form, 'form-deleted', {
    at: clock(),
    facts: { ...(subscriberId && { subscriberId }), actor: { id: 'a', name: 'canary-actor' } },
  });
}

const pending = async () => {
  const { rows } = await database.pool.query<{ kind: string }>(
    'SELECT kind FROM outbox WHERE accepted IS NULL ORDER BY sequence',
  );
  return rows.map(({ kind }) => kind);
};
const waitUntilPending = (kinds: string[]) => expect.poll(pending, { interval: 10 }).toEqual(kinds);

describe('subscribe', () => {
  it('creates a subscriber with the form’s URN as user id, and stores its id in the form’s row', async () => {
    const form = await create();
    start();
    await waitUntilPending([]);
    const [request] = sink.received;
    expect(request).toMatchObject({
      method: 'POST',
      body: {
        userId: `urn:example:platform:form-service:v1:/forms/${form}`,
        addressAs: 'Ana',
        channels,
        criteria: { correlationId: `urn:example:platform:form-service:v1:/forms/${form}` },
      },
    });
    const { rows } = await database.pool.query('SELECT subscriber_id, revision FROM forms WHERE id = $1', [form]);
    expect(rows[0]).toEqual({ subscriber_id: [...subscribers.keys()][0], revision: '1' });
  });

  it('is skipped for a form without a channel', async () => {
    const form = await database.addForm();
    await database.addRow(form, 'subscribe');
    start();
    await waitUntilPending([]);
    expect(sink.received).toEqual([]);
  });

  it('is skipped for a form that already has a subscriber, whose id is stored in the outbox row', async () => {
    const form = await create();
    await database.pool.query("UPDATE forms SET subscriber_id = 's-early' WHERE id = $1", [form]);
    start();
    await waitUntilPending([]);
    expect(subscribers.size).toBe(0);
    await remove(form);
    await waitUntilPending(['remove-subscriber']);
    const { rows } = await database.pool.query(
      "SELECT facts ->> 'subscriberId' AS id FROM outbox WHERE kind = 'remove-subscriber'",
    );
    expect(rows).toEqual([{ id: 's-early' }]);
  });
});

describe('a subscriber that the notification service has lost', () => {
  it('is replaced by one that is removed with the form', async () => {
    const form = await create();
    const { subscribeNow } = start();
    await waitUntilPending([]);
    const [lost] = subscribers.keys();
    subscribers.clear();
    sink.received.length = 0;
    const [first, second] = await Promise.all([subscribeNow(form, lost), subscribeNow(form, lost)]);
    expect(second).toBe(first);
    expect([...subscribers.keys()]).toEqual([first]);
    expect(sink.received.map(({ body }) => body)).toMatchObject([
      { channels, criteria: { context: { notice: 'due' } } },
    ]);
    await remove(form);
    await waitUntilPending(['remove-subscriber']);
    shift = quarterHour + 1_000;
    await waitUntilPending([]);
    expect(subscribers.size).toBe(0);
  });
});

describe('removal', () => {
  it('happens 15 minutes after form-deleted was accepted, not before', async () => {
    const form = await create();
    start();
    await waitUntilPending([]);
    await remove(form);
    await waitUntilPending(['remove-subscriber']);
    shift = quarterHour - 60_000;
    await sleep(150);
    expect(subscribers.size).toBe(1);
    shift = quarterHour + 1_000;
    await waitUntilPending([]);
    expect(subscribers.size).toBe(0);
  });

  it('is retried until the subscriber is removed', async () => {
    const form = await create();
    start();
    await waitUntilPending([]);
    await remove(form);
    await waitUntilPending(['remove-subscriber']);
    let refusals = 0;
    sink.answer(((request: never) => {
      const { method } = request as { method: string };
      if (method === 'DELETE' && refusals < 8) {
        refusals += 1;
        return { status: refusals % 2 ? 500 : 401 };
      }
      return keepSubscribers(request);
    }) as never);
    shift = quarterHour + 1_000;
    await waitUntilPending([]);
    expect(refusals).toBe(8);
    expect(subscribers.size).toBe(0);
  });

  it('finds and removes other subscribers of the form, which overlapping requests have created', async () => {
    const form = await create();
    start();
    await waitUntilPending([]);
    const userId = `urn:example:platform:form-service:v1:/forms/${form}`;
    for (const id of ['s-second', 's-third']) subscribers.set(id, { userId, channels });
    subscribers.set('s-other', { userId: 'another form', channels });
    await remove(form);
    await waitUntilPending(['remove-subscriber']);
    shift = quarterHour + 1_000;
    await waitUntilPending([]);
    expect([...subscribers.keys()]).toEqual(['s-other']);
  });

  it('treats a missing subscriber as removed', async () => {
    const form = await create();
    start();
    await waitUntilPending([]);
    await remove(form);
    subscribers.clear();
    await waitUntilPending(['remove-subscriber']);
    shift = quarterHour + 1_000;
    await waitUntilPending([]);
  });

  it('waits for form-deleted to be accepted, however long the event service is down', async () => {
    const form = await create();
    start();
    await waitUntilPending([]);
    sink.answer((({ path }: { path: string }) => (path.startsWith('/event') ? { status: 503 } : undefined)) as never);
    await remove(form);
    shift = 24 * 60 * 60_000;
    await sleep(200);
    expect(await pending()).toEqual(['form-deleted']);
    expect(subscribers.size).toBe(1);
    sink.answer(keepSubscribers as never);
    await waitUntilPending(['remove-subscriber']);
  });

  it('removes the names of actors from the rows of the deleted form', async () => {
    const form = await create();
    start();
    await waitUntilPending([]);
    await remove(form);
    await waitUntilPending(['remove-subscriber']);
    const { rows } = await database.pool.query('SELECT facts::text FROM outbox');
    expect(JSON.stringify(rows)).not.toContain('canary-actor');
  });
});

describe('a form that is deleted', () => {
  async function endsClean(): Promise<void> {
    await expect.poll(async () => (await pending()).filter((kind) => kind !== 'remove-subscriber')).toEqual([]);
    shift += quarterHour + 1_000;
    await waitUntilPending([]);
    expect([...subscribers.values()]).toEqual([]);
  }

  it('before subscribe is delivered sends no address, and leaves no subscriber', async () => {
    const form = await create();
    await remove(form);
    start();
    await endsClean();
    expect(JSON.stringify(sink.received)).not.toContain('canary-address');
    const names = sink.received.filter(({ path }) => path.startsWith('/event')).map(({ body }) => body.name);
    expect(names).toEqual(['form-created', 'form-deleted']);
  });

  it('before subscribe is delivered still sends form-deleted if the service creates no subscriber without a channel', async () => {
    const form = await create();
    await remove(form);
    sink.answer((({ path }: { path: string }) =>
      path.includes('/subscriptions') ? { status: 400 } : undefined) as never);
    start();
    await waitUntilPending([]);
    expect(sink.received.at(-1)?.body.name).toBe('form-deleted');
  });

  it('during the subscribe request leaves no subscriber', async () => {
    const form = await create();
    let removed = false;
    sink.answer((async (request: never) => {
      const answer = keepSubscribers(request);
      if (!removed) {
        removed = true;
        await remove(form);
      }
      return answer;
    }) as never);
    start();
    await endsClean();
    expect(JSON.stringify(sink.received)).toContain('canary-address');
  });

  it('after a crash between subscribe and its settlement leaves no subscriber', async () => {
    const form = await create();
    const {
      rows: [row],
    } = await store().claim({ service: 'notifications', limit: 1, now: clock(), lease: 100 });
    expect(row?.formId).toBe(form);
    subscribers.set('s-dead', { userId: `urn:example:platform:form-service:v1:/forms/${form}`, channels });
    await remove(form);
    start();
    await endsClean();
    expect(sink.received.some(({ method, path }) => method === 'DELETE' && path.includes('s-dead'))).toBe(true);
  });

  it('long before a dispatcher with an expired claim settles subscribe leaves no subscriber', async () => {
    const form = await create();
    const {
      rows: [row],
    } = await store().claim({ service: 'notifications', limit: 1, now: clock(), lease: 1 });
    await remove(form);
    const dispatcher = start();
    await endsClean();
    // A late request creates a subscriber for a form that was deleted long ago.
    subscribers.set('s-late', { userId: 'late', channels });
    await store().accept([{ row: { sequence: row?.sequence ?? '' }, subscriberId: 's-late' }], clock());
    dispatcher.nudge();
    expect(await pending()).toEqual(['remove-subscriber']);
    await endsClean();
  });

  it('after the backup from which the database was restored leaves no subscriber, although the backup lacks it', async () => {
    const form = await create();
    start();
    await waitUntilPending([]);
    expect(subscribers.size).toBe(1);
    await database.pool.query('DELETE FROM forms; DELETE FROM outbox');
    const erasure = {
      formId: form,
      tenantId: 'urn:example:platform:tenant-service:v2:/tenants/t',
      definitionId: 'permit',
    };
    const facts = { anonymousApplicant: true, notified: true, deleted: clock().toISOString(), sequence: null };
    await eraseAgain(database.pool, [{ ...erasure, ...facts }], clock());
    await waitUntilPending(['remove-subscriber']);
    shift = quarterHour + 1_000;
    await waitUntilPending([]);
    expect(subscribers.size).toBe(0);
  });

  it('while older events wait has them delivered in order, rendered from their rows', async () => {
    const form = await create();
    const deleteOn = new Date().toISOString();
    await database.addRow(form, 'form-locked', { at: clock(), facts: { deleteOn } });
    await database.addRow(form, 'form-submitted', { at: clock() });
    await remove(form);
    start();
    await endsClean();
    const events = sink.received.filter(({ path }) => path.startsWith('/event')).map(({ body }) => body);
    expect(events.map(({ name }) => name)).toEqual(['form-created', 'form-locked', 'form-submitted', 'form-deleted']);
    expect(events[1]).toMatchObject({ payload: { deleteOn, form: { id: form, status: 'Locked', applicant: null } } });
  });

  it('sends form-deleted even if its definition cannot be read, because the removal waits for it', async () => {
    const form = await create();
    let known = true;
    start({
      definitions: {
        async find(_tenant, id) {
          if (!known) throw new Error('the configuration service is unavailable');
          return { id, name: 'Permit' };
        },
      },
    });
    await waitUntilPending([]);
    known = false;
    await remove(form);
    await endsClean();
  });
});

it('no outbox row ever contains an applicant’s address, name or form data', async () => {
  const form = await database.addForm({ channels, data: { trade: 'canary-data' } });
  await database.addRow(form, 'subscribe');
  await database.addRow(form, 'form-created');
  await database.addRow(form, 'form-submitted');
  const dump = async () => JSON.stringify((await database.pool.query('SELECT * FROM outbox')).rows);
  const dumps = [await dump()];
  start();
  await waitUntilPending([]);
  dumps.push(await dump());
  await remove(form);
  await waitUntilPending(['remove-subscriber']);
  dumps.push(await dump());
  shift = quarterHour + 1_000;
  await waitUntilPending([]);
  dumps.push(await dump());
  for (const text of dumps) expect(text).not.toMatch(/canary-(address|data)|Ana/);
});

describe('files of a deleted form', () => {
  const file = (last: string) =>
    `urn:example:platform:file-service:v1:/files/0198f6aa-7f5e-7c3a-9d57-3f6f0e1d2c3${last}`;

  async function removeWithFiles(form: string): Promise<void> {
    await database.removeForm(form);
    await database.addRow(form, 'form-deleted', { at: clock(), facts: { files: [file('1'), file('2'), file('3')] } });
  }

  it('are deleted only if this is enabled', async () => {
    await removeWithFiles(await database.addForm());
    start();
    await waitUntilPending([]);
    expect(sink.received.map(({ path }) => path)).toEqual(['/event/v1/events']);
    expect(sink.received[0]?.body).toMatchObject({ payload: { files: [file('1'), file('2'), file('3')] } });
  });

  it('are deleted only if they belong to this form; other and missing files are left alone', async () => {
    const form = await database.addForm();
    const owner = `urn:example:platform:form-service:v1:/forms/${form}`;
    sink.answer((({ method, path }: { method: string; path: string }) => {
      if (method === 'GET' && path.endsWith('3')) return { status: 404 };
      if (method === 'GET') return { status: 200, body: { recordId: path.endsWith('1') ? owner : 'another' } };
      return undefined;
    }) as never);
    await removeWithFiles(form);
    start({ deleteFiles: true });
    await expect.poll(pending).toEqual(['remove-files']);
    shift = quarterHour + 1_000;
    await waitUntilPending([]);
    const deleted = sink.received.filter(({ method }) => method === 'DELETE').map(({ path }) => path);
    expect(deleted).toEqual(['/file/v1/files/0198f6aa-7f5e-7c3a-9d57-3f6f0e1d2c31']);
  });

  it.each([
    ['fails in between', { fileTime: 60_000 }, ['1', '2', '3', '2']],
    ['is slow and fails in between', { fileTime: 0 }, ['1', '2', '3', '2']],
    ['works', { fileTime: 60_000 }, ['1', '2', '3']],
  ])(
    'are read one after the other, not again from the first one, if the file service %s',
    async (how, options, read) => {
      let failures = how === 'works' ? 0 : 1;
      sink.answer((({ method, path }: { method: string; path: string }) => {
        if (method !== 'GET') return undefined;
        if (!path.endsWith('2') || failures === 0) return { status: 404 };
        failures -= 1;
        return { status: 500 };
      }) as never);
      await removeWithFiles(await database.addForm());
      start({ deleteFiles: true, ...options });
      await expect.poll(pending).toEqual(['remove-files']);
      shift = quarterHour + 1_000;
      await waitUntilPending([]);
      const paths = sink.received.filter(({ method }) => method === 'GET').map(({ path }) => path.at(-1));
      expect(paths).toEqual(read);
    },
  );

  it('are deleted although the file service refuses one of them, which alone ends in quarantine', async () => {
    const form = await database.addForm();
    const owner = `urn:example:platform:form-service:v1:/forms/${form}`;
    sink.answer((({ method, path }: { method: string; path: string }) => {
      if (method !== 'GET') return undefined;
      return path.endsWith('1') ? { status: 400 } : { status: 200, body: { recordId: owner } };
    }) as never);
    await removeWithFiles(form);
    start({ deleteFiles: true });
    await expect.poll(pending).toEqual(['remove-files']);
    shift = quarterHour + 1_000;
    const deleted = () => sink.received.filter(({ method }) => method === 'DELETE').map(({ path }) => path.at(-1));
    await expect.poll(deleted).toEqual(['2', '3']);
    const left = () => database.pool.query("SELECT facts -> 'files' AS files FROM outbox WHERE kind = 'remove-files'");
    await expect.poll(async () => (await left()).rows).toEqual([{ files: [file('1')] }]);
  });

  it('are all deleted if there are more than one delivery removes', async () => {
    const form = await database.addForm();
    const owner = `urn:example:platform:form-service:v1:/forms/${form}`;
    sink.answer((({ method }: { method: string }) =>
      method === 'GET' ? { status: 200, body: { recordId: owner } } : undefined) as never);
    const files = Array.from({ length: 101 }, (_, index) => `${file('0').slice(0, -3)}${100 + index}`);
    await database.removeForm(form);
    await database.addRow(form, 'form-deleted', { at: clock(), facts: { files } });
    start({ deleteFiles: true });
    await expect.poll(pending).toEqual(['remove-files']);
    shift = quarterHour + 1_000;
    await waitUntilPending([]);
    const deleted = sink.received.filter(({ method }) => method === 'DELETE').map(({ path }) => path.slice(-3));
    expect(deleted).toEqual(files.map((urn) => urn.slice(-3)));
    const { rows } = await database.pool.query(
      "SELECT facts -> 'files' AS files FROM outbox WHERE kind = 'remove-files'",
    );
    expect(rows).toEqual([{ files: files.slice(-1) }]);
  });

  it('are deleted although the file service refuses the first hundred of them', async () => {
    const form = await database.addForm();
    const owner = `urn:example:platform:form-service:v1:/forms/${form}`;
    const files = Array.from({ length: 101 }, (_, index) => `${file('0').slice(0, -3)}${100 + index}`);
    sink.answer((({ method, path }: { method: string; path: string }) => {
      if (method !== 'GET') return undefined;
      return path.endsWith('200') ? { status: 200, body: { recordId: owner } } : { status: 400 };
    }) as never);
    await database.removeForm(form);
    await database.addRow(form, 'form-deleted', { at: clock(), facts: { files } });
    start({ deleteFiles: true });
    await expect.poll(pending).toEqual(['remove-files']);
    shift = quarterHour + 1_000;
    const deleted = () => sink.received.filter(({ method }) => method === 'DELETE').map(({ path }) => path.slice(-3));
    await expect.poll(deleted).toEqual(['200']);
  });
});
