import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  answerJson,
  type Behaviour,
  type FaultServer,
  sendJson,
  startFaultServer,
} from '../../test/support/fault-server.ts';
import { createPlatformCalls, type PlatformCalls } from '../../test/support/platform-calls.ts';
import { createUrns } from '../service/urn.ts';
import { createConfiguration } from './configuration.ts';
import { createRegistration, type Registered, type Registration, type RunningRegistration } from './registration.ts';

const what: Registered = {
  definitions: { 'platform:form-service': { configurationSchema: { type: 'object' }, description: 'Definitions' } },
  roles: [{ role: 'form-admin', description: 'Administrator', inTenantAdmin: true }],
  events: [{ name: 'form-locked', description: 'Locked', payloadSchema: { type: 'object' } }],
  notificationTypes: {
    'form-status-updates': { id: 'form-status-updates', name: 'Form updates', channels: ['email'] },
  },
};

let stored: Record<string, Record<string, unknown>>;
let server: FaultServer;
let calls: PlatformCalls;
let registration: Registration;
let running: RunningRegistration | undefined;

/** Keeps what it is given, as the contract's UPDATE does. */
const keep: Behaviour = (response, { method, target, body }) => {
  const name = new URL(target, 'http://x').pathname.split('/').at(-1) ?? '';
  const current = stored[name];
  if (method === 'PATCH') {
    const next: Record<string, unknown> = { ...current };
    for (const [key, value] of Object.entries(JSON.parse(body).update as Record<string, object>))
      next[key] = { ...(next[key] as object), ...value };
    stored[name] = next;
  }
  const configuration = stored[name];
  const latest = configuration ? { revision: 0, configuration } : null;
  sendJson(response, { namespace: 'platform', name, latest, active: null });
};

const patches = () => server.requests.filter(({ method }) => method === 'PATCH');

function register(value: Registered): RunningRegistration {
  running = registration.register(value);
  return running;
}

beforeEach(async () => {
  stored = {};
  calls = createPlatformCalls();
  server = await startFaultServer(keep);
  const configuration = createConfiguration({ ...calls.options, client: calls.client('configuration', server.url) });
  registration = createRegistration({
    ...calls.options,
    configuration,
    urns: createUrns('urn:example'),
    service: 'form-service',
    firstDelayMs: 20,
    maxDelayMs: 50,
  });
});

afterEach(async () => {
  running?.stop();
  await running?.done;
  await calls.close();
  await server.close();
});

describe('registration at startup', () => {
  it('writes definitions, roles, events and notification types by UPDATE into core documents of namespace platform', async () => {
    const { done, state } = register(what);
    await done;
    expect(stored).toEqual({
      'configuration-service': what.definitions,
      'tenant-service': { 'urn:example:platform:form-service': { roles: what.roles } },
      'event-service': { 'form-service': { name: 'form-service', definitions: { 'form-locked': what.events?.[0] } } },
      'notification-service': what.notificationTypes,
    });
    for (const { target, body } of patches()) {
      expect(target).toMatch(/^\/configuration\/platform\/[a-z-]+$/);
      expect(JSON.parse(body).operation).toBe('UPDATE');
    }
    expect(Object.values(state())).toEqual(['registered', 'registered', 'registered', 'registered']);
  });

  it('writes nothing when everything stands there already', async () => {
    await register(what).done;
    const written = patches().length;
    await register(what).done;
    expect(patches()).toHaveLength(written);
  });

  it('writes only the keys that differ and leaves those of others alone', async () => {
    await register(what).done;
    stored['configuration-service'] = { ...stored['configuration-service'], other: { configurationSchema: {} } };
    const before = patches().length;
    const definitions = { ...what.definitions, 'form-service': { configurationSchema: { type: 'object' } } };
    await register({ ...what, definitions }).done;
    expect(
      patches()
        .slice(before)
        .map(({ body }) => JSON.parse(body).update),
    ).toEqual([{ 'form-service': { configurationSchema: { type: 'object' } } }]);
    expect(stored['configuration-service']).toHaveProperty('other');
  });

  it('accepts defaults that the service wrote into what it keeps', async () => {
    await register(what).done;
    const definition = stored['configuration-service']?.['platform:form-service'] as object;
    stored['configuration-service'] = { 'platform:form-service': { ...definition, anonymousRead: false } };
    const before = patches().length;
    await register(what).done;
    expect(patches()).toHaveLength(before);
  });

  it('touches only documents that there is something for', async () => {
    await register({ roles: what.roles ?? [] }).done;
    expect(Object.keys(stored)).toEqual(['tenant-service']);
  });

  it('returns at once and goes on in the background until the platform is there', async () => {
    server.behave(answerJson({}, 500));
    const { done, state } = register(what);
    expect(new Set(Object.values(state()))).toEqual(new Set(['pending']));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await calls.base.registry.metrics()).toContain('platform_registration_pending{document="tenant-service"} 1');
    server.behave(keep);
    await done;
    expect(new Set(Object.values(state()))).toEqual(new Set(['registered']));
    expect(await calls.base.registry.metrics()).toContain('platform_registration_pending{document="tenant-service"} 0');
  });

  it('does not hold up other documents when one is refused', async () => {
    server.behave((response, request, count) =>
      request.target.includes('event-service') && request.method === 'PATCH'
        ? sendJson(response, { errorMessage: 'Value not valid' }, 400)
        : keep(response, request, count),
    );
    const { state } = register(what);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(state()).toMatchObject({ 'event-service': 'pending', 'notification-service': 'registered' });
  });

  it('stops at once when told, without an error', async () => {
    server.behave(answerJson({}, 503));
    const { done, stop } = register(what);
    await new Promise((resolve) => setTimeout(resolve, 30));
    stop();
    await done;
    const asked = server.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 120));
    expect(server.requests.length).toBe(asked);
  });
});
