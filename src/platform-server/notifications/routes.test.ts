import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { tooLongId } from '../../../test/support/notices.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { isReferenceRun } from '../../../test/support/platform-behaviour.ts';

let platform: TestPlatform;
let database: pg.Pool;
let logged: CapturedLog;
let app: string;
let admin: string;
let now = new Date('2026-08-20T12:00:00Z');

const type = 'form-status-updates';
const role = (...roles: string[]) => ({ 'notification-service': roles });

interface Channel {
  channel: string;
  address: string;
  verified: boolean;
}
interface Subscriber {
  id: string;
  urn: string;
  addressAs: string;
  channels: Channel[];
}
interface Subscription {
  subscriberId: string;
  typeId: string;
  criteria: unknown[];
  subscriber: Subscriber;
}

async function send(
  method: string,
  path: string,
  body?: unknown,
  token: string | null = app,
  query: Record<string, string> = {},
  headers: Record<string, string> = {},
) {
  const search = new URLSearchParams({ tenantId: platform.tenant.id, ...query });
  return call(`${platform.url}/subscription/v1/${path}?${search}`, {
    ...{ method, body, headers, token: token ?? undefined },
  });
}

const subscriptions = `types/${type}/subscriptions`;
const request = (changes: Record<string, unknown> = {}) => ({
  addressAs: 'Ana',
  channels: [{ channel: 'email', address: 'Ana@Example.org' }],
  criteria: { description: 'Permit', correlationId: 'form:1' },
  ...changes,
});

async function subscribe(changes: Record<string, unknown> = {}): Promise<Subscription> {
  const { status, body } = await send('POST', subscriptions, request(changes));
  expect(status).toBe(200);
  return body as Subscription;
}

beforeAll(async () => {
  logged = captureLog();
  platform = await startTestPlatform({ log: logged.log, clock: () => now });
  // The same clock sets the times in the tokens and verifies the tokens.
  const claims = () => ({ iat: Math.floor(now.getTime() / 1000), exp: Math.floor(now.getTime() / 1000) + 36_000 });
  app = await roleToken(platform.access, role('subscription-app'), { claims: claims() });
  admin = await roleToken(platform.access, role('subscription-admin'), { claims: claims() });
  const configurer = await roleToken(
    platform.access,
    { 'configuration-service': ['configured-service'] },
    { claims: claims() },
  );
  const update = {
    [type]: {
      id: type,
      name: 'Form updates',
      description: 'About forms',
      channels: ['email', 'sms'],
      events: [
        { namespace: 'form-service', name: 'form-locked', templates: { email: { subject: 'Locked', body: 'Locked' } } },
      ],
    },
  };
  await call(`${platform.url}/configuration/v2/configuration/platform/notification-service`, {
    method: 'PATCH',
    token: configurer,
    body: { operation: 'UPDATE', update },
  });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
});

afterAll(async () => {
  await database.end();
  await platform.close();
});

describe('types', () => {
  it('are listed and read by id; an unknown one is 404', async () => {
    const shown = {
      id: type,
      name: 'Form updates',
      publicSubscribe: false,
      subscriberRoles: [],
      channels: ['email', 'sms'],
    };
    expect((await send('GET', 'types')).body).toMatchObject([shown]);
    expect((await send('GET', `types/${type}`)).body).toMatchObject(shown);
    const { codeChannels } = (await send('GET', `types/${type}`)).body as { codeChannels?: string[] };
    expect(codeChannels).toEqual(isReferenceRun ? undefined : ['email']);
    expect((await send('GET', 'types/none')).status).toBe(404);
    expect((await send('POST', 'types/none/subscriptions', request())).status).toBe(404);
  });

  it('show no templates', async () => {
    expect((await send('GET', 'types')).text).not.toContain('template');
  });
});

