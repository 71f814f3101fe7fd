import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  answerJson,
  type Behaviour,
  type FaultServer,
  type ReceivedRequest,
  sendJson,
  startFaultServer,
} from '../../test/support/fault-server.ts';
import { startTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { referenceBehaviour } from '../../test/support/platform-behaviour.ts';
import { createPlatformCalls, type PlatformCalls } from '../../test/support/platform-calls.ts';
import { type Configuration, createConfiguration } from './configuration.ts';
import { type Registered, type RegistrationPace, type RunningRegistration, startRegistration } from './registration.ts';

const core = { core: true } as const;

let services: TestPlatform;
let token: string;
/** A proxy in front of the real platform. It forwards and counts requests, and fails when a test requires it. */
let door: FaultServer;
let calls: PlatformCalls;
let configuration: Configuration;
let running: RunningRegistration[];
let service: string;
let what: Required<Registered>;
let count = 0;

const passOn = ({ method, target, headers, body }: ReceivedRequest, url = services.url) =>
  fetch(`${url}/configuration/v2${target}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': headers['content-type'] ?? 'text/plain' },
    ...(body !== '' && { body }),
  });

const forward: Behaviour = async (response, request) => {
  const answer = await passOn(request);
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
};

const patches = () =>
  door.requests.filter(({ method }) => method === 'PATCH').map(({ target, body }) => ({ target, ...JSON.parse(body) }));

async function stored(document: string): Promise<unknown> {
  return (await configuration.read('platform', document, core)).latest?.configuration;
}

function register(value: Registered, changes: Partial<RegistrationPace> = {}): RunningRegistration {
  const { urns } = services.access;
  const pace = { firstDelayMs: 20, maxDelayMs: 50, settleMs: 20, ...changes };
  const started = startRegistration({ ...calls.options, pace, configuration, urns, service }, value);
  running.push(started);
  return started;
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

beforeAll(async () => {
  services = await startTestPlatform();
  token = await services.access.serviceToken('core', 'form-service');
});
afterAll(() => services.close());

beforeEach(async () => {
  count += 1;
  service = `service-${count}`;
  const templates = { email: { subject: 'Locked', body: 'Hi' } };
  what = {
    definitions: { [`platform:${service}`]: { configurationSchema: { type: 'object' }, description: 'Definitions' } },
    roles: [{ role: 'form-admin', description: 'Administrator', inTenantAdmin: true }],
    events: [{ name: 'form-locked', description: 'Locked', payloadSchema: { type: 'object' } }],
    notificationTypes: {
      [`updates-${count}`]: {
        id: `updates-${count}`,
        name: 'Form updates',
        description: 'Updates',
        publicSubscribe: false,
        subscriberRoles: [],
        channels: ['email'],
        events: [{ namespace: service, name: 'form-locked', templates }],
      },
    },
  };
  running = [];
  calls = createPlatformCalls();
  door = await startFaultServer(forward);
  configuration = createConfiguration({ ...calls.options, client: calls.client('configuration', door.url) });
});

afterEach(async () => {
  for (const { stop } of running) stop();
  await Promise.all(running.map(({ done }) => done));
  await calls.close();
  await door.close();
});

/** Returns the state of the registration for each document, from the metric. */
async function state(): Promise<Record<string, string>> {
  const { values } = await calls.options.metrics.registrationPending.get();
  return Object.fromEntries(
    values.map(({ labels, value }) => [labels.document, value === 1 ? 'pending' : 'registered']),
  );
}

describe('registration at startup', () => {
  it('writes definitions, roles, events and notification types by UPDATE into core documents of namespace platform', async () => {
    const { done } = register(what);
    await done;
    expect(new Set(Object.values(await state()))).toEqual(new Set(['registered']));
    expect(
      patches()
        .map(({ target }) => target)
        .toSorted(),
    ).toEqual([
      '/configuration/platform/configuration-service',
      '/configuration/platform/event-service',
      '/configuration/platform/notification-service',
      '/configuration/platform/tenant-service',
    ]);
    expect(new Set(patches().map(({ operation }) => operation))).toEqual(new Set(['UPDATE']));
    expect(await stored('configuration-service')).toMatchObject(what.definitions);
    expect(await stored('tenant-service')).toMatchObject({
      [services.access.urns.service(service)]: { roles: what.roles },
    });
    const definitions = { 'form-locked': what.events[0] };
    expect(await stored('event-service')).toMatchObject({ [service]: { name: service, definitions } });
    expect(await stored('notification-service')).toMatchObject(what.notificationTypes);
  });

  it('writes nothing if everything is registered, even with defaults of the service', async () => {
    await register(what).done;
    const written = patches().length;
    await register(what).done;
    expect(patches()).toHaveLength(written);
  });

  it('writes only keys that differ, and not those of other services', async () => {
    await register(what).done;
    await configuration.update(
      'platform',
      'configuration-service',
      { [`other-${count}`]: { configurationSchema: {} } },
      core,
    );
    const before = patches().length;
    const changed = { [service]: { configurationSchema: { type: 'object' } } };
    await register({ ...what, definitions: { ...what.definitions, ...changed } }).done;
    expect(patches().slice(before)).toMatchObject([{ update: changed }]);
    expect(Object.keys(patches().at(-1)?.update)).toEqual([service]);
    expect(await stored('configuration-service')).toHaveProperty(`other-${count}`);
  });

  it('removes an event that the service no longer defines', async () => {
    const old = { name: 'form-old', description: 'Old', payloadSchema: { type: 'object' } };
    await register({ events: [...what.events, old] }).done;
    await register({ events: what.events }).done;
    const document = (await stored('event-service')) as Record<string, { definitions: object }>;
    expect(Object.keys(document[service]?.definitions ?? {})).toEqual(['form-locked']);
  });

  it('writes only documents with content', async () => {
    const { done } = register({ roles: what.roles });
    await done;
    expect(await state()).toEqual({ 'tenant-service': 'registered' });
    expect(new Set(door.requests.map(({ target }) => target))).toEqual(
      new Set(['/configuration/platform/tenant-service']),
    );
  });

  it('has the same result if many replicas start together', async () => {
    const replicas = Array.from({ length: 5 }, () => register(what));
    await Promise.all(replicas.map(({ done }) => done));
    expect(await stored('notification-service')).toMatchObject(what.notificationTypes);
    expect(await stored('tenant-service')).toMatchObject({
      [services.access.urns.service(service)]: { roles: what.roles },
    });
  });

  it('is confirmed only after it was read back', async () => {
    const { done, confirmed } = register(what, { settleMs: 100 });
    await done;
    expect(calls.captured.text()).toContain('registration written');
    expect(calls.captured.text()).not.toContain('registered at the platform');
    await confirmed;
    expect(calls.captured.text()).toContain('registered at the platform');
    const targets = new Set(door.requests.map(({ target }) => target));
    expect(targets.size).toBe(4);
    for (const target of targets) {
      const methods = door.requests.filter((request) => request.target === target).map(({ method }) => method);
      expect(methods.slice(0, 3)).toEqual(['GET', 'PATCH', 'GET']);
    }
  });

  it('is repeated until it holds, if another service undoes it although both writes succeed', async () => {
    // Another service reads the document before this service registers, and writes the document back before this
    // service gets the response to its own write.
    const urn = services.access.urns.service(service);
    const body = JSON.stringify({ operation: 'DELETE', property: urn });
    let undone = 0;
    door.behave(async (response, request) => {
      const answer = await passOn(request);
      const text = await answer.text();
      if (request.method === 'PATCH' && undone < 3) {
        undone += 1;
        await passOn({ ...request, body });
      }
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
    });
    await register({ roles: what.roles }).confirmed;
    expect(await stored('tenant-service')).toHaveProperty([urn]);
    expect(await calls.base.registry.metrics()).toMatch(
      /formgate_platform_registration_repairs_total\{document="tenant-service"[^}]*\} 3/,
    );
    expect(calls.captured.text()).toContain('registration was lost and is repaired');
  });

  it('of services that start together holds for each of them, on a platform that loses concurrent updates', async () => {
    const { access, mailbox } = services;
    const rough = await startTestPlatform({ env: referenceBehaviour, access, mailbox });
    door.behave(async (response, request) => {
      const answer = await passOn(request, rough.url);
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    });
    const names = ['one', 'two', 'three'].map((name) => `${name}-${count}`);
    const pace = { firstDelayMs: 20, maxDelayMs: 50, settleMs: 100 };
    for (const name of names) {
      const options = { ...calls.options, pace, configuration, urns: access.urns, service: name };
      running.push(startRegistration(options, { roles: what.roles, events: what.events }));
    }
    await Promise.all(running.map(({ confirmed }) => confirmed));
    // A slow writer may undo a registration after it was confirmed. The later checks detect that.
    const keys = async (document: string) => Object.keys((await stored(document)) as object).toSorted();
    await expect.poll(() => keys('event-service')).toEqual(names.toSorted());
    await expect.poll(() => keys('tenant-service')).toEqual(names.map((name) => access.urns.service(name)).toSorted());
    await rough.close();
  });

  it('is checked again later, and repaired if it was lost', async () => {
    await register({ roles: what.roles }, { checkMs: 50 }).confirmed;
    const urn = services.access.urns.service(service);
    await configuration.deleteProperty('platform', 'tenant-service', urn, core);
    await expect.poll(() => stored('tenant-service'), { interval: 20 }).toHaveProperty([urn]);
    const text = () => calls.captured.text();
    await expect.poll(() => text().match(/registration was lost and is repaired/g)).toHaveLength(1);
    expect(text()).toContain(`"keys":["${urn}"]`);
  });

  it('continues in the background until the platform is reachable', async () => {
    door.behave(answerJson({}, 500));
    const { done } = register(what);
    expect(new Set(Object.values(await state()))).toEqual(new Set(['pending']));
    await pause(100);
    const text = () => calls.base.registry.metrics();
    expect(await text()).toContain('formgate_platform_registration_pending{document="tenant-service"} 1');
    expect(await text()).toContain('formgate_platform_registration_repairs_total{document="tenant-service"} 0');
    door.behave(forward);
    await done;
    expect(new Set(Object.values(await state()))).toEqual(new Set(['registered']));
    expect(await text()).toContain('formgate_platform_registration_pending{document="tenant-service"} 0');
  });

  it('writes other documents if one is rejected', async () => {
    door.behave((response, request, index) =>
      request.target.includes('event-service') && request.method === 'PATCH'
        ? sendJson(response, { errorMessage: 'Value not valid' }, 400)
        : forward(response, request, index),
    );
    register(what);
    await expect.poll(async () => (await state())['notification-service']).toBe('registered');
    expect((await state())['event-service']).toBe('pending');
  });

  it('stops without an error', async () => {
    door.behave(answerJson({}, 503));
    const { done, stop } = register(what);
    await pause(30);
    stop();
    await done;
    await pause(50);
    const asked = door.requests.length;
    await pause(120);
    expect(door.requests.length).toBe(asked);
  });
});
