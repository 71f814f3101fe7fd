// Tests the platform's contracts through the clients in src/platform. The tests run against the platform server of this
// repository, or against another platform if these environment variables are set:
//   CONTRACT_DIRECTORY_URL, CONTRACT_ACCESS_URL, CONTRACT_CLIENT_ID, CONTRACT_CLIENT_SECRET, CONTRACT_TENANT (a name)
// The account needs the grants in realm core that the form service has. The suite deletes everything that it creates.
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { testServiceSecret } from '../../test/support/access.ts';
import { startTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { type Revisions, revisionsOf } from '../../test/support/revisions.ts';
import { createPlatform, type Platform } from '../platform/platform.ts';
import { PlatformError } from '../platform/platform-error.ts';
import type { Tenant } from '../service/auth/identity.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { createUrns } from '../service/urn.ts';

const { env } = process;
const isReal = env.CONTRACT_DIRECTORY_URL !== undefined;
const urns = createUrns(env.CONTRACT_URN_PREFIX ?? 'urn:example');
const unique = randomUUID().slice(0, 8);
const namespace = 'contract-suite';
const name = `entries ${unique}`;

let own: TestPlatform | undefined;
let platform: Platform;
let revisions: Revisions;
let tenant: Tenant;

beforeAll(async () => {
  own = isReal ? undefined : await startTestPlatform();
  const clientId = env.CONTRACT_CLIENT_ID ?? urns.service('form-service');
  platform = createPlatform({
    service: 'form-service',
    urns,
    metrics: createMetrics(),
    log: pino({ level: 'silent' }),
    env: {},
    config: {
      ACCESS_SERVICE_URL: own?.access.url ?? env.CONTRACT_ACCESS_URL ?? '',
      DIRECTORY_URL: own?.directoryUrl ?? env.CONTRACT_DIRECTORY_URL ?? '',
      CLIENT_ID: clientId,
      CLIENT_SECRET: env.CONTRACT_CLIENT_SECRET ?? testServiceSecret(clientId),
      PLATFORM_CACHE_TTL: 60_000,
      PLATFORM_TIMEOUT: 10_000,
    },
  });
  revisions = revisionsOf(platform.client('configuration', urns.service('configuration-service:v2')));
  const found = await platform.tenants.byName(env.CONTRACT_TENANT ?? 'Demo');
  if (!found) throw new Error('the tenant of the suite does not exist');
  tenant = found;
});

afterAll(async () => {
  const place = { tenantId: tenant.id };
  await platform.configuration.remove(namespace, name, place);
  const key = `${namespace}:${name}`;
  await platform.configuration.deleteProperty('platform', 'configuration-service', key, place);
  await platform.configuration.deleteProperty('platform', 'notification-service', typeId, { core: true });
  await platform.close();
  await own?.close();
});

const typeId = `contract-${unique}`;

const subscriberOf = (id: string) =>
  platform.client('notifications', urns.service('notification-service:v1')).request({
    operation: 'read subscriber',
    method: 'GET',
    path: `/subscribers/${id}`,
    query: { tenantId: tenant.id },
    response: z.unknown(),
    notFound: () => undefined,
  });

async function rejection(promise: Promise<unknown>): Promise<PlatformError> {
  const error = await promise.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  if (!(error instanceof PlatformError)) throw new Error('expected a PlatformError', { cause: error });
  return error;
}

describe('directory and tenants', () => {
  it('the directory resolves an API and refuses a URN without an entry', async () => {
    expect(await platform.directory.resolve(urns.service('event-service:v1'))).toMatch(/\/event\/v1$/);
    expect(await rejection(platform.directory.resolve(urns.service('no-such-service')))).toMatchObject({
      kind: 'failed',
    });
  });

  it('a tenant is the same one whether it is found by name, id or realm', async () => {
    expect(await platform.tenants.byId(tenant.id)).toEqual(tenant);
    expect(await platform.tenants.byRealm(tenant.realm)).toEqual(tenant);
    expect(await platform.tenants.byRealm(`none-${unique}`)).toBeUndefined();
  });
});

describe('configuration', () => {
  const place = () => ({ tenantId: tenant.id });

  it('a configuration that does not exist reads as empty, which is not an error', async () => {
    const { configuration } = platform;
    expect(await configuration.read(namespace, `none ${unique}`, place())).toEqual({
      latest: undefined,
      active: undefined,
    });
    expect(await configuration.activeOrLatest(namespace, `none ${unique}`, place())).toBeUndefined();
    expect(await configuration.remove(namespace, `none ${unique}`, place())).toBe(false);
  });

  it('a configuration goes through its life cycle: definition, entries, revision, pin, in-place edit, history, delete', async () => {
    const { configuration } = platform;
    const definition = {
      [`${namespace}:${name}`]: { description: 'Contract', configurationSchema: { type: 'array' } },
    };
    await configuration.update('platform', 'configuration-service', definition, place());
    expect((await configuration.replace(namespace, name, ['Red Deer'], place())).revision).toBe(0);
    expect((await revisions.create(namespace, name, place())).revision).toBe(1);
    expect(await configuration.setActiveRevision(namespace, name, 0, place())).toBe(0);
    await configuration.replace(namespace, name, ['Red Deer', 'Banff'], place());
    const { latest, active } = await configuration.read(namespace, name, place());
    expect(latest).toMatchObject({ revision: 1, configuration: ['Red Deer', 'Banff'] });
    expect(active).toMatchObject({ revision: 0, configuration: ['Red Deer'] });
    expect(await configuration.activeOrLatest(namespace, name, place())).toMatchObject({ revision: 0 });
    const history = await revisions.list(namespace, name, place());
    expect(history.map(({ revision }) => revision)).toEqual([1, 0]);
    expect(await revisions.read(namespace, name, 0, place())).toEqual(['Red Deer']);
    expect(await revisions.read(namespace, name, 9, place())).toBeUndefined();
    expect((await rejection(configuration.replace(namespace, name, { not: 'an array' }, place()))).kind).toBe(
      'rejected',
    );
    expect((await rejection(configuration.setActiveRevision(namespace, name, 9, place()))).kind).toBe('rejected');
    expect(await configuration.remove(namespace, name, place())).toBe(true);
    expect((await configuration.read(namespace, name, place())).latest).toBeUndefined();
  });

  it('a namespace is listed page by page, with the active revision if that is requested', async () => {
    const names = [1, 2, 3].map((number) => `list ${unique} ${number}`);
    const { configuration } = platform;
    for (const each of names) await configuration.replace(namespace, each, { each }, place());
    await configuration.setActiveRevision(namespace, names[1] ?? '', 0, place());
    const found = await revisions.entries(namespace, place());
    for (const each of names) await configuration.remove(namespace, each, place());
    expect(
      found.filter(({ name: each }) => names.includes(each)).map((entry) => [entry.name, entry.active?.revision]),
    ).toEqual([
      [names[0], undefined],
      [names[1], 0],
      [names[2], undefined],
    ]);
  });

  it("core's and a tenant's configuration of the same name are separate", async () => {
    const { configuration } = platform;
    const one = `core ${unique}`;
    await configuration.replace(namespace, one, { of: 'core' }, { core: true });
    expect((await configuration.read(namespace, one, place())).latest).toBeUndefined();
    expect((await configuration.read(namespace, one, { core: true })).latest?.configuration).toEqual({ of: 'core' });
    expect(await configuration.remove(namespace, one, { core: true })).toBe(true);
  });
});

describe('registration, events and notifications', () => {
  const correlationId = urns.form(unique);
  const userId = correlationId;

  it('a service registers its definitions, and registering them again changes nothing', async () => {
    const registered = {
      events: [
        { name: `contract-${unique}`, description: 'Contract', payloadSchema: { type: 'object', required: ['id'] } },
      ],
      notificationTypes: {
        [typeId]: {
          id: typeId,
          name: 'Contract',
          description: 'Contract',
          publicSubscribe: false,
          subscriberRoles: [],
          channels: ['email'],
          events: [
            {
              namespace: 'form-service',
              name: `contract-${unique}`,
              templates: { email: { subject: 'Notice', body: 'Hello {{subscriber.addressAs}}' } },
            },
          ],
        },
      },
    };
    const first = platform.register(registered);
    await first.done;
    const { latest } = await platform.configuration.read('platform', 'notification-service', { core: true });
    await platform.register(registered).done;
    const again = await platform.configuration.read('platform', 'notification-service', { core: true });
    expect(again.latest?.lastUpdated).toBe(latest?.lastUpdated);
  });

  it('subscribing the same user again finds the same subscriber, whose address is in lower case', async () => {
    const request = {
      tenantId: tenant.id,
      typeId,
      userId,
      addressAs: 'Ana',
      channels: [{ channel: 'email', address: 'Ana@Example.org' }],
      criteria: { correlationId },
    };
    const first = await platform.notifications.subscribe(request);
    const second = await platform.notifications.subscribe(request);
    expect(second.subscriberId).toBe(first.subscriberId);
    expect(first.subscriber.channels).toEqual([{ channel: 'email', address: 'ana@example.org', verified: false }]);
    expect(await subscriberOf(first.subscriberId)).toMatchObject({ addressAs: 'Ana' });
  });

  it('an event is accepted, and one that does not match its definition is rejected', async () => {
    const event = { namespace: 'form-service', name: `contract-${unique}`, timestamp: new Date().toISOString() };
    const good = {
      ...event,
      tenantId: tenant.id,
      correlationId,
      context: { idempotencyKey: unique },
      payload: { id: '1' },
    };
    await platform.events.send(good);
    await platform.events.send(good);
    expect((await rejection(platform.events.send({ ...good, payload: {} }))).kind).toBe('rejected');
    if (own) {
      const message = await own.mailbox.waitFor(({ subject }) => subject === 'Notice');
      expect(message).toMatchObject({ to: 'ana@example.org', text: expect.stringContaining('Hello Ana') });
    }
  });

  it('a code is sent and checked; a wrong one is not verified', async () => {
    const { subscriberId } = await platform.notifications.subscribe({
      tenantId: tenant.id,
      typeId,
      userId,
      channels: [],
      criteria: { correlationId },
    });
    const at = { tenantId: tenant.id, subscriberId, channel: 'email', address: 'ana@example.org' };
    expect(await rejection(platform.notifications.checkCode({ ...at, code: 'AAAAAA' }))).toMatchObject({
      upstreamStatus: 400,
    });
    await platform.notifications.sendCode({ ...at, reason: 'Contract' });
    expect(await platform.notifications.checkCode({ ...at, code: 'AAAAAA' })).toBe(false);
    if (own) {
      const { text } = await own.mailbox.waitFor(({ subject }) => subject === 'Your code');
      const code = /^[CDEHKMPRTUWXY012458]{6}$/m.exec(text)?.[0] ?? '';
      expect(await platform.notifications.checkCode({ ...at, code })).toBe(true);
    }
  });

  it('a removed subscriber is gone, and removing it again is not an error', async () => {
    const { subscriberId } = await platform.notifications.subscribe({
      tenantId: tenant.id,
      typeId,
      userId,
      channels: [],
      criteria: { correlationId },
    });
    await platform.notifications.removeSubscriber(tenant.id, subscriberId);
    expect(await subscriberOf(subscriberId)).toBeUndefined();
    await platform.notifications.removeSubscriber(tenant.id, subscriberId);
  });
});
