// Tests templates that take too much time or memory. They must be rejected, and must not affect other tenants.
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { samplesOf } from '../../../test/support/metric-growth.ts';
import {
  type Answered,
  call,
  roleToken,
  startTestPlatform,
  type TestPlatform,
} from '../../../test/support/platform.ts';
import { turnsOf } from '../../../test/support/stopwatch.ts';
import type { Tenant } from '../../service/auth/identity.ts';

let platform: TestPlatform;
let log: CapturedLog;
let token: string;
let database: pg.Pool;

const home = 'configuration/v2/configuration/platform/notification-service';
const query = (tenant: Tenant) => `?tenantId=${encodeURIComponent(tenant.id)}`;
const list = Array.from({ length: 150 }, (_, nth) => ({ nth }));
const nested = (depth: number, inner = 'x') =>
  `${'{{#each @root.event.payload.list}}'.repeat(depth)}${inner}${'{{/each}}'.repeat(depth)}`;
const typeOf = (id: string, body: string) => ({
  [id]: {
    ...{ id, name: id, channels: ['email'] },
    events: [{ namespace: 'test', name: id, templates: { email: { subject: id, body } } }],
  },
});

function write(tenant: Tenant, update: object): Promise<Answered> {
  return call(`${platform.url}/${home}${query(tenant)}`, {
    method: 'PATCH',
    token,
    body: { operation: 'UPDATE', update },
  });
}

/** Stores notification types without checking their templates, as an older version did. */
async function store(tenant: Tenant, types: object): Promise<void> {
  const id = tenant.id.split('/').at(-1);
  const key = ['platform', 'notification-service'];
  await database.query(
    'INSERT INTO configurations (tenant, namespace, name) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [id, ...key],
  );
  await database.query(
    `INSERT INTO configuration_revisions VALUES ($1, $2, $3, 0, now(), now(), $4)
     ON CONFLICT (tenant, namespace, name, revision) DO UPDATE SET configuration = excluded.configuration`,
    [id, ...key, JSON.stringify(types)],
  );
}

async function subscribe(tenant: Tenant, typeId: string, address: string): Promise<void> {
  const path = `${platform.url}/subscription/v1/types/${typeId}/subscriptions${query(tenant)}`;
  const body = { addressAs: 'Ana', channels: [{ channel: 'email', address }] };
  expect(await call(path, { method: 'POST', token, body })).toMatchObject({ status: 200 });
}

async function send(tenant: Tenant, name: string): Promise<void> {
  const body = { namespace: 'test', name, timestamp: '2026-08-20T17:00:00Z', tenantId: tenant.id, payload: { list } };
  expect(await call(`${platform.url}/event/v1/events`, { method: 'POST', token, body })).toMatchObject({ status: 200 });
}

const waiting = async () =>
  (await database.query<{ n: number }>('SELECT count(*)::integer AS n FROM deliveries')).rows[0]?.n;
const notices = async (outcome: string) =>
  (await samplesOf(platform.metricsUrl, 'formgate_notices_total'))[`outcome="${outcome}"`] ?? 0;

beforeAll(async () => {
  log = captureLog();
  platform = await startTestPlatform({ log: log.log });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  token = await roleToken(platform.access, {
    'configuration-service': ['configured-service'],
    'event-service': ['event-sender'],
    'notification-service': ['subscription-app'],
  });
});

afterEach(async () => {
  await database.query('DELETE FROM subscriptions');
  await database.query('DELETE FROM deliveries');
});

afterAll(async () => {
  await database.end();
  await platform.close();
});