describe('roles', () => {
  const one = `${subscriptions}/aaaaaaaaaaaaaaaaaaaaaaaa`;
  const subscriber = 'subscribers/aaaaaaaaaaaaaaaaaaaaaaaa';

  it('requests without a token, or with a token for another audience, are refused', async () => {
    const elsewhere = await roleToken(platform.access, role('subscription-app'), {
      audience: ['urn:example:platform:form-service'],
      claims: { exp: 2_000_000_000, iat: now.getTime() / 1000 },
    });
    for (const token of [null, elsewhere])
      for (const [method, path] of [
        ['GET', 'types'],
        ['GET', subscriber],
        ['POST', subscriber],
        ['DELETE', subscriber],
        ['GET', subscriptions],
      ] as const)
        expect((await send(method, path, method === 'POST' ? {} : undefined, token)).status).toBe(401);
  });

  it('a caller without the role gets 401 for creating, subscribing and unsubscribing, and 403 elsewhere', async () => {
    const none = await roleToken(platform.access, role('code-sender'), {
      claims: { exp: 2_000_000_000, iat: now.getTime() / 1000 },
    });
    expect((await send('POST', subscriptions, request(), none)).status).toBe(401);
    expect((await send('POST', one, {}, none)).status).toBe(401);
    expect((await send('DELETE', one, undefined, none)).status).toBe(401);
    expect((await send('DELETE', `${one}/criteria`, undefined, none, { criteria: '{}' })).status).toBe(401);
    expect((await send('DELETE', subscriber, undefined, none)).status).toBe(401);
    for (const path of ['types', `types/${type}`, subscriptions, one, subscriber])
      expect((await send('GET', path, undefined, none)).status).toBe(403);
    expect((await send('POST', subscriber, {}, none)).status).toBe(403);
  });

  it('only subscription-admin may list subscriptions and read one', async () => {
    for (const path of [subscriptions, one]) {
      expect((await send('GET', path)).status).toBe(403);
      expect((await send('GET', path, undefined, admin)).status).toBe(200);
    }
  });

  it('a core caller must name the tenant', async () => {
    expect((await call(`${platform.url}/subscription/v1/types`, { token: app })).status).toBe(400);
    expect((await send('GET', 'types', undefined, app, { tenantId: 'nonsense' })).status).toBe(400);
  });
});

