// Tests the dispatcher with a real Postgres, the real platform clients and a real HTTP server.
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createOutboxDatabase,
  type OutboxDatabase,
  type Received,
  type Sink,
  startSink,
} from '../../../test/support/outbox.ts';
import {
  startTestDispatcher,
  type TestDispatcher,
  type TestDispatcherOptions,
} from '../../../test/support/outbox-dispatcher.ts';
import { Problem } from '../../service/http/problem.ts';
import { eventKinds } from './event-catalogue.ts';

let database: OutboxDatabase;
let sink: Sink;
let dispatchers: TestDispatcher[] = [];
let children: ChildProcess[] = [];

beforeEach(async () => {
  database = await createOutboxDatabase();
  sink = await startSink();
});

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop()));
  [dispatchers, children] = [[], []];
  await sink.close();
  await database.close();
});

function start(options: Partial<TestDispatcherOptions> = {}): TestDispatcher {
  const dispatcher = startTestDispatcher({ databaseUrl: database.url, sinkUrl: sink.url, ...options });
  dispatchers.push(dispatcher);
  return dispatcher;
}

const delivered = () => expect.poll(() => database.undelivered(), { interval: 20 }).toBe(0);
const events = () => sink.received.filter(({ path }) => path === '/event/v1/events');
const context = ({ body }: Received) => body.context as { formId: string; idempotencyKey: string };
const keys = () => events().map((request) => context(request).idempotencyKey);
const sequenceOf = (key: string) => Number(key.split(':')[1]);

describe('order', () => {
  it('is kept for each form by two concurrent dispatchers, which deliver each event once', async () => {
    const forms = await Promise.all(Array.from({ length: 40 }, () => database.addForm()));
    for (const kind of eventKinds) for (const form of forms) await database.addRow(form, kind);
    sink.answer(async () => {
      await sleep(Math.random() * 10);
      return undefined;
    });
    // The lease of a claim is long, because a row is delivered twice if its claim expires on a busy machine.
    start({ pace: { lease: 60_000 } });
    start({ pace: { lease: 60_000 } });
    await delivered();
    expect(new Set(keys()).size).toBe(forms.length * eventKinds.length);
    expect(keys()).toHaveLength(forms.length * eventKinds.length);
    for (const form of forms) {
      const names = events()
        .filter((request) => context(request).formId === form)
        .map(({ body }) => body.name);
      expect(names).toEqual(eventKinds);
    }
  });

  it('holds back the later rows of a form while its oldest row is refused, and no other form', async () => {
    const [refused, other] = [await database.addForm(), await database.addForm()];
    for (const form of [refused, other])
      for (const kind of ['form-created', 'form-submitted'] as const) await database.addRow(form, kind);
    let refusing = true;
    sink.answer(
      (request) => (refusing && context(request).formId === refused ? { status: 400 } : undefined) as undefined,
    );
    const dispatcher = start();
    await expect.poll(() => database.undelivered()).toBe(2);
    await expect
      .poll(() => events().filter((request) => context(request).formId === refused).length)
      .toBeGreaterThan(3);
    expect(
      events()
        .filter((request) => context(request).formId === refused)
        .every(({ body }) => body.name === 'form-created'),
    ).toBe(true);
    expect(await dispatcher.metrics.registry.metrics()).toMatch(
      /formgate_outbox_deliveries_total\{kind="form-created",outcome="rejected"\} [1-9]/,
    );
    refusing = false;
    await delivered();
    expect(events().at(-1)?.body.name).toBe('form-submitted');
  });

  it('is kept across services: events of a form wait for its subscriber', async () => {
    const form = await database.addForm({ channels: [{ channel: 'email', address: 'ana@example.org' }] });
    await database.addRow(form, 'subscribe');
    await database.addRow(form, 'form-created');
    let up = false;
    sink.answer(({ path }) => (path.startsWith('/subscription') && !up ? { status: 503 } : undefined) as undefined);
    start();
    await expect.poll(() => sink.received.length).toBeGreaterThan(2);
    expect(events()).toEqual([]);
    up = true;
    await delivered();
    expect(events()).toHaveLength(1);
  });
});

