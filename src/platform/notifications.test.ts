import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  answerJson,
  type Behaviour,
  type FaultServer,
  hang,
  inTurn,
  reset,
  startFaultServer,
} from '../../test/support/fault-server.ts';
import { createPlatformCalls, type PlatformCalls } from '../../test/support/platform-calls.ts';
import { createKnownType } from './known-type.ts';
import { createNotifications, type Notifications } from './notifications.ts';
import { isUndecided } from './platform-error.ts';
import { watchType } from './watch-type.ts';

const tenantId = 'urn:example:platform:tenant-service:v2:/tenants/65f0';
const id = '66aa00bb11cc22dd33ee44ff';
const subscriber = {
  id,
  urn: `urn:example:platform:notification-service:v1:/subscribers/${id}`,
  tenantId,
  addressAs: null,
  channels: [{ channel: 'email', address: 'ana@example.org', verified: null }],
};
const code = { tenantId, subscriberId: id, channel: 'email', address: 'ana@example.org', code: 'K2TPX4' };

/** The response of a proxy that does not know the service's path. */
const notHere: Behaviour = (response) => void response.writeHead(404).end('<html>not here</html>');

let server: FaultServer;
let calls: PlatformCalls;
let notifications: Notifications;

const sent = () => {
  const { method, target, body } = server.requests.at(-1) ?? { method: '', target: '', body: '' };
  const url = new URL(target, 'http://x');
  return { method, path: url.pathname, query: Object.fromEntries(url.searchParams), body: body && JSON.parse(body) };
};

function connect(options: Parameters<typeof createPlatformCalls>[0] = {}): void {
  calls = createPlatformCalls(options);
  notifications = createNotifications(calls.client('notifications', server.url), createKnownType(calls.options));
}

/** Replaces the client with one that has a short timeout. */
async function connectHastily(): Promise<void> {
  await calls.close();
  connect({ timeoutMs: 500 });
}

beforeEach(async () => {
  server = await startFaultServer(answerJson({}));
  connect();
});

afterEach(async () => {
  await calls.close();
  await server.close();
});

describe('subscribing', () => {
  const request = {
    tenantId,
    typeId: 'form-status-updates',
    userId: 'urn:example:platform:form-service:v1:/forms/5d0c',
    addressAs: 'Ana',
    channels: [{ channel: 'email', address: 'Ana@Example.org' }],
    criteria: { description: 'Permit', correlationId: 'urn:example:platform:form-service:v1:/forms/5d0c' },
  };

  it('names the tenant in the query and returns the address as the service stores it', async () => {
    server.behave(answerJson({ subscriberId: id, typeId: 'form-status-updates', criteria: null, subscriber }));
    const subscription = await notifications.subscribe(request);
    expect(subscription.subscriber).toEqual({
      id,
      urn: subscriber.urn,
      addressAs: undefined,
      channels: [{ channel: 'email', address: 'ana@example.org', verified: false }],
    });
    const { tenantId: _, typeId: __, ...body } = request;
    expect(sent()).toEqual({
      method: 'POST',
      path: '/types/form-status-updates/subscriptions',
      query: { tenantId },
      body,
    });
  });

  it('is sent once: the caller repeats it with the same userId', async () => {
    server.behave(reset);
    await expect(notifications.subscribe(request)).rejects.toMatchObject({ kind: 'unreachable' });
    expect(server.requests).toHaveLength(1);
  });
});

it('codes can be checked although the mail server of the service is slow, so that each code gets 504', async () => {
  const request = { tenantId, subscriberId: id, channel: 'email', address: 'ana@example.org' };
  server.behave(answerJson({}, 504));
  for (let nth = 0; nth < 12; nth += 1)
    await expect(notifications.sendCode({ ...request, reason: 'x' })).rejects.toMatchObject({
      ...{ kind: 'failed', upstreamStatus: 504, mayHaveProcessed: true },
    });
  expect(server.requests).toHaveLength(12);
  server.behave(answerJson({ verified: true }));
  expect(await notifications.checkCode({ ...request, code: 'RIGHT' })).toBe(true);
});

