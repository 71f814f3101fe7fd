// Tests which callers may read, write and list configurations, and which tenant a call is for. Needs no server.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createExchange, type Exchange, refusal } from '../../../test/support/express-exchange.ts';
import { type KeyServer, signToken, startKeyServer } from '../../../test/support/key-server.ts';
import { type Caller, createBearerVerifier, type Tenant } from '../../service/auth/identity.ts';
import { createSigningKeys } from '../../service/auth/signing-keys.ts';
import { createKeysUrl } from '../../service/auth/tenant-issuers.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createUrns } from '../../service/urn.ts';
import type { Definition } from './definition.ts';
import { actorOf, type ConfigurationGuards, createConfigurationGuards, scopeOf } from './policy.ts';

const urns = createUrns('urn:example');
const demo: Tenant = { id: urns.tenant('65f0c2a9e4b0a1d2c3f4a5b6'), name: 'Demo', realm: 'demo' };
const tenants = {
  // Like the store of tenants, these functions throw if the argument is not a string.
  byId: async (id: string) => (id.startsWith('urn:') && id === demo.id ? demo : undefined),
  byRealm: async (realm: string) => (realm === demo.realm ? demo : undefined),
  byName: async (name: string) => (name.toLowerCase() === 'demo' ? demo : undefined),
};

const person = { subject: 'carla', name: 'Carla', issuer: 'https://access.example.org', clientId: 'app' };
const ofTenant = (...roles: string[]): Caller => ({
  ...{ ...person, realm: 'demo', isCore: false, tenant: demo },
  roles: new Set(roles),
});
const ofCore = (...roles: string[]): Caller => ({ ...person, realm: 'core', isCore: true, roles: new Set(roles) });

/** The definitions, keyed by scope, namespace and name. */
const definitions: Record<string, Definition> = {
  '65f0c2a9e4b0a1d2c3f4a5b6 forms public': { configurationSchema: {}, anonymousRead: true },
  // The next two entries would be found only if a route lacked a parameter.
  '65f0c2a9e4b0a1d2c3f4a5b6 forms undefined': { configurationSchema: {}, anonymousRead: true },
  '65f0c2a9e4b0a1d2c3f4a5b6 undefined public': { configurationSchema: {}, anonymousRead: true },
  '65f0c2a9e4b0a1d2c3f4a5b6 forms private': { configurationSchema: {}, anonymousRead: false },
  'core forms shared': { configurationSchema: {}, anonymousRead: true },
};
let keys: KeyServer;
let guards: ConfigurationGuards;

beforeAll(async () => {
  keys = await startKeyServer();
  const signingKeys = createSigningKeys({
    ...{ urlOf: createKeysUrl(keys.url), log: captureLog().log, metrics: createMetrics() },
  });
  const clientId = urns.service('configuration-service');
  guards = createConfigurationGuards({
    ...{ tenants, urns, verifier: createBearerVerifier({ signingKeys, accessPublicUrl: keys.url, clientId, tenants }) },
    anonymousReads: {
      name: 'anonymous-reads',
      most: 1,
      window: 60_000,
      count: () => ({ isAllowed: true, remaining: 1, reset: 60 }),
    },
    definitionOf: async (scope, namespace, name) => definitions[`${scope} ${namespace} ${name}`],
  });
});
afterAll(() => keys.close());

async function slug(guard: keyof ConfigurationGuards, caller: Caller): Promise<string> {
  return (await refusal(guards[guard], createExchange({ locals: { caller } })))?.slug ?? 'passes';
}

describe('a token', () => {
  it('may be for any audience', async () => {
    const exp = Math.floor(Date.now() / 1000) + 60;
    const claims = { iss: keys.issuer('demo'), sub: 'carla', aud: 'urn:example:platform:other-service', exp };
    const token = await signToken(await keys.addKey('demo', 'ES256'), claims);
    const exchange = createExchange({ headers: { authorization: `Bearer ${token}` } });
    expect(await refusal(guards.bearer, exchange)).toBeUndefined();
    expect(exchange.response.locals.caller).toMatchObject({ subject: 'carla', tenant: demo });
  });
});

const resolver = 'urn:example:platform:directory-service:resource-resolver';
const exporter = 'urn:example:platform:export-service:export-job';

describe('the role', () => {
  // The outcomes are in this order: read, patch, administer, list.
  it.each([
    ['configuration-admin', 'passes passes passes passes'],
    ['configuration-reader', 'passes forbidden forbidden forbidden'],
    ['configured-service', 'passes passes forbidden passes'],
    [resolver, 'passes forbidden forbidden forbidden'],
    [exporter, 'passes forbidden forbidden passes'],
    ['resource-resolver', 'forbidden forbidden forbidden forbidden'],
    ['export-job', 'forbidden forbidden forbidden forbidden'],
    ['form-admin', 'forbidden forbidden forbidden forbidden'],
  ])('%s reads, patches, administers and lists: %s', async (role, outcomes) => {
    const found: string[] = [];
    for (const guard of ['mayRead', 'mayPatch', 'mayAdminister', 'mayList'] as const)
      found.push(await slug(guard, ofTenant(role)));
    expect(found.join(' ')).toBe(outcomes);
  });

  it('configuration-admin does not list the namespaces of all tenants for a core caller', async () => {
    expect(await slug('mayList', ofCore('configuration-admin'))).toBe('forbidden');
    expect(await slug('mayList', ofCore('configured-service'))).toBe('passes');
    expect(await slug('mayList', ofCore(exporter))).toBe('passes');
    expect(guards.mayList.name).toBe(`role(configured-service, ${exporter}, configuration-admin unless core)`);
  });
});

