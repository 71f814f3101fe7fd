// Tests the platform server with the behaviour of the reference implementation: each row of the table in
// docs/platform.md.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { referenceBehaviour } from '../../../test/support/platform-behaviour.ts';
import { ConfigError } from '../../service/operations/config.ts';
import { createNoticeRenderer } from '../notifications/template.ts';
import { asStored } from './changes.ts';
import { readReference } from './reference-times.ts';
import { withReferenceDates } from './templates.ts';

const type = 'updates';
const notices = (events: string[]) => ({
  id: type,
  name: 'Updates',
  description: 'Updates',
  publicSubscribe: false,
  subscriberRoles: [],
  channels: ['email'],
  events: events.map((name) => ({
    namespace: 'reference',
    name,
    templates: { email: { subject: `{{event.payload.subject}}`, body: 'on {{formatDate event.timestamp}}' } },
  })),
});
const mib = 1_048_576;

let platform: TestPlatform;
let database: pg.Pool;
let tokens: { configuration: string; notification: string; event: string };
let now = Date.now();
const hour = 3_600_000;

beforeAll(async () => {
  platform = await startTestPlatform({
    env: { ...referenceBehaviour, REFERENCE_CACHE: 'PT10H' },
    clock: () => new Date(now),
  });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  // The tokens are valid for ten years, so that they stay valid when a test moves the clock by hours.
  const claims = { exp: Math.floor(now / 1_000) + 10 * 365 * 24 * 3_600 };
  const token = (service: string, ...roles: string[]) => roleToken(platform.access, { [service]: roles }, { claims });
  const [configuration, notification, event] = await Promise.all([
    token('configuration-service', 'configured-service', 'configuration-admin'),
    token('notification-service', 'subscription-app', 'subscription-admin'),
    token('event-service', 'event-sender'),
  ]);
  tokens = { configuration, notification, event };
  await core('notification-service', { operation: 'UPDATE', update: { [type]: notices(['changed']) } });
});
afterAll(async () => {
  await database.end();
  await platform.close();
});

const configurationUrl = (path: string) => `${platform.url}/configuration/v2/configuration/${path}`;
const tenantQuery = () => `?tenantId=${encodeURIComponent(platform.tenant.id)}`;
const core = (name: string, body: object) =>
  call(configurationUrl(`platform/${name}`), { method: 'PATCH', token: tokens.configuration, body });
const write = (path: string, body: object) =>
  call(`${configurationUrl(path)}${tenantQuery()}`, { method: 'PATCH', token: tokens.configuration, body });
const read = async (path: string) =>
  (await call(`${configurationUrl(path)}/latest${tenantQuery()}`, { token: tokens.configuration })).body;
const notification = (method: string, path: string, body?: object) =>
  call(`${platform.url}/subscription/v1/${path}${tenantQuery()}`, { method, token: tokens.notification, body });
const sendEvent = (subject: string, context: object = {}) =>
  call(`${platform.url}/event/v1/events${tenantQuery()}`, {
    method: 'POST',
    token: tokens.event,
    body: { namespace: 'reference', name: 'changed', timestamp: new Date(now), payload: { subject }, context },
  });
const mails = (subject: string) => platform.mailbox.messages().filter((mail) => mail.subject === subject);

async function subscribe(userId: string): Promise<string> {
  const channels = [{ channel: 'email', address: `${userId}@example.org` }];
  const criteria = { correlationId: userId };
  const { status, text, body } = await notification('POST', `types/${type}/subscriptions`, {
    ...{ userId, channels, criteria },
  });
  if (status !== 200) throw new Error(`not subscribed: ${status} ${text}`);
  return (body as { subscriberId: string }).subscriberId;
}

describe('the notification service', () => {
  it('creates two subscribers for one user id if the requests overlap, and finds one later', async () => {
    let user = 0;
    let ids: string[] = [];
    // Repeats the test if needed, because on a busy machine requests that are sent together may not overlap.
    const subscribeTogether = async () => {
      user += 1;
      ids = await Promise.all(Array.from({ length: 6 }, () => subscribe(`overlap-${user}`)));
      return new Set(ids).size;
    };
    await expect.poll(subscribeTogether).toBeGreaterThan(1);
    expect(ids).toContain(await subscribe(`overlap-${user}`));
  });

  it('caches core configuration for ten hours, including that a type does not exist', async () => {
    const known = async (id: string) => (await notification('GET', `types/${id}`)).status;
    expect(await known(type)).toBe(200);
    expect(await known('late')).toBe(404);
    await core('notification-service', { operation: 'UPDATE', update: { late: { ...notices([]), id: 'late' } } });
    expect(await known('late')).toBe(404);
    now += 9 * hour;
    expect(await known('late')).toBe(404);
    now += 2 * hour;
    expect(await known('late')).toBe(200);
  });

  it('delivers an event twice if it is sent twice', async () => {
    await subscribe('twice');
    const body = { correlationId: 'twice', context: { idempotencyKey: 'k1' } };
    const send = () =>
      call(`${platform.url}/event/v1/events${tenantQuery()}`, {
        method: 'POST',
        token: tokens.event,
        body: {
          ...body,
          ...{ namespace: 'reference', name: 'changed', timestamp: new Date(now), payload: { subject: 'twice' } },
        },
      });
    await Promise.all([send(), send()]);
    await expect.poll(() => mails('twice').length).toBe(2);
  });

  it('formats dates with `format` only, in its own time zone and locale', async () => {
    const render = withReferenceDates(async (_tenant, template, data) => createNoticeRenderer()(template, data));
    const shown = async (call: string) => {
      const data = { tenant: {}, event: { payload: { at: '2026-09-04T17:00:00Z' } }, subscriber: {} };
      return (await render('tenant', { subject: '', body: call } as never, data as never)).text;
    };
    expect(await shown('{{formatDate event.payload.at timeStyle="none" format="DDD"}}')).toBe('September 4, 2026');
    expect(await shown('{{{formatDate event.payload.at locale="fr-CA" format="yyyy-MM-dd"}}}')).toBe('2026-09-04');
    expect(await shown('{{formatDate event.payload.at timeStyle="none"}}')).toBe('Sep 4, 2026, 11:00 AM MDT');
    expect(await shown('timeStyle="none"')).toBe('timeStyle="none"');
  });
});