describe('subscribing', () => {
  it('returns the subscription with its subscriber, whose email address is in lower case', async () => {
    const subscription = await subscribe();
    expect(subscription).toEqual({
      subscriberId: expect.stringMatching(/^[0-9a-f]{24}$/),
      typeId: type,
      criteria: [{ description: 'Permit', correlationId: 'form:1' }],
      subscriber: {
        id: subscription.subscriberId,
        urn: `urn:example:platform:notification-service:v1:/subscribers/${subscription.subscriberId}`,
        tenantId: platform.tenant.id,
        addressAs: 'Ana',
        channels: [{ channel: 'email', address: 'ana@example.org', verified: false }],
      },
    });
  });

  it('stores an address as verified only in the reference behaviour, because the request says so', async () => {
    const channels = [{ channel: 'email', address: 'claimed@example.org', verified: true }];
    expect((await subscribe({ channels })).subscriber.channels).toEqual([{ ...channels[0], verified: isReferenceRun }]);
  });

  it('creates another subscriber each time without id or userId, even with an equal address', async () => {
    expect((await subscribe()).subscriberId).not.toBe((await subscribe()).subscriberId);
  });

  it('with a known userId returns the same subscriber, ignores the sent address, and changes nothing', async () => {
    const first = await subscribe({ userId: 'form:urn:1' });
    const second = await subscribe({
      userId: 'form:urn:1',
      channels: [{ channel: 'email', address: 'other@example.org' }],
    });
    expect(second).toEqual(first);
    expect((await subscribe({ userId: 'form:urn:2' })).subscriberId).not.toBe(first.subscriberId);
  });

  it('20 concurrent requests with one userId create one subscriber', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => subscribe({ userId: 'form:race' })));
    expect(new Set(all.map(({ subscriberId }) => subscriberId)).size).toBe(1);
    expect(all.at(-1)?.criteria).toHaveLength(1);
  });

  it('with an id uses that subscriber; an unknown id is 404', async () => {
    const { subscriberId } = await subscribe();
    expect((await subscribe({ id: subscriberId, criteria: { correlationId: 'form:2' } })).criteria).toHaveLength(2);
    expect((await send('POST', subscriptions, request({ id: 'f'.repeat(24) }))).status).toBe(404);
  });

  it('again adds criteria; without criteria, the subscription matches everything, and no criteria can be added', async () => {
    const { subscriberId: id } = await subscribe();
    expect((await subscribe({ id, criteria: { context: { formId: '1' } } })).criteria).toHaveLength(2);
    expect((await subscribe({ id, criteria: {} })).criteria).toEqual([]);
    expect((await send('POST', subscriptions, request({ id }))).status).toBe(400);
    expect((await subscribe({ id, criteria: undefined })).criteria).toEqual([]);
  });

  it('criteria are added one by one, or replaced by an array, which is refused if there is no subscription yet', async () => {
    const { subscriberId: id } = await subscribe();
    const path = `${subscriptions}/${id}`;
    expect((await send('POST', path, { criteria: { correlationId: 'form:2' } })).body).toMatchObject({
      criteria: [{ correlationId: 'form:1' }, { correlationId: 'form:2' }],
    });
    expect((await send('POST', path, { criteria: [{ correlationId: 'form:3' }] })).body).toMatchObject({
      criteria: [{ correlationId: 'form:3' }],
    });
    await send('DELETE', path);
    expect((await send('POST', path, { criteria: [{ correlationId: 'form:3' }] })).status).toBe(400);
    expect((await send('GET', path, undefined, admin)).text).toBe('');
    expect((await send('POST', path, { criteria: [] })).status).toBe(400);
    expect((await send('POST', `${subscriptions}/${'f'.repeat(24)}`, { criteria: {} })).status).toBe(404);
  });

  it('a subscription ends when its last criteria are removed; removing empty criteria is 400', async () => {
    const { subscriberId: id } = await subscribe();
    await subscribe({ id, criteria: { correlationId: 'form:2' } });
    const path = `${subscriptions}/${id}/criteria`;
    const remove = (criteria: unknown) => send('DELETE', path, undefined, app, { criteria: JSON.stringify(criteria) });
    expect((await remove({})).status).toBe(400);
    expect((await send('DELETE', path)).status).toBe(400);
    expect((await remove({ correlationId: 'none' })).body).toEqual({ deleted: false });
    expect((await remove({ correlationId: 'form:2' })).body).toEqual({ deleted: true });
    expect((await remove({ correlationId: 'form:1' })).body).toEqual({ deleted: true });
    expect((await send('DELETE', `${subscriptions}/${id}`)).body).toEqual({ deleted: false });
  });

  it.each([
    { title: 'an address that is none', changes: { channels: [{ channel: 'email', address: 'nobody' }] } },
    {
      title: 'a header in an address',
      changes: { channels: [{ channel: 'email', address: 'a@example.org\r\nBcc: b@example.org' }] },
    },
    { title: 'an unknown channel', changes: { channels: [{ channel: 'pigeon', address: 'x' }] } },
    { title: 'an id of another shape', changes: { id: 'x' } },
    { title: 'criteria that are a text', changes: { criteria: 'x' } },
  ])('$title gets 400', async ({ changes }) => {
    expect((await send('POST', subscriptions, request(changes))).status).toBe(400);
  });

  it('the subscriptions of a type are listed page by page, or only those that match', async () => {
    await subscribe({ criteria: { correlationId: 'form:listed' } });
    const { body } = await send('GET', subscriptions, undefined, admin, { top: '2' });
    expect(body).toMatchObject({
      results: [{ subscriber: { addressAs: 'Ana' } }, expect.anything()],
      page: { size: 2, next: expect.any(String) },
    });
    const match = await send('GET', subscriptions, undefined, admin, {
      subscriptionMatch: '{"correlationId":"form:listed"}',
    });
    expect(match.body).toMatchObject({ page: { size: 1, next: null } });
  });

  it('subscriptions are found by members of the context of their criteria', async () => {
    const correlationId = 'form:contexts';
    const permit = await subscribe({ criteria: { correlationId, context: { definitionId: 'permit-x', step: 1 } } });
    const grant = await subscribe({ criteria: { correlationId, context: { definitionId: 'grant-x' } } });
    const found = async (match: object) => {
      const query = { subscriptionMatch: JSON.stringify(match) };
      const { body } = await send('GET', subscriptions, undefined, admin, query);
      return (body as { results: { subscriberId: string }[] }).results.map(({ subscriberId }) => subscriberId);
    };
    expect(await found({ context: { definitionId: 'permit-x' } })).toEqual([permit.subscriberId]);
    expect(await found({ correlationId, context: { definitionId: 'grant-x' } })).toEqual([grant.subscriberId]);
    expect(await found({ correlationId: 'form:other', context: { definitionId: 'grant-x' } })).toEqual([]);
    expect((await found({ correlationId })).sort()).toEqual([permit.subscriberId, grant.subscriberId].sort());
  });

  it('a correlation id that is too long for the database is refused with its place', async () => {
    const criteria = { correlationId: tooLongId };
    expect(await send('POST', subscriptions, request({ criteria }))).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/criteria/correlationId' }] },
    });
  });
});

