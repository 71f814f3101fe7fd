// Tests who may manage registers, who may read them, and what refusals contain. The routes run without a server.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createExchange, type ExchangeOptions, refusal } from '../../../test/support/express-exchange.ts';
import { type KeyServer, type RealmKey, signToken, startKeyServer } from '../../../test/support/key-server.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { type Caller, createBearerVerifier, type Tenant } from '../../service/auth/identity.ts';
import { createSigningKeys } from '../../service/auth/signing-keys.ts';
import { createKeysUrl } from '../../service/auth/tenant-issuers.ts';
import { createRateLimits, type RateLimits } from '../../service/limits/rate-limit.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createUrns } from '../../service/urn.ts';
import { createRegisterGuards, type RegisterGuards, refuseRead, varyByCaller } from './policy.ts';
import { askConfiguration } from './store.ts';

const urns = createUrns('urn:example');
const demo: Tenant = { id: urns.tenant('demo'), name: 'Demo', realm: 'demo' };
const tenants = {
  byId: async (id: string) => (id === demo.id ? demo : undefined),
  byRealm: async (realm: string) => (realm === demo.realm ? demo : undefined),
};
const configurationAdmin = 'urn:example:platform:configuration-service:configuration-admin';

let keys: KeyServer;
let key: RealmKey;
let limits: RateLimits;
let guards: RegisterGuards;

beforeAll(async () => {
  keys = await startKeyServer();
  key = await keys.addKey('demo', 'ES256');
  const { log } = captureLog();
  const metrics = createMetrics();
  const signingKeys = createSigningKeys({ urlOf: createKeysUrl(keys.url), log, metrics });
  limits = createRateLimits({ clock: () => new Date(0), log, metrics });
  guards = createRegisterGuards({
    ...{ urns, tenants },
    verifier: createBearerVerifier({
      ...{ signingKeys, tenants, accessPublicUrl: keys.url },
      clientId: urns.service('form-service'),
    }),
    anonymousReads: limits.local({ name: 'anonymous-reads', most: 1, window: 60_000 }),
  });
});
afterAll(async () => {
  limits.close();
  await keys.close();
});

const caller = (...roles: string[]): Caller => ({
  ...{ subject: 'carla', name: 'Carla', issuer: 'https://access.example.org', realm: 'demo', clientId: 'app' },
  ...{ isCore: false, tenant: demo, roles: new Set(roles) },
});
const slug = async (guard: keyof RegisterGuards & ('bearer' | 'mayManage'), options: ExchangeOptions) =>
  (await refusal(guards[guard], createExchange(options)))?.slug ?? 'passes';

describe('a token', () => {
  it.each([
    ['form-service', 'passes'],
    ['configuration-service', 'passes'],
    ['notification-service', 'unauthenticated'],
  ])('for the %s: %s', async (audience, outcome) => {
    const token = await signToken(key, {
      ...{ iss: keys.issuer('demo'), sub: 'carla', aud: urns.service(audience) },
      exp: Math.floor(Date.now() / 1000) + 60,
    });
    expect(await slug('bearer', { headers: { authorization: `Bearer ${token}` } })).toBe(outcome);
  });
});

describe('a caller', () => {
  it.each([
    ['form-admin', true],
    [configurationAdmin, true],
    ['configuration-admin', false],
    ['intake-application', false],
    ['urn:example:platform:form-service:configuration-admin', false],
  ])('with the role %s manages registers: %s', async (role, allowed) => {
    expect(await slug('mayManage', { locals: { caller: caller(role) } })).toBe(allowed ? 'passes' : 'forbidden');
    expect(guards.isManager(caller('something', role))).toBe(allowed);
    expect(guards.isManager(caller(role))).toBe(allowed);
  });

  it('without a token or a role manages no registers', () => {
    expect(guards.isManager(undefined)).toBe(false);
    expect(guards.isManager(caller())).toBe(false);
  });

  it('calls for its own tenant', async () => {
    const exchange = createExchange({ locals: { caller: caller() } });
    expect(await refusal(guards.tenant, exchange)).toBeUndefined();
    expect(exchange.response.locals.tenant).toBe(demo);
  });
});

describe('a read without a token', () => {
  const named = (query: string) => createExchange({ url: `/registers${query}` });

  it('is for the tenant that the query names', async () => {
    const exchange = named(`?tenantId=${demo.id}`);
    expect(await refusal(guards.namedTenant, exchange)).toBeUndefined();
    expect(exchange.response.locals.tenant).toBe(demo);
    expect(guards.namedTenant.name).toBe('namedTenant');
  });

  it.each([
    ['no tenant', ''],
    ['an unknown tenant', `?tenantId=${urns.tenant('other')}`],
    ['a tenant twice', `?tenantId=${demo.id}&tenantId=${demo.id}`],
  ])('that names %s gets the refusal of a closed register', async (_what, query) => {
    const exchange = named(query);
    expect(await refusal(guards.namedTenant, exchange)).toEqual(refuseRead(undefined));
    expect(exchange.response.locals).not.toHaveProperty('tenant');
  });

  it('is limited for each client address', async () => {
    const from = (address: string) =>
      createExchange({ locals: { forwarded: { address } as Express.Locals['forwarded'] } });
    expect(await refusal(guards.anonymousReadLimit, from('192.0.2.1'))).toBeUndefined();
    expect(await refusal(guards.anonymousReadLimit, from('192.0.2.2'))).toBeUndefined();
    expect(await refusal(guards.anonymousReadLimit, from('192.0.2.1'))).toMatchObject({ slug: 'too-many-requests' });
  });
});

describe('a closed register', () => {
  it('is forbidden for a caller with a token, whom another token would not help', () => {
    expect(refuseRead(caller())).toMatchObject({ slug: 'forbidden', headers: {} });
  });

  it('asks a caller without a token to sign in', () => {
    expect(refuseRead(undefined)).toMatchObject({
      slug: 'unauthenticated',
      headers: { 'WWW-Authenticate': 'Bearer' },
    });
  });

  it('is not cached for another caller or another format', async () => {
    const exchange = createExchange();
    expect(await refusal(varyByCaller, exchange)).toBeUndefined();
    expect(exchange.response.getHeader('Vary')).toBe('Accept, Authorization');
    expect(varyByCaller.name).toBe('varyByCaller');
  });
});

it.each(['directory', 'identity-provider'] as const)(
  'a call that the %s rejected is not the fault of the client',
  async (service) => {
    const rejection = new PlatformError(service, 'rejected', { upstreamStatus: 400 });
    await expect(askConfiguration(() => Promise.reject(rejection))).rejects.toMatchObject({
      slug: 'dependency-failed',
    });
  },
);