describe('the configuration service', () => {
  it('loses one of two concurrent updates of a document', async () => {
    const updates = ['a', 'b', 'c'].map((key) =>
      write('shared/document', { operation: 'UPDATE', update: { [key]: 1 } }),
    );
    for (const { status } of await Promise.all(updates)) expect(status).toBe(200);
    expect(Object.keys((await read('shared/document')) as object).length).toBeLessThan(3);
  });

  it('responds 500 to a body above 1 MiB', async () => {
    const replace = (length: number) =>
      write('large/document', { operation: 'REPLACE', configuration: ['x'.repeat(length)] });
    expect((await replace(mib - 100)).status).toBe(200);
    expect((await replace(mib)).status).toBe(500);
  });

  it('renames members META_x to $x, and drops objects with _bsontype', async () => {
    const configuration = { META_ref: 1, list: [{ _bsontype: 'ObjectId' }, { META_a: { b: 2 } }], c: { _bsontype: 1 } };
    await write('stored/document', { operation: 'REPLACE', configuration });
    expect(await read('stored/document')).toEqual({ $ref: 1, list: [{ $a: { b: 2 } }] });
    expect(asStored({ _bsontype: 'x' })).toEqual({});
  });

  it('lists all entries, but without an order after the first page, and fails above 16 MiB', async () => {
    const names = Array.from({ length: 18 }, (_, nth) => `entry-${String(nth).padStart(2, '0')}`);
    await Promise.all(names.map((name) => write(`listed/${name}`, { operation: 'REPLACE', configuration: [name] })));
    const list = (query: string) =>
      call(`${configurationUrl('listed')}${tenantQuery()}&includeActive=true&${query}`, {
        token: tokens.configuration,
      });
    interface Page {
      results: { name: string }[];
      page: { next: string | null };
    }
    const found: string[] = [];
    for (let after = ''; ; ) {
      const { results, page } = (await list(`top=6${after && `&after=${after}`}`)).body as Page;
      found.push(...results.map(({ name }) => name));
      if (!page.next) break;
      after = page.next;
    }
    expect(found.slice(0, 6)).toEqual(names.slice(0, 6));
    expect(found).not.toEqual(names);
    expect(found.toSorted()).toEqual(names);
    await database.query(
      `UPDATE configuration_revisions SET configuration = to_json(repeat('x', ${mib})) WHERE namespace = 'listed'`,
    );
    expect((await list('top=12')).status).toBe(200);
    expect((await list('top=18')).status).toBe(500);
  });
});

it('events are handled one at a time', async () => {
  const slow = await startTestPlatform({
    env: { ...referenceBehaviour, REFERENCE_EVENT_TIME: 'PT0.1S' },
    access: platform.access,
    mailbox: platform.mailbox,
  });
  const own = platform;
  try {
    platform = slow;
    await core('notification-service', { operation: 'UPDATE', update: { [type]: notices(['changed']) } });
    await notification('POST', `types/${type}/subscriptions`, {
      ...{ userId: 'all', channels: [{ channel: 'email', address: 'all@example.org' }] },
    });
    const began = performance.now();
    await Promise.all(['one', 'two', 'three', 'four'].map((subject) => sendEvent(subject)));
    const all = () => ['one', 'two', 'three', 'four'].flatMap(mails).length;
    await expect.poll(all, { interval: 10 }).toBe(4);
    expect(performance.now() - began).toBeGreaterThanOrEqual(400);
  } finally {
    platform = own;
    await slow.close();
  }
});

it('an unknown PLATFORM_BEHAVIOUR is an invalid configuration; by default, the server has its own behaviour', () => {
  expect(() => readReference({ PLATFORM_BEHAVIOUR: 'referense' })).toThrow(ConfigError);
  expect(readReference({})).toBeUndefined();
  expect(readReference({ PLATFORM_BEHAVIOUR: 'default' })).toBeUndefined();
});