describe('subscribers', () => {
  it('are read by id; an unknown one, and one of another tenant, is 404; a malformed id is 400', async () => {
    const { subscriber } = await subscribe();
    expect((await send('GET', `subscribers/${subscriber.id}`)).body).toEqual({
      ...subscriber,
      ...(!isReferenceRun && { pendingNotices: 0 }),
    });
    expect((await send('GET', `subscribers/${'f'.repeat(24)}`)).status).toBe(404);
    expect(
      (await send('GET', `subscribers/${subscriber.id}`, undefined, app, { tenantId: platform.otherTenant.id })).status,
    ).toBe(404);
    expect(
      (await send('DELETE', `subscribers/${subscriber.id}`, undefined, app, { tenantId: platform.otherTenant.id }))
        .status,
    ).toBe(404);
    expect((await send('GET', 'subscribers/x')).status).toBe(400);
  });

  it('removing one removes its address, subscriptions, codes and jobs, and is 404 the second time', async () => {
    const { subscriber } = await subscribe({ channels: [{ channel: 'email', address: 'removed@example.org' }] });
    await send('POST', `subscribers/${subscriber.id}`, {
      operation: 'send-code',
      channel: 'email',
      address: 'removed@example.org',
      reason: 'x',
    });
    await platform.mailbox.waitFor(({ to }) => to === 'removed@example.org');
    expect((await send('DELETE', `subscribers/${subscriber.id}`)).body).toEqual({ deleted: true });
    expect((await send('DELETE', `subscribers/${subscriber.id}`)).status).toBe(404);
    for (const table of ['subscriber_channels', 'subscriptions', 'subscription_criteria', 'codes', 'deliveries'])
      expect((await database.query(`SELECT 1 FROM ${table} WHERE subscriber_id = $1`, [subscriber.id])).rowCount).toBe(
        0,
      );
    expect(await everythingStored()).not.toContain('removed@example.org');
  });
});

/** Returns all data in the database, including jobs, as text. */
async function everythingStored(): Promise<string> {
  const { rows: tables } = await database.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  const texts = await Promise.all(
    tables.map(async ({ name }) => JSON.stringify((await database.query(`SELECT * FROM ${name}`)).rows)),
  );
  return texts.join('\n');
}

