// Tests schemas and patterns of tenants that take too much time or memory, and documents that grow with each edit.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Answered,
  call,
  roleToken,
  startTestPlatform,
  type TestPlatform,
} from '../../../test/support/platform.ts';
import { turnsOf } from '../../../test/support/stopwatch.ts';

let platform: TestPlatform;
let admin: string;
let other: string;
let sender: string;

const patch = (path: string, body: object, token = admin): Promise<Answered> =>
  call(`${platform.url}/configuration/v2/configuration/${path}`, { method: 'PATCH', token, body });
const update = (path: string, value: object, token = admin) =>
  patch(path, { operation: 'UPDATE', update: value }, token);
const replace = (path: string, configuration: unknown, token = admin) =>
  patch(path, { operation: 'REPLACE', configuration }, token);
const define = (key: string, configurationSchema: unknown, token = admin) =>
  update('platform/configuration-service', { [key]: { configurationSchema } }, token);

const trap = `${'a'.repeat(60)}!`;
/** The native engine runs this pattern, because RE2 does not support its look-ahead. */
const endless = { properties: { a: { pattern: '^(?=a)(a+)+$' } } };

beforeAll(async () => {
  platform = await startTestPlatform({ env: { BODY_LIMIT: '200000' } });
  const roles = { 'configuration-service': ['configuration-admin'] };
  admin = await roleToken(platform.access, roles, { realm: 'demo' });
  other = await roleToken(platform.access, roles, { realm: 'other' });
  sender = await roleToken(platform.access, { 'event-service': ['event-sender'] }, { realm: 'demo' });
});

afterAll(() => platform.close());

describe('a hostile pattern', () => {
  it('that RE2 supports is matched immediately', async () => {
    await define('re2:x', { properties: { a: { pattern: '^(a+)+$' } } });
    expect(await replace('re2/x', { a: trap })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/configuration/a' }] },
    });
    expect(await replace('re2/x', { a: 'a'.repeat(10_000) })).toMatchObject({ status: 200 });
  });

  it('that RE2 does not support is a 400, and does not delay concurrent writes', async () => {
    await define('endless:x', endless);
    await Promise.all([replace('plain/x', { a: 1 }, other), define('plain:x', {}, other)]);
    let writes = 0;
    const { result, longest } = await turnsOf(async () => {
      let isOver = false;
      const hostile = Promise.all(Array.from({ length: 3 }, () => replace('endless/x', { a: trap }))).finally(() => {
        isOver = true;
      });
      for (; !isOver; writes += 1) expect((await replace('plain/x', { a: writes }, other)).status).toBe(200);
      return hostile;
    });
    const [first, ...rest] = result.toSorted((one, another) => one.status - another.status);
    expect(first).toMatchObject({ status: 400, body: { detail: expect.stringContaining('takes too much time') } });
    // Edits of one document run one after another, so the later ones may time out.
    for (const { status } of rest) expect([400, 503]).toContain(status);
    expect(writes).toBeGreaterThan(5);
    // Matching a pattern in the main process would block the event loop much longer.
    expect(longest).toBeLessThan(1_500);
  });

  it('in the schema of an event rejects the events of that tenant only', async () => {
    const payloadSchema = { type: 'object', ...endless };
    const definitions = { sent: { name: 'sent', description: null, payloadSchema } };
    expect(await update('platform/event-service', { own: { name: 'own', definitions } })).toMatchObject({
      status: 200,
    });
    const event = { namespace: 'own', name: 'sent', timestamp: '2026-08-20T17:00:00Z', payload: { a: trap } };
    const post = () => call(`${platform.url}/event/v1/events`, { method: 'POST', token: sender, body: event });
    expect(await post()).toMatchObject({ status: 400, body: { errors: [{ pointer: '/payload' }] } });
    event.payload.a = 'a';
    expect(await post()).toMatchObject({ status: 200 });
  });
});

describe('a schema that cannot work', () => {
  it.each([
    ['a malformed pattern', { properties: { a: { pattern: '(' } } }],
    ['a pattern of the older syntax', { pattern: '\\_' }],
    ['a reference that leads nowhere', { $ref: '#/definitions/none' }],
  ])('because of %s is refused when it is written, with a pointer to the schema', async (_what, schema) => {
    expect(await define('broken:x', schema)).toMatchObject({
      status: 400,
      body: {
        errors: [
          { pointer: '/update/broken:x/configurationSchema', detail: expect.stringMatching(/^does not compile/) },
        ],
      },
    });
    const definitions = { sent: { name: 'sent', payloadSchema: { type: 'object', ...schema } } };
    expect(await update('platform/event-service', { broken: { name: 'broken', definitions } })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/update/broken/definitions/sent/payloadSchema' }] },
    });
  });

  it('is rejected by the schema of definitions in linear time', async () => {
    const before = process.threadCpuUsage();
    const type = Array.from({ length: 30_000 }, (_, nth) => nth);
    expect(await define('quadratic:x', { type })).toMatchObject({ status: 400 });
    const { user, system } = process.threadCpuUsage(before);
    // The test measures CPU seconds, because other processes do not add to them.
    expect((user + system) / 1e6).toBeLessThan(5);
  });
});

describe('a document', () => {
  it('cannot grow by edits beyond twice the largest body', async () => {
    const more = { list: Array.from({ length: 10_000 }, () => 'x'.repeat(12)) };
    const statuses: number[] = [];
    for (let nth = 0; nth < 4; nth += 1) statuses.push((await update('growing/x', more)).status);
    expect(statuses).toEqual([200, 200, 400, 400]);
  });

  it('cannot grow by the defaults of its schema beyond twice the largest body, and a smaller one gets them', async () => {
    const item = { type: 'object', properties: { a: { default: 'x'.repeat(100_000) } } };
    await define('defaults:x', { type: 'array', items: item });
    expect(
      await replace(
        'defaults/x',
        Array.from({ length: 600 }, () => ({})),
      ),
    ).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/configuration', detail: 'would be longer than 400000 characters' }] },
    });
    const { status, text } = await replace('defaults/x', [{}, {}, {}]);
    expect(status).toBe(200);
    expect(text.length).toBeGreaterThan(300_000);
  });
});
