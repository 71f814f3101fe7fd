// Tests that calls go to the configured address of the identity provider, regardless of the hosts in its responses.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FaultServer, startFaultServer } from '../../test/support/fault-server.ts';
import { createTenantIssuers } from '../service/auth/tenant-issuers.ts';
import { createProviderAddresses, type Provider } from './provider-addresses.ts';

const inside = createProviderAddresses({
  accessUrl: 'http://keycloak:8080/auth',
  accessPublicUrl: 'https://access.example.org/auth',
});

const demo = { realm: 'demo', issuer: null };

describe('a URL from the identity provider', () => {
  const path = '/realms/demo/clients-registrations/openid-connect/7b1e?x=1';

  it.each([
    ['by its public address', `https://access.example.org/auth${path}`],
    ['by the address of calls', `http://keycloak:8080/auth${path}`],
    ['by any host that it was called at', `http://10.0.0.7:8080/auth${path}`],
  ])('is called at ACCESS_SERVICE_URL: %s', (_, url) => {
    expect(inside.rebase(demo, url).href).toBe(`http://keycloak:8080/auth${path}`);
  });

  it('is rebased if the two addresses have different paths', () => {
    const addresses = createProviderAddresses({
      accessUrl: 'http://keycloak:8080',
      accessPublicUrl: 'https://access.example.org/auth',
    });
    expect(addresses.rebase(demo, `https://access.example.org/auth${path}`).href).toBe(`http://keycloak:8080${path}`);
    expect(addresses.rebase(demo, `http://keycloak:8080${path}`).href).toBe(`http://keycloak:8080${path}`);
  });

  it.each([
    'https://access.example.org/other/realms/demo',
    'https://access.example.org/auth/../admin/realms/demo',
    'https://access.example.org/auth/realms/../admin',
    'https://access.example.org/auth/realms/other/protocol',
    'https://access.example.org/auth/realms/demo-2/protocol',
    'https://access.example.org/auth/realms/demo/../other/protocol',
    'file:///auth/realms/demo',
    'not a URL',
  ])('is not called if it lies outside the identity provider: %s', (url) => {
    expect(() => inside.rebase(demo, url)).toThrow(TypeError);
  });
});

it('an issuer has the public address', () => {
  expect(inside.issuer('demo').href).toBe('https://access.example.org/auth/realms/demo');
  expect(createProviderAddresses({ accessUrl: 'https://access.example.org' }).issuer('a b').href).toBe(
    'https://access.example.org/realms/a%20b',
  );
});

it('http is allowed only if one of the addresses is http', () => {
  expect(inside.insecure).toBe(true);
  expect(createProviderAddresses({ accessUrl: 'https://access.example.org/auth' }).insecure).toBe(false);
});

describe('a call', () => {
  let server: FaultServer;
  beforeAll(async () => {
    server = await startFaultServer((response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end());
  });
  afterAll(() => server.close());

  it('goes to ACCESS_SERVICE_URL and follows no redirect', async () => {
    const addresses = createProviderAddresses({
      accessUrl: `${server.url}/auth`,
      accessPublicUrl: 'https://access.example.org/auth',
    });
    const request = { method: 'GET', headers: {}, body: null, redirect: 'manual' as const };
    const response = await addresses.fetch(demo, 'https://access.example.org/auth/realms/demo/x', request, 'token');
    expect(response.status).toBe(302);
    expect(server.requests.map(({ target }) => target)).toEqual(['/auth/realms/demo/x']);
  });
});

describe('an issuer that the operator has mapped to a tenant', () => {
  const mapped = createProviderAddresses({
    accessUrl: 'http://keycloak:8080/auth',
    accessPublicUrl: 'https://access.example.org/auth',
    tenantIssuers: createTenantIssuers([
      ['town', 'https://login.example.org'],
      ['city', 'https://other.example.org/realms/city'],
    ]),
  });

  it('is the issuer of the tenant’s realm, exactly as given', () => {
    expect(mapped.mappedIssuer('town')).toBe('https://login.example.org');
    expect(mapped.mappedIssuer('demo')).toBeUndefined();
    expect(mapped.issuer('city').href).toBe('https://other.example.org/realms/city');
    expect(mapped.issuer('demo').href).toBe('https://access.example.org/auth/realms/demo');
  });

  it('leads back to the realm only if it matches exactly', () => {
    expect(mapped.realmOf('https://login.example.org')).toBe('town');
    expect(mapped.realmOf('https://login.example.org/')).toBeUndefined();
    expect(mapped.realmOf('https://access.example.org/auth/realms/demo')).toBe('demo');
    expect(mapped.realmOf('https://access.example.org/auth/realms/town')).toBeUndefined();
  });

  const [town, city] = [mapped.providerOf('town'), mapped.providerOf('city')];

  it('is called at its own host, also if its paths are those of the platform’s identity provider', () => {
    expect([town, city, mapped.providerOf('demo')]).toEqual([
      { realm: 'town', issuer: 'https://login.example.org' },
      { realm: 'city', issuer: 'https://other.example.org/realms/city' },
      demo,
    ]);
    for (const [provider, url] of [
      [town, 'https://login.example.org/token?x=1'],
      [city, 'https://other.example.org/realms/city/token'],
    ] as const)
      expect(mapped.rebase(provider, url).href).toBe(url);
    expect(mapped.rebase(demo, 'https://access.example.org/auth/realms/demo/token').host).toBe('keycloak:8080');
  });

  it.each(['https://evil.example/token', 'http://login.example.org/token', 'https://login.example.org:8443/token'])(
    'does not allow %s, which has another origin',
    (url) => {
      expect(() => mapped.rebase(town, url)).toThrow(TypeError);
    },
  );

  // A tenant's identity provider must not make the token handler send secrets to that of another tenant, or as a key
  // set return the keys of the platform.
  it.each<[string, Provider, string]>([
    ['at the issuer of another tenant', town, 'https://other.example.org/realms/city/token'],
    ['in the tenant’s realm of the platform', town, 'https://access.example.org/auth/realms/town/token'],
    ['in another realm of the platform', town, 'https://access.example.org/auth/realms/demo/token'],
    ['from the platform, at a mapped issuer', demo, 'https://login.example.org/token'],
  ])('does not allow a URL of another identity provider: %s', (_, provider, url) => {
    expect(() => mapped.rebase(provider, url)).toThrow(TypeError);
  });

  it('is not called any more after the operator has removed it', () => {
    const former = { realm: 'demo', issuer: 'https://former.example.org' };
    expect(() => mapped.rebase(former, 'https://former.example.org/token')).toThrow(TypeError);
  });
});