describe('codes', () => {
  const codePattern = /^[CDEHKMPRTUWXY012458]{6}$/m;
  let count = 0;

  async function newSubscriber() {
    count += 1;
    const address = `code${count}@example.org`;
    const { subscriberId } = await subscribe({ channels: [{ channel: 'email', address }] });
    const at = { channel: 'email', address };
    const operate = (body: unknown, headers: Record<string, string> = {}) =>
      send('POST', `subscribers/${subscriberId}`, body, app, {}, headers);
    const check = (code: string, key?: string) =>
      operate({ operation: 'check-code', ...at, code }, key === undefined ? {} : { 'idempotency-key': key });
    async function sendCode(): Promise<string> {
      await platform.mailbox.clear();
      expect(await operate({ operation: 'send-code', ...at, reason: 'Continue your form' })).toMatchObject({
        status: 200,
        body: { sent: true },
      });
      const { text } = await platform.mailbox.waitFor(({ to }) => to === address);
      return codePattern.exec(text)?.[0] ?? '';
    }
    return { subscriberId, at, operate, check, sendCode };
  }

  it('a code has six characters of the alphabet of codes, and is sent by email with the reason', async () => {
    const { sendCode } = await newSubscriber();
    expect(await sendCode()).toMatch(codePattern);
    expect(platform.mailbox.messages()[0]?.text).toContain('Continue your form');
  });

  it('the right code is verified once: success uses it up', async () => {
    const { sendCode, check } = await newSubscriber();
    const code = await sendCode();
    expect((await check(code)).body).toEqual({ verified: true });
    // The public platform's service accepts a code repeatedly until it expires.
    expect((await check(code)).body).toEqual({ verified: isReferenceRun });
  });

  it('the check that used a code can be repeated with its idempotency key, until another code is sent', async () => {
    const { sendCode, check } = await newSubscriber();
    const code = await sendCode();
    for (let time = 0; time < 2; time += 1) expect((await check(code, 'check-1')).body).toEqual({ verified: true });
    expect((await check('WRONG1', 'check-1')).body).toEqual({ verified: false });
    for (const key of ['check-2', undefined])
      expect((await check(code, key)).body).toEqual({ verified: isReferenceRun });
    expect((await check(code, 'check-1')).body).toEqual({ verified: true });
    await sendCode();
    expect((await check(code, 'check-1')).body).toEqual({ verified: false });
  });

  it('of 10 concurrent checks of the right code, one is verified', async () => {
    const { sendCode, check } = await newSubscriber();
    const code = await sendCode();
    const answers = await Promise.all(Array.from({ length: 10 }, () => check(code)));
    const verified = answers.filter(({ body }) => (body as { verified: boolean }).verified);
    expect(verified).toHaveLength(isReferenceRun ? 10 : 1);
  });

  it('a code is case sensitive and void after ten minutes', async () => {
    const { sendCode, check } = await newSubscriber();
    const code = await sendCode();
    if (/[A-Z]/.test(code)) expect((await check(code.toLowerCase())).body).toEqual({ verified: false });
    const before = now;
    now = new Date(now.getTime() + 600_000);
    expect((await check(code)).body).toEqual({ verified: false });
    now = new Date(before.getTime() + 599_999);
    expect((await check(code)).body).toEqual({ verified: true });
    now = before;
  });

  it('the tenth failure removes the code', async () => {
    const { sendCode, check } = await newSubscriber();
    const code = await sendCode();
    for (let failure = 1; failure <= 10; failure += 1)
      expect((await check('AAAAAA')).body).toEqual({ verified: false });
    expect((await check(code)).body).toEqual({ verified: false });
  });

  it('nine failures do not remove the code, and sending another replaces code and count', async () => {
    const { sendCode, check } = await newSubscriber();
    const first = await sendCode();
    for (let failure = 1; failure <= 9; failure += 1) await check('AAAAAA');
    const second = await sendCode();
    expect((await check(first)).body).toEqual({ verified: false });
    for (let failure = 1; failure <= 8; failure += 1) await check('AAAAAA');
    expect((await check(second)).body).toEqual({ verified: true });
  });

  it("a code works for its own subscriber's address only", async () => {
    const [one, other] = [await newSubscriber(), await newSubscriber()];
    const code = await one.sendCode();
    await other.sendCode();
    expect((await other.check(code)).body).toEqual({ verified: false });
    expect((await one.check(code)).body).toEqual({ verified: true });
  });

  it('400: no code sent yet, an empty or absent code, an unknown operation, channel or address', async () => {
    const { at, operate, check, sendCode } = await newSubscriber();
    expect((await check('AAAAAA')).status).toBe(400);
    await sendCode();
    expect((await check('')).status).toBe(400);
    expect((await operate({ operation: 'check-code', ...at })).status).toBe(400);
    expect((await operate({ operation: 'guess-code', ...at })).status).toBe(400);
    expect((await operate({ operation: 'send-code', ...at, channel: 'pigeon' })).status).toBe(400);
    expect((await operate({ operation: 'send-code', ...at, address: 'x@example.org' })).status).toBe(400);
    expect((await operate({ operation: 'send-code', ...at, address: at.address.toUpperCase() })).status).toBe(400);
  });

  it('400: sending a code by text message, which has no provider', async () => {
    const { subscriberId } = await subscribe({ channels: [{ channel: 'sms', address: '+15550100' }] });
    const answered = await send('POST', `subscribers/${subscriberId}`, {
      operation: 'send-code',
      channel: 'sms',
      address: '+15550100',
    });
    expect(answered.status).toBe(400);
    expect(answered.body).toMatchObject({ errorMessage: expect.stringContaining('no provider') });
  });

  it('10 codes an hour are sent to an address of a tenant: 429 with the remaining wait beyond it', async () => {
    const { at, operate, sendCode } = await newSubscriber();
    for (let nth = 1; nth <= 9; nth += 1) await sendCode();
    const twin = (await subscribe({ channels: [at] })).subscriberId;
    const again = { operation: 'send-code', ...at };
    expect((await send('POST', `subscribers/${twin}`, again)).status).toBe(200);
    for (const refused of [await operate(again), await send('POST', `subscribers/${twin}`, again)]) {
      expect(refused).toMatchObject({ status: 429, body: { type: 'urn:formgate:problem:too-many-requests' } });
      expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(3_600);
    }
    await (await newSubscriber()).sendCode();
    now = new Date(now.getTime() + 3_600_000);
    expect((await operate(again)).status).toBe(200);
  });

  it('a code is never stored, and neither a code nor an address appears in logs or responses', async () => {
    const { sendCode, check, at } = await newSubscriber();
    const code = await sendCode();
    expect(await everythingStored()).not.toContain(code);
    const wrong = await check(`${code}X`);
    expect(wrong.text).not.toContain(code);
    expect(logged.text()).not.toContain(code);
    expect(logged.text()).not.toContain(at.address);
  });
});