describe('an invalid definition', () => {
  it('holds back no notice, but a submission waits until the definition says whether form data is sent', async () => {
    const form = await database.addForm();
    await database.addRow(form, 'form-created');
    await database.addRow(form, 'form-submitted');
    let broken = true;
    start({
      definitions: {
        async find(_tenant, id) {
          if (broken) throw new Problem('definition-invalid');
          return { id, name: 'Permit' };
        },
      },
    });
    await expect.poll(() => database.undelivered()).toBe(1);
    expect(events()[0]?.body).toMatchObject({ name: 'form-created', payload: { form: { definition: null } } });
    await sleep(200);
    expect(events()).toHaveLength(1);
    broken = false;
    await delivered();
    expect(events()[1]?.body).toMatchObject({ payload: { form: { definition: { name: 'Permit' } } } });
  });
});

describe('a crash', () => {
  async function spawnDispatcher(): Promise<ChildProcess> {
    const script = new URL('../../../test/support/outbox-dispatcher.ts', import.meta.url).pathname;
    const env = { ...process.env, DATABASE_URL: database.url, SINK_URL: sink.url, PACE: '{"lease":2000}' };
    const child = spawn(process.execPath, [script], { env, stdio: 'inherit' });
    children.push(child);
    return child;
  }

  it('(kill -9) between a delivery and its settlement leads to a second delivery with the same idempotency key', async () => {
    const form = await database.addForm();
    const sequences = [await database.addRow(form, 'form-created'), await database.addRow(form, 'form-submitted')];
    let killed = false;
    let child: ChildProcess | undefined;
    sink.answer(() => {
      // The service accepts the event, but the dispatcher is killed before it gets the response.
      if (!killed) child?.kill('SIGKILL');
      killed = true;
      return undefined as never;
    });
    child = await spawnDispatcher();
    await expect.poll(() => killed).toBe(true);
    expect(await database.undelivered()).toBe(2);
    start({ pace: { lease: 60_000 } });
    await delivered();
    expect(keys().map(sequenceOf)).toEqual([sequences[0], sequences[0], sequences[1]].map(Number));
    expect(keys()[0]).toBe(keys()[1]);
  });

  it('of dispatchers at random times loses nothing and reorders nothing', async () => {
    const forms = await Promise.all(Array.from({ length: 60 }, () => database.addForm()));
    for (const kind of ['form-created', 'form-locked', 'form-unlocked', 'form-submitted'] as const)
      for (const form of forms) await database.addRow(form, kind, { facts: { deleteOn: new Date().toISOString() } });
    sink.answer(async () => {
      await sleep(20);
      return undefined;
    });
    for (let round = 0; round < 3; round += 1) {
      const before = sink.received.length;
      const child = await spawnDispatcher();
      await expect
        .poll(() => sink.received.length, {
          interval: 3,
        })
        .toBeGreaterThan(before + 10);
      child.kill('SIGKILL');
    }
    expect(await database.undelivered()).toBeGreaterThan(0);
    start({ pace: { lease: 2_000 } });
    await delivered();
    for (const form of forms) {
      const seen = [
        ...new Set(
          keys()
            .filter((key) => key.startsWith(form))
            .map(sequenceOf),
        ),
      ];
      expect(seen).toHaveLength(4);
      expect(seen).toEqual([...seen].sort((a, b) => a - b));
    }
  });
});