describe('the tenant of a call', () => {
  async function found(caller: Caller, query: string) {
    const exchange = createExchange({ url: `/${query}`, locals: { caller } });
    const problem = await refusal(guards.tenantOrCore, exchange);
    return problem ?? exchange.response.locals.tenant ?? 'core';
  }

  it('is that of the caller, whatever the query names', async () => {
    expect(guards.tenantOrCore.name).toBe('tenantOrCore');
    for (const query of ['', `?tenantId=${urns.tenant('other')}`, '?tenantId='])
      expect(await found(ofTenant(), query)).toBe(demo);
  });

  it('is the one that a core caller names, or core', async () => {
    expect(await found(ofCore(), `?tenantId=${demo.id}`)).toBe(demo);
    expect(await found(ofCore(), '')).toBe('core');
  });

  it.each([
    ['is unknown', `?tenantId=${urns.tenant('other')}`],
    ['is empty', '?tenantId='],
    ['is given twice', `?tenantId=${demo.id}&tenantId=${demo.id}`],
  ])('that %s gets 400 for a core caller, and not core configuration', async (_what, query) => {
    expect(await found(ofCore(), query)).toMatchObject({
      slug: 'invalid-request',
      errors: [{ pointer: '/query/tenantId', detail: 'names no tenant' }],
    });
  });
});

describe('a read without a token', () => {
  const read = (name: string, query: string): Exchange =>
    createExchange({ url: `/${query}`, params: { namespace: 'forms', name } });
  const outcome = async (exchange: Exchange) => (await refusal(guards.anonymousRead, exchange))?.slug ?? 'passes';

  it.each([
    ['public', `?tenant=${demo.id}`, 'passes'],
    ['public', '?tenant=Demo', 'passes'],
    ['public', `?tenantId=${demo.id}`, 'passes'],
    ['public', '?tenantId=Demo', 'passes'],
    ['public', '?tenant=Other&tenantId=Demo', 'unauthenticated'],
    ['public', '?tenant=Other', 'unauthenticated'],
    ['public', '?tenant=Demo&tenant=Demo', 'unauthenticated'],
    ['public', '', 'unauthenticated'],
    ['private', '?tenant=Demo', 'unauthenticated'],
    ['absent', '?tenant=Demo', 'unauthenticated'],
  ])('of the configuration %s with the query %s: %s', async (name, query, expected) => {
    expect(await outcome(read(name, query))).toBe(expected);
  });

  it('of core configuration needs a definition of core: that of a tenant does not open it', async () => {
    expect(await outcome(read('shared', '?tenant=Demo&core'))).toBe('passes');
    expect(await outcome(read('shared', '?tenant=Demo'))).toBe('unauthenticated');
    expect(await outcome(read('public', '?tenant=Demo&core'))).toBe('unauthenticated');
    expect(await outcome(read('shared', '?core'))).toBe('unauthenticated');
  });

  it('is for the tenant that it names', async () => {
    const exchange = read('public', '?tenant=Demo');
    await outcome(exchange);
    expect(exchange.response.locals.tenant).toBe(demo);
    expect(guards.anonymousRead).toMatchObject({ name: 'anonymousRead', admits: ['none'] });
  });

  it('that names an unknown tenant has no tenant', async () => {
    const exchange = read('public', '?tenant=Other');
    await outcome(exchange);
    expect(exchange.response.locals).not.toHaveProperty('tenant');
  });

  it.each<Record<string, string>>([{ namespace: 'forms' }, { name: 'public' }])(
    'of an incomplete name is refused: %j',
    async (params) => {
      const exchange = createExchange({ url: '/?tenant=Demo', params });
      expect(await refusal(guards.anonymousRead, exchange)).toMatchObject({ slug: 'unauthenticated' });
    },
  );
});

describe('a change', () => {
  it('is stored under the last segment of the tenant’s URN, or under core', () => {
    expect(scopeOf(demo)).toBe('65f0c2a9e4b0a1d2c3f4a5b6');
    expect(scopeOf(undefined)).toBe('core');
  });

  it('records the id and the name of the caller, and nothing else', () => {
    const { response } = createExchange({ locals: { caller: ofTenant('configuration-admin') } });
    expect(actorOf(response)).toEqual({ id: 'carla', name: 'Carla' });
  });
});
