import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { testServiceSecret } from '../../test/support/access.ts';
import { type CapturedLog, captureLog } from '../../test/support/captured-log.ts';
import { startTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { type Revisions, revisionsOf } from '../../test/support/revisions.ts';
import { parseConfig } from '../service/operations/config.ts';
import { createMetrics, type Metrics } from '../service/operations/metrics.ts';
import { accessFields } from '../service/operations/process-fields.ts';
import { createPlatform, type Platform } from './platform.ts';
import { platformFields } from './platform-fields.ts';

const schema = z.object({ ...accessFields, ...platformFields });

let services: TestPlatform;
let platform: Platform;
let revisions: Revisions;
let captured: CapturedLog;
let metrics: Metrics;
/** Makes the names of this test unique, because data of earlier tests remains at the platform. */
let attempt: string;

function create(variables: Record<string, string> = {}): Platform {
  const env = {
    ACCESS_SERVICE_URL: services.access.url,
    DIRECTORY_URL: services.directoryUrl,
    CLIENT_SECRET: testServiceSecret('urn:example:platform:form-service'),
    ...variables,
  };
  const config = parseConfig(schema, env);
  metrics = createMetrics();
  return createPlatform({
    config,
    service: 'form-service',
    urns: services.access.urns,
    metrics,
    log: captured.log,
    env,
  });
}

beforeAll(async () => {
  services = await startTestPlatform();
});
afterAll(() => services.close());
beforeEach(() => {
  attempt = randomUUID();
  captured = captureLog();
  platform = create();
  revisions = revisionsOf(platform.client('configuration', services.access.urns.service('configuration-service:v2')));
});
afterEach(() => platform.close());

describe('the platform clients, wired from one configuration', () => {
  it('reach a real platform: token from realm core, services by the directory', async () => {
    expect(await platform.tenants.byRealm('demo')).toEqual(services.tenant);
    expect(await platform.tenants.byName('other-town')).toEqual(services.otherTenant);
    expect(await platform.tenants.byId('urn:example:platform:tenant-service:v2:/tenants/none')).toBeUndefined();
    expect(captured.text()).toBe('');
  });

  it('write, revise, pin, read and delete a configuration', async () => {
    const { configuration } = platform;
    const place = { tenantId: services.tenant.id };
    const [ns, name] = ['data-register', `New towns ${attempt.slice(0, 8)}`];
    expect(await configuration.activeOrLatest(ns, name, place)).toBeUndefined();
    expect(await configuration.read(ns, name, place)).toEqual({ latest: undefined, active: undefined });
    expect(await configuration.replace(ns, name, ['Banff'], place)).toMatchObject({
      revision: 0,
      configuration: ['Banff'],
    });
    expect(await revisions.create(ns, name, place)).toMatchObject({ revision: 1 });
    await configuration.replace(ns, name, ['Banff', 'Jasper'], place);
    expect(await configuration.setActiveRevision(ns, name, 0, place)).toBe(0);
    expect(await configuration.read(ns, name, place)).toMatchObject({
      latest: { revision: 1, configuration: ['Banff', 'Jasper'] },
      active: { revision: 0, configuration: ['Banff'] },
    });
    expect(await configuration.activeOrLatest(ns, name, place)).toMatchObject({ configuration: ['Banff'] });
    expect(await configuration.latest(ns, name, place)).toMatchObject({ revision: 1 });
    expect(await revisions.read(ns, name, 1, place)).toEqual(['Banff', 'Jasper']);
    expect(await revisions.read(ns, name, 9, place)).toBeUndefined();
    const history = await revisions.list(ns, name, place);
    expect(history.map(({ revision }) => revision)).toEqual([1, 0]);
    expect(await configuration.remove(ns, name, place)).toBe(true);
    expect(await configuration.remove(ns, name, place)).toBe(false);
    expect(await configuration.activeOrLatest(ns, name, place)).toBeUndefined();
  });

  it('list all pages of a namespace with pinned revisions', async () => {
    const { configuration } = platform;
    const place = { tenantId: services.tenant.id };
    const namespace = `listed-${attempt}`;
    const names = Array.from({ length: 7 }, (_, index) => `list ${index}`);
    for (const name of names) await configuration.replace(namespace, name, { name }, place);
    await configuration.setActiveRevision(namespace, 'list 3', 0, place);
    const found = await revisions.entries(namespace, place);
    expect(found.map(({ name }) => name).toSorted()).toEqual(names);
    expect(found.find(({ name }) => name === 'list 3')?.active?.configuration).toEqual({ name: 'list 3' });
    expect(found.find(({ name }) => name === 'list 4')?.active).toBeUndefined();
  });

  it('merge an update into core and delete a property', async () => {
    const { configuration } = platform;
    const core = { core: true } as const;
    const name = `merge-test-${attempt}`;
    await configuration.update('platform', name, { a: { x: 1 }, b: { y: 1 } }, core);
    await configuration.update('platform', name, { a: { z: 2 } }, core);
    const { latest } = await configuration.read('platform', name, core);
    expect(latest?.configuration).toEqual({ a: { x: 1, z: 2 }, b: { y: 1 } });
    expect(await configuration.read('platform', name, { tenantId: services.tenant.id })).toMatchObject({
      latest: undefined,
    });
    expect(await configuration.deleteProperty('platform', name, 'a', core)).toMatchObject({
      configuration: { b: { y: 1 } },
    });
  });

  it('register definitions of a service, and a second start writes nothing', async () => {
    const what = {
      definitions: { 'registered-test': { configurationSchema: { type: 'object' }, description: 'Test' } },
      roles: [{ role: 'form-admin', description: 'Administrator', inTenantAdmin: true }],
      events: [{ name: 'form-locked', description: 'Locked', payloadSchema: { type: 'object' } }],
      notificationTypes: {
        'wiring-test': {
          id: 'wiring-test',
          name: 'Wiring',
          description: 'Test',
          publicSubscribe: false,
          subscriberRoles: [],
          channels: ['email'],
          events: [
            { namespace: 'form-service', name: 'form-locked', templates: { email: { subject: 's', body: 'b' } } },
          ],
        },
      },
    };
    const first = platform.register(what);
    await first.done;
    const core = { core: true } as const;
    const before = await platform.configuration.read('platform', 'event-service', core);
    const second = platform.register(what);
    await second.done;
    expect(await platform.configuration.read('platform', 'event-service', core)).toEqual(before);
    expect(captured.lines().filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('subscribe an applicant, send a code, check it, send an event and remove the applicant', async () => {
    await platform.register({
      notificationTypes: {
        'applicant-test': {
          id: 'applicant-test',
          name: 'Applicants',
          description: 'Test',
          publicSubscribe: false,
          subscriberRoles: [],
          channels: ['email'],
          events: [
            { namespace: 'form-service', name: 'form-locked', templates: { email: { subject: 's', body: 'b' } } },
          ],
        },
      },
    }).done;
    const tenantId = services.tenant.id;
    const { notifications } = platform;
    const formUrn = `urn:example:platform:form-service:v1:/forms/${attempt}`;
    const request = {
      tenantId,
      typeId: 'applicant-test',
      userId: formUrn,
      addressAs: 'Ana',
      channels: [{ channel: 'email', address: `Ana.${attempt}@Example.org` }],
      criteria: { correlationId: formUrn },
    };
    const { subscriberId, subscriber } = await notifications.subscribe(request);
    const address = subscriber.channels[0]?.address ?? '';
    expect(address).toBe(`ana.${attempt}@example.org`);
    expect((await notifications.subscribe(request)).subscriberId).toBe(subscriberId);
    const to = { tenantId, subscriberId, channel: 'email', address };
    await notifications.sendCode({ ...to, reason: 'to go on' });
    const mail = await services.mailbox.waitFor((message) => message.to.includes(address));
    const code = /\b[CDEHKMPRTUWXY0-9]{6,}\b/.exec(mail.text)?.[0] ?? '';
    expect(await notifications.checkCode({ ...to, code: 'WRONG0' })).toBe(false);
    expect(await notifications.checkCode({ ...to, code })).toBe(true);
    await platform.events.send({
      namespace: 'form-service',
      name: 'form-locked',
      timestamp: new Date().toISOString(),
      correlationId: request.userId,
      context: { formId: attempt, idempotencyKey: `wiring-${attempt}` },
      tenantId,
      payload: { deleteOn: new Date().toISOString() },
    });
    await notifications.removeSubscriber(tenantId, subscriberId);
    await notifications.removeSubscriber(tenantId, subscriberId);
    expect(captured.text()).not.toContain(code);
    expect(captured.text().toLowerCase()).not.toContain(address);
  });

  it('preload the tenants, and do not reject if that fails', async () => {
    await platform.preload();
    const lost = create({ DIRECTORY_URL: 'http://127.0.0.1:9' });
    onTestFinished(() => lost.close());
    await lost.preload();
    await expect(lost.tenants.byRealm('demo')).rejects.toMatchObject({ service: 'directory', kind: 'unreachable' });
  });

  it('report that the identity provider denies an account with a wrong secret', async () => {
    const wrong = create({ CLIENT_SECRET: 'not the secret' });
    onTestFinished(() => wrong.close());
    await expect(wrong.events.send({ ...Object.create(null), payload: {} })).rejects.toMatchObject({
      service: 'identity-provider',
      kind: 'denied',
    });
  });

  it('prefer a DIR_ variable to the directory', async () => {
    const moved = create({ DIR_PLATFORM_EVENT_SERVICE_V1: 'http://127.0.0.1:9/event/v1' });
    onTestFinished(() => moved.close());
    await expect(moved.events.send({ ...Object.create(null), payload: {} })).rejects.toMatchObject({
      service: 'events',
      kind: 'unreachable',
    });
  });

  it('by default treat responses as fresh for 60 s and limit a call to 10 s', () => {
    const env = { ACCESS_SERVICE_URL: 'http://x/auth', DIRECTORY_URL: 'http://x/', CLIENT_SECRET: 'secret-secret' };
    expect(parseConfig(schema, env)).toMatchObject({ PLATFORM_CACHE_TTL: 60_000, PLATFORM_TIMEOUT: 10_000 });
  });

  it('reject a configuration without directory or secret, and name both', () => {
    expect(() => parseConfig(schema, { ACCESS_SERVICE_URL: 'http://x/auth' })).toThrow(
      /DIRECTORY_URL.*\n.*CLIENT_SECRET/,
    );
  });
});