describe('an outage', () => {
  it('of the event service costs a few probes, not an attempt per row, and ends without a restart', async () => {
    const forms = await Promise.all(Array.from({ length: 300 }, () => database.addForm()));
    for (const form of forms) await database.addRow(form, 'form-created');
    const lines: string[] = [];
    let down = true;
    sink.answer(() => (down ? { status: 503 } : undefined) as undefined);
    start({ write: (line) => lines.push(line), pace: { capacity: 16, outage: { first: 50, cap: 400 } } });
    const failures = () => lines.filter((line) => line.includes('outbox delivery failed'));
    await expect.poll(failures).toHaveLength(1);
    await sleep(1_500);
    expect(sink.received.length).toBeLessThan(60);
    expect(failures()).toHaveLength(1);
    down = false;
    await delivered();
    expect(new Set(keys()).size).toBe(300);
    expect(lines.some((line) => line.includes('outbox delivery recovered'))).toBe(true);
  });

  it('of the notification service does not hold back events of forms that are subscribed', async () => {
    const waiting = await database.addForm({ channels: [{ channel: 'email', address: 'ana@example.org' }] });
    await database.addRow(waiting, 'subscribe');
    const forms = await Promise.all(Array.from({ length: 20 }, () => database.addForm()));
    for (const form of forms) await database.addRow(form, 'form-created');
    sink.answer(({ path }) => (path.startsWith('/subscription') ? { status: 500 } : undefined) as undefined);
    start();
    await expect.poll(() => database.undelivered()).toBe(1);
    expect(events()).toHaveLength(20);
  });

  it('with refused connections ends without a restart', async () => {
    const form = await database.addForm();
    await sink.down();
    await database.addRow(form, 'form-created');
    start();
    await sleep(300);
    await sink.up();
    await delivered();
    expect(events()).toHaveLength(1);
  });

  it('of Postgres ends without a restart, and deliveries during the outage are settled', async () => {
    const form = await database.addForm();
    await database.addRow(form, 'form-created');
    let taken = 0;
    sink.answer(async () => {
      taken += 1;
      if (taken === 1) await database.cut();
      return undefined;
    });
    start();
    await expect.poll(() => taken).toBe(1);
    await sleep(300);
    await database.restore();
    await delivered();
    expect(taken).toBe(1);
  });
});

it('a stop waits until the running delivery has ended and is settled', async () => {
  const form = await database.addForm();
  await database.addRow(form, 'form-created');
  sink.answer(async () => {
    await sleep(200);
    return undefined;
  });
  const dispatcher = start();
  await expect.poll(() => sink.received).toHaveLength(1);
  dispatchers = [];
  await dispatcher.stop();
  expect(await database.undelivered()).toBe(0);
});

it('a nudge delivers a row immediately that would otherwise wait for the next poll', async () => {
  const form = await database.addForm();
  await database.addRow(form, 'form-created');
  const dispatcher = start({ pace: { poll: { min: 60_000, max: 60_000 } } });
  await delivered();
  // This pause leaves time for the poll that follows a delivery.
  await sleep(500);
  await database.addRow(form, 'form-submitted');
  await sleep(200);
  expect(events()).toHaveLength(1);
  dispatcher.nudge();
  await delivered();
  expect(events()).toHaveLength(2);
});

it('depth, lag and failing rows are exported by kind, without removals that are not due', async () => {
  const form = await database.addForm();
  const dispatcher = start();
  sink.answer(() => ({ status: 503 }) as never);
  await database.addRow(form, 'form-created', { at: new Date(Date.now() - 100_000) });
  await database.addRow(form, 'remove-subscriber', { at: new Date(Date.now() + 100_000) });
  const failed = /formgate_outbox_deliveries_total\{kind="form-created",outcome="failed"\} [1-9]/;
  await expect.poll(() => dispatcher.metrics.registry.metrics()).toMatch(failed);
  const text = await dispatcher.metrics.registry.metrics();
  expect(text).toContain('formgate_outbox_undelivered{kind="form-created"} 1');
  expect(text).toMatch(/formgate_outbox_oldest_undelivered_seconds\{kind="form-created"\} 1[0-5]\d/);
  expect(text).toContain('formgate_outbox_undelivered{kind="remove-subscriber"} 0');
  expect(text).toContain('formgate_outbox_repeatedly_failed{kind="form-created"} 0');
});