describe('while the service does not know the type', () => {
  const request = { tenantId, typeId: 'form-status-updates', userId: 'u', channels: [], criteria: {} };
  const text = () => calls.base.registry.metrics();
  const lines = (message: string) => calls.captured.text().split(message).length - 1;

  it('subscribing is unavailable: logged once, counted each time, and shown until the type is known', async () => {
    server.behave(answerJson({ errorMessage: 'Notification Type not found' }, 404));
    for (let nth = 0; nth < 3; nth += 1)
      await expect(notifications.subscribe(request)).rejects.toMatchObject({
        kind: 'unregistered',
        status: 503,
        headers: { 'Retry-After': '30' },
        message: expect.stringContaining('has not read the registration of this service yet'),
      });
    expect(lines('registration unknown to the service')).toBe(1);
    expect(lines('platform call failed')).toBe(0);
    expect(await text()).toMatch(
      /formgate_dependency_failures_total\{dependency="notifications",kind="unregistered"[^}]*\} 3/,
    );
    expect(await text()).toContain('formgate_platform_registration_unknown{dependency="notifications"} 1');
    server.behave(answerJson({ subscriberId: id, typeId: 'form-status-updates', subscriber }));
    await notifications.subscribe(request);
    expect(lines('registration known to the service')).toBe(1);
    expect(await text()).toContain('formgate_platform_registration_unknown{dependency="notifications"} 0');
  });

  it('a watch asks again until the service has every event of the type, then less often', async () => {
    const events = [{ namespace: 'form-service', name: 'form-locked' }];
    const [old, current] = [{ namespace: 'form-service', name: 'form-created', templates: {} }, events[0]];
    const stopping = new AbortController();
    server.behave(
      inTurn(
        answerJson({ errorMessage: 'no' }, 404),
        answerJson({}, 500),
        answerJson({ events: [old] }),
        answerJson({ events: [old, current], codeChannels: ['email'] }),
      ),
    );
    const known = createKnownType(calls.options);
    expect(known.codeChannels()).toBeUndefined();
    const watch = watchType({
      ...{ notifications, known, typeId: 'form-status-updates', events, signal: stopping.signal },
      tenants: { any: async () => ({ id: tenantId, name: 'Demo', realm: 'demo' }) },
      pace: { known: 3_600_000, unknown: 1 },
    });
    await expect.poll(() => lines('registration known to the service')).toBe(1);
    expect(lines('registration unknown to the service')).toBe(1);
    expect(lines('registration outdated at the service')).toBe(1);
    expect(known.codeChannels()).toEqual(['email']);
    expect(sent()).toMatchObject({ method: 'GET', path: '/types/form-status-updates', query: { tenantId } });
    expect(await text()).toContain('formgate_platform_registration_unknown{dependency="notifications"} 0');
    stopping.abort();
    await watch;
  });

  it('a 404 of a proxy is a failure of the service', async () => {
    server.behave(notHere);
    await expect(notifications.subscribe(request)).rejects.toMatchObject({ kind: 'failed', status: 502 });
  });
});

describe('sending a code', () => {
  it('names channel, returned address and reason', async () => {
    server.behave(answerJson({ sent: true }));
    const { code: _, ...to } = code;
    await notifications.sendCode({ ...to, reason: 'to continue your application' });
    expect(sent()).toEqual({
      method: 'POST',
      path: `/subscribers/${id}`,
      query: { tenantId },
      body: {
        operation: 'send-code',
        channel: 'email',
        address: 'ana@example.org',
        reason: 'to continue your application',
      },
    });
  });

  it('that the service does not confirm is an error', async () => {
    server.behave(answerJson({ sent: false }));
    await expect(notifications.sendCode({ ...code, reason: 'x' })).rejects.toMatchObject({ kind: 'failed' });
  });
});