describe('a template that cannot work', () => {
  it.each([
    ['is malformed', '{{#if x}}', /is malformed: Parse error on line 1/],
    ['nests nine each', nested(9), /nests more than 4 blocks that repeat/],
    [
      'nests other blocks that repeat',
      '{{#a}}{{#b}}{{#c}}{{#d}}{{#e}}{{/e}}{{/d}}{{/c}}{{/b}}{{/a}}',
      /nests more than 4/,
    ],
    ['is too long', 'x'.repeat(70_000), /is longer than 65536 characters/],
  ])('because it %s is refused when it is written, with a pointer to the template', async (_what, body, detail) => {
    expect(await write(platform.tenant, typeOf('bad', body))).toMatchObject({
      status: 400,
      body: {
        errors: [{ pointer: '/update/bad/events/0/templates/email/body', detail: expect.stringMatching(detail) }],
      },
    });
  });

  it('that was stored by an older version does not block changes of other types', async () => {
    await store(platform.tenant, typeOf('old', '{{#if x}}'));
    expect(await write(platform.tenant, typeOf('good', 'Hello'))).toMatchObject({ status: 200 });
    expect(await write(platform.tenant, typeOf('deep', `{{#if a}}${nested(4)}{{/if}}`))).toMatchObject({ status: 200 });
  });
});

describe('a stored template that takes too much', () => {
  it.each([
    ['time', nested(9), 'takes too much'],
    ['text', nested(2, 'x'.repeat(100)), 'renders to more than'],
    ['text beyond every string', nested(4, 'x'.repeat(2_000)), 'renders to more than'],
    ['stack', '{{#*inline "a"}}{{> a}}{{/inline}}{{> a}}', 'recurses without end'],
  ])('%s loses its notice once, the log says why, and the service goes on', async (_what, body, why) => {
    const before = await notices('unrendered');
    await store(platform.tenant, typeOf('hostile', body));
    await subscribe(platform.tenant, 'hostile', 'victim@example.org');
    await send(platform.tenant, 'hostile');
    await expect.poll(() => notices('unrendered')).toBeGreaterThan(before);
    await expect.poll(waiting).toBe(0);
    const [line = ''] = log
      .text()
      .split('\n')
      .filter((text) => text.includes('notice not rendered'))
      .slice(-1);
    expect(line).toContain(why);
    expect(line).not.toContain('victim@');
  });

  it('does not delay the mail of another tenant by more than a moment', async () => {
    await store(platform.tenant, typeOf('slow', nested(6)));
    await store(platform.otherTenant, typeOf('quick', 'Hello'));
    await Promise.all(
      Array.from({ length: 30 }, (_, nth) => subscribe(platform.tenant, 'slow', `slow${nth}@example.org`)),
    );
    await subscribe(platform.otherTenant, 'quick', 'quick@example.org');
    const before = await notices('unrendered');
    await send(platform.tenant, 'slow');
    await expect.poll(waiting).toBeGreaterThan(20);
    await send(platform.otherTenant, 'quick');
    await platform.mailbox.waitFor(({ to }) => to === 'quick@example.org');
    // Each template takes a second, so most of the thirty notices must still be pending.
    expect((await notices('unrendered')) - before).toBeLessThan(10);
  });

  it('never blocks the event loop', async () => {
    const piece = fc.constantFrom(
      '{{#each @root.event.payload.list}}',
      '{{#if this}}',
      '{{#with @root}}',
      '{{title}}',
      '{{',
      'x',
    );
    const pieceLists = fc.sample(fc.array(piece, { minLength: 6, maxLength: 14 }), { numRuns: 8, seed: 1 });
    const generated = pieceLists.map((pieces) => {
      const closing = pieces
        .map((one) => /^\{\{#(\w+)/.exec(one)?.[1])
        .filter((name) => name !== undefined)
        .toReversed();
      return pieces.join('') + closing.map((name) => `{{/${name}}}`).join('');
    });
    await store(platform.tenant, typeOf('slow', 'Hello'));
    await subscribe(platform.tenant, 'slow', 'generated@example.org');
    const done = async () => (await notices('unrendered')) + (await notices('delivered'));
    const { longest } = await turnsOf(async () => {
      // Few generated templates take long.
      for (const body of [nested(6), nested(4), ...generated]) {
        const before = await done();
        await store(platform.tenant, typeOf('slow', body));
        await send(platform.tenant, 'slow');
        await expect.poll(done, { interval: 20 }).toBeGreaterThan(before);
      }
    });
    // Rendering a template in the main process would block the event loop much longer.
    expect(longest).toBeLessThan(1_500);
  });
});
