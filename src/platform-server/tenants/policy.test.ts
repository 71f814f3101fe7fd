// Tests which tenants a caller may see, with and without a token.
import { describe, expect, it } from 'vitest';
import { createExchange, refusal } from '../../../test/support/express-exchange.ts';
import type { Caller } from '../../service/auth/identity.ts';
import { nameOrRealm, onlyVisibleTenant } from './policy.ts';

describe('a caller without a token', () => {
  it.each([
    ['?name=Demo', 'passes'],
    ['?realm=demo', 'passes'],
    ['?name=Demo&realm=demo', 'passes'],
    ['', 'unauthenticated'],
    ['?name=', 'unauthenticated'],
    ['?realm=', 'unauthenticated'],
    ['?id=65f0c2a9e4b0a1d2c3f4a5b6', 'unauthenticated'],
  ])('who asks for tenants with the query "%s": %s', async (query, outcome) => {
    expect((await refusal(nameOrRealm, createExchange({ url: `/tenants${query}` })))?.slug ?? 'passes').toBe(outcome);
  });

  it('is admitted without credentials', () => {
    expect(nameOrRealm).toMatchObject({ name: 'nameOrRealm', admits: ['none'] });
    expect(onlyVisibleTenant(undefined)).toBeUndefined();
  });
});

describe('a caller with a token', () => {
  const core: Caller = {
    ...{ subject: 's', name: 'Service', issuer: 'https://access.example.org', realm: 'core', clientId: 'app' },
    ...{ isCore: true, roles: new Set<string>() },
  };
  const id = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';

  it('of a tenant sees only that tenant', () => {
    const tenant = { id, name: 'Demo', realm: 'demo' };
    expect(onlyVisibleTenant({ ...core, isCore: false, realm: 'demo', tenant })).toBe('65f0c2a9e4b0a1d2c3f4a5b6');
  });

  it('of core sees all tenants', () => {
    expect(onlyVisibleTenant(core)).toBeUndefined();
  });
});