describe('checking a code', () => {
  it.each([true, false])('returns %s if the service does', async (verified) => {
    server.behave(answerJson({ verified }));
    expect(await notifications.checkCode(code)).toBe(verified);
    expect(sent().body).toEqual({
      operation: 'check-code',
      channel: 'email',
      address: 'ana@example.org',
      code: 'K2TPX4',
    });
  });

  it('with an idempotency key is retried, and is undecided if any try may have reached the service', async () => {
    const check = { ...code, idempotencyKey: 'check-1' };
    server.behave(inTurn(reset, answerJson({}, 502), answerJson({ verified: true })));
    expect(await notifications.checkCode(check)).toBe(true);
    expect(server.requests.map(({ headers }) => headers['idempotency-key'])).toEqual(Array(3).fill('check-1'));
    server.behave(inTurn(reset, answerJson({}, 429)));
    const lost = await notifications.checkCode(check).catch((error: unknown) => error);
    expect(isUndecided(lost, 'notifications')).toBe(true);
    expect(isUndecided(lost, 'directory')).toBe(false);
  });

  it.each([
    ['rejects it', answerJson({ errorMessage: 'no' }, 400), false],
    ['denies access', answerJson({}, 403), false],
    ['refuses more calls', answerJson({}, 429), false],
    ['fails', answerJson({}, 500), true],
    ['says nothing', answerJson({}), true],
    ['resets the connection', reset, true],
    ['hangs', hang, true],
  ])('if the service %s, its outcome is unknown: $2', async (_, fault, isUnknown) => {
    server.behave(fault);
    if (fault === hang) await connectHastily();
    const error = await notifications.checkCode(code).catch((thrown: unknown) => thrown);
    expect(isUndecided(error, 'notifications')).toBe(isUnknown);
  });

  it('has no unknown outcome if nothing listens', async () => {
    await server.close();
    const error = await notifications.checkCode(code).catch((thrown: unknown) => thrown);
    expect(isUndecided(error, 'notifications')).toBe(false);
  });

  it.each(['', ' ', '\t\n'])('throws for an empty code without a call', async (empty) => {
    await expect(notifications.checkCode({ ...code, code: empty })).rejects.toMatchObject({ slug: 'code-required' });
    expect(server.requests).toHaveLength(0);
  });

  it('is an error, and not a wrong code, if the response does not say', async () => {
    for (const answer of [{}, { verified: null }, { verified: 'false' }, { code: 'NEW123' }, []]) {
      server.behave(answerJson(answer));
      await expect(notifications.checkCode(code)).rejects.toMatchObject({ kind: 'failed' });
    }
  });

  it.each([
    ['rejects it', answerJson({ errorMessage: 'no code sent yet' }, 400), 'rejected'],
    ['does not know the subscriber', answerJson({ errorMessage: 'no' }, 404), 'rejected'],
    ['denies access', answerJson({}, 403), 'denied'],
    ['is not reached, because a proxy responds with 404', notHere, 'failed'],
    ['fails', answerJson({}, 500), 'failed'],
    ['resets the connection', reset, 'unreachable'],
    ['hangs', hang, 'timeout'],
  ])('is an error, and not a wrong code, if the service %s', async (_, fault, kind) => {
    server.behave(fault);
    if (fault === hang) await connectHastily();
    await expect(notifications.checkCode(code)).rejects.toMatchObject({ kind });
    expect(server.requests).toHaveLength(1);
  });
});

describe('a subscriber', () => {
  it('is removed, even if it no longer exists', async () => {
    server.behave(answerJson({ deleted: true }));
    await notifications.removeSubscriber(tenantId, id);
    expect(sent()).toMatchObject({ method: 'DELETE', path: `/subscribers/${id}`, query: { tenantId } });
    server.behave(answerJson({ errorMessage: 'no' }, 404));
    await notifications.removeSubscriber(tenantId, id);
    server.behave(answerJson({}, 500));
    await expect(notifications.removeSubscriber(tenantId, id)).rejects.toMatchObject({ kind: 'failed' });
  });

  it.each(['', '.', '..', '\ud800'])('id %j cannot change the path of the request', async (bad) => {
    await expect(notifications.removeSubscriber(tenantId, bad)).rejects.toMatchObject({ kind: 'rejected' });
    expect(server.requests).toHaveLength(0);
  });
});
