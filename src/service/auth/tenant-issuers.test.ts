// Tests TENANT_ISSUERS, and bearer tokens of issuers that the operator has mapped to tenants.
import type { Server, ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { createHttpServer } from '../../../test/support/http-server.ts';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { ConfigError, parseConfig } from '../operations/config.ts';
import { createMetrics } from '../operations/metrics.ts';
import { accessFields, processRules } from '../operations/process-fields.ts';
import { withRules } from '../operations/settings-rules.ts';
import { createBearerVerifier } from './identity.ts';
import { createSigningKeys } from './signing-keys.ts';
import { createKeysUrl, createTenantIssuers, noTenantIssuers, realmOfIssuer } from './tenant-issuers.ts';

const schema = withRules(z.object(accessFields), ...processRules.slice(0, 1));
const access = { ACCESS_SERVICE_URL: 'https://access.example.org/auth' };
const parse = (TENANT_ISSUERS: string) => parseConfig(schema, { ...access, TENANT_ISSUERS }).TENANT_ISSUERS;
function problemsOf(text: string): string[] {
  try {
    parse(text);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ name, problem }) => `${name} ${problem}`);
  }
}

describe('TENANT_ISSUERS', () => {
  it('maps the realms of tenants to issuers, which are kept exactly', () => {
    const issuers = parse(' town=https://login.example.org/ , city=https://login.example.com/x/v2.0,');
    expect(issuers.issuerOf('town')).toBe('https://login.example.org/');
    expect(issuers.issuerOf('city')).toBe('https://login.example.com/x/v2.0');
    expect(issuers.realmOf('https://login.example.org/')).toBe('town');
    expect(issuers.realmOf('https://login.example.org')).toBeUndefined();
    expect(issuers.issuerOf('demo')).toBeUndefined();
  });

  it('may have spaces around each part, empty items, and issuers with equals signs', () => {
    const issuers = parse(' , town = https://login.example.org/a=b/c= , ,city=https://login.example.com');
    expect(issuers.issuers).toEqual(['https://login.example.org/a=b/c=', 'https://login.example.com']);
    expect(issuers.issuerOf('town')).toBe('https://login.example.org/a=b/c=');
  });

  it.each([
    '',
    'town=https://login.example.org',
    'town=http://localhost:3000/oidc',
    'town=http://127.0.0.1:1/x',
    'town=http://[::1]:1/x',
    `${'a'.repeat(50)}=https://login.example.org`,
    '.town-1_x.=https://login.example.org/x=y/z',
  ])('may be %j', (text) => {
    expect(problemsOf(text)).toEqual([]);
  });

  it.each([
    ['https://login.example.org', 'must be the realm'],
    ['=https://login.example.org', 'must be the realm'],
    ['core=https://login.example.org', 'must be the realm'],
    ['a/b=https://login.example.org', 'must be the realm'],
    ['..=https://login.example.org', 'must be the realm'],
    [`${'a'.repeat(51)}=https://login.example.org`, 'must be the realm'],
    ['to wn=https://login.example.org', 'must be the realm'],
    ['town=', 'https URL'],
    ['town=login.example.org', 'https URL'],
    ['town=http://login.example.org', 'https URL'],
    ['town=javascript:alert(1)', 'https URL'],
    ['town=ftp://localhost/x', 'https URL'],
    ['town=https://me:pw@login.example.org', 'without credentials'],
    ['town=https://me@login.example.org', 'without credentials'],
    ['town=https://:pw@login.example.org', 'without credentials'],
    ['town=https://login.example.org/?x=1', 'without credentials'],
    ['town=https://login.example.org/#x', 'without credentials'],
    ['town=https://login.example.org/town?', 'without credentials'],
    ['town=https://login.example.org/town#', 'without credentials'],
    ['town=https://login.microsoftonline.com/{tenantid}/v2.0', 'exactly'],
    ['town=HTTPS://login.example.org', 'exactly'],
    ['town=https://login.example.org:443/x', 'exactly'],
    ['town=https://login.example.org/a/../b', 'exactly'],
    ['town=https://a.example,town=https://b.example', 'realm town again'],
    ['town=https://a.example,city=https://a.example', 'another realm to city'],
    ['town=https://access.example.org/auth/realms/demo', 'must not map realms of ACCESS_SERVICE_URL'],
  ])('must not be %j', (text, problem) => {
    expect(problemsOf(text)).toEqual([expect.stringContaining(problem)]);
  });

  it('has all its problems reported together, without the issuers', () => {
    const problems = problemsOf('core=https://a.example,town=http://canary.example,city=https://b.example');
    expect(problems).toEqual([
      expect.stringContaining('TENANT_ISSUERS item 1: must be the realm'),
      expect.stringContaining('TENANT_ISSUERS item 2: must have an issuer'),
    ]);
    expect(problems.join()).not.toContain('canary');
  });
});

it('no tenant has another issuer by default', () => {
  expect([noTenantIssuers.issuers, noTenantIssuers.issuerOf('town'), noTenantIssuers.realmOf('')]).toEqual([
    [],
    undefined,
    undefined,
  ]);
});

describe('the realm of an issuer', () => {
  const mapped = createTenantIssuers([['town', 'https://login.example.org/x']]);
  const of = (issuer: string) => realmOfIssuer(issuer, 'https://access.example.org/auth', mapped);

  it('is the mapped one, or that in its path at the platform’s identity provider', () => {
    expect(mapped.issuers).toEqual(['https://login.example.org/x']);
    expect(of('https://login.example.org/x')).toBe('town');
    expect(of('https://access.example.org/auth/realms/demo')).toBe('demo');
  });

  it.each([
    'https://access.example.org/auth/realms/town',
    'https://access.example.org/auth/realmsx/demo',
    'https://evil.example/https://access.example.org/auth/realms/demo',
    'https://login.example.org/x/',
    '',
  ])('is unknown for %j', (issuer) => {
    expect(of(issuer)).toBeUndefined();
  });
});

describe('the URL of the keys', () => {
  let server: Server;
  let issuer: string;
  let asked: string[];
  let respond: (response: ServerResponse) => void;

  beforeAll(async () => {
    server = createHttpServer((request, response) => {
      asked.push(request.url ?? '');
      respond(response);
    });
    issuer = `http://127.0.0.1:${await listenOnLoopback(server)}/town`;
  });
  afterAll(() => closeServer(server));
  beforeEach(() => {
    asked = [];
    respond = (response) => void response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }));
  });
  afterEach(() => vi.restoreAllMocks());

  const create = (name = issuer) =>
    createKeysUrl('https://access.example.org/auth', createTenantIssuers([['town', name]]));

  it('of a realm at the platform’s identity provider is found without a request', async () => {
    const path = 'protocol/openid-connect/certs';
    expect(await create()('demo')).toBe(`https://access.example.org/auth/realms/demo/${path}`);
    expect(await create()('a/b')).toBe(`https://access.example.org/auth/realms/a%2Fb/${path}`);
    expect(await createKeysUrl('https://a.example')('town')).toBe(`https://a.example/realms/town/${path}`);
    expect(asked).toEqual([]);
  });

  it('of a mapped issuer is discovered once an hour', async () => {
    const urlOf = create();
    const began = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(began);
    expect([await urlOf('town'), await urlOf('town')]).toEqual([`${issuer}/keys`, `${issuer}/keys`]);
    expect(asked).toEqual(['/town/.well-known/openid-configuration']);
    clock.mockReturnValue(began + 3_600_002);
    // Wait, because the cache reads the clock at most once per millisecond.
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect([await urlOf('town'), asked.length]).toEqual([`${issuer}/keys`, 2]);
  });

  it('of a mapped issuer that moved is discovered after an hour, although its keys are fetched more often', async () => {
    const urlOf = create();
    const began = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(began);
    await urlOf('town');
    respond = (response) => void response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/moved` }));
    const found: string[] = [];
    for (const minutes of [25, 50, 75]) {
      clock.mockReturnValue(began + minutes * 60_000);
      // Wait, because the cache reads the clock at most once per millisecond.
      await new Promise((resolve) => setTimeout(resolve, 5));
      found.push(await urlOf('town'));
    }
    expect(found).toEqual([`${issuer}/keys`, `${issuer}/keys`, `${issuer}/moved`]);
  });

  it('of a mapped issuer is discovered over a new connection each time', async () => {
    const connections = vi.fn();
    server.on('connection', connections);
    onTestFinished(() => void server.off('connection', connections));
    for (let nth = 0; nth < 3; nth += 1) await create()('town');
    expect([asked.length, connections.mock.calls.length]).toEqual([3, 3]);
  });

  it('of a mapped issuer is unknown if its discovery document is larger than a mebibyte', async () => {
    const document = JSON.stringify({ issuer, jwks_uri: `${issuer}/keys`, more: 'x'.repeat(1_048_576) });
    respond = (response) => void response.end(document);
    await expect(create()('town')).rejects.toThrow();
  });

  it('of an issuer that ends with a slash is discovered below this issuer', async () => {
    respond = (response) =>
      void response.end(JSON.stringify({ issuer: `${issuer}/`, jwks_uri: `${issuer}/keys`, more: true }));
    expect(await create(`${issuer}/`)('town')).toBe(`${issuer}/keys`);
    expect(asked).toEqual(['/town/.well-known/openid-configuration']);
  });

  it.each([
    ['an error', 500, {}, 'the identity provider responded with 500'],
    ['a redirect', 302, {}, 'the identity provider responded with 302'],
    ['another success', 203, {}, 'the identity provider responded with 203'],
    ['another issuer', 200, { issuer: 'https://evil.example' }, 'names another issuer'],
    ['keys at another host', 200, { jwks_uri: 'https://evil.example/keys' }, 'another origin'],
    ['keys that are no URL', 200, { jwks_uri: 'keys' }, 'Invalid URL'],
    ['no keys', 200, { jwks_uri: undefined }, 'jwks_uri'],
    ['no issuer', 200, { issuer: undefined }, 'issuer'],
  ])('of a mapped issuer is unknown if discovery finds %s', async (_, status, changes, message) => {
    const text = JSON.stringify({ issuer, jwks_uri: `${issuer}/keys`, ...changes });
    respond = (response) => void response.writeHead(status, { location: `${issuer}/elsewhere` }).end(text);
    await expect(create()('town')).rejects.toThrow(message);
    expect(asked).toHaveLength(1);
  });

  it('of a mapped issuer is unknown if discovery takes longer than 10 s', async () => {
    const limit = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(AbortSignal.abort(new Error('late')));
    await expect(create()('town')).rejects.toThrow('late');
    expect(limit.mock.calls).toEqual([[10_000]]);
  });
});

describe('a bearer token of a mapped issuer', () => {
  const audience = 'urn:example:platform:form-service';
  const town = { id: 'urn:example:platform:tenant-service:v2:/tenants/town', name: 'Town', realm: 'town' };
  let server: Server;
  let issuer: string;
  /** The discovery document that the identity provider serves. */
  let document: Record<string, unknown>;
  let status: number;
  let key: CryptoKey;

  beforeAll(async () => {
    const pair = await generateKeyPair('ES256');
    key = pair.privateKey;
    const jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'k', alg: 'ES256', use: 'sig' }] };
    server = createHttpServer((request, response) => {
      const body = request.url === '/town/keys' ? jwks : document;
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    issuer = `http://127.0.0.1:${await listenOnLoopback(server)}/town`;
  });
  afterAll(() => closeServer(server));
  beforeEach(() => {
    status = 200;
    document = { issuer, jwks_uri: `${issuer}/keys` };
  });

  const verifier = () => {
    const accessUrl = 'http://127.0.0.1:1/auth';
    const tenantIssuers = createTenantIssuers([['town', issuer]]);
    const common = { log: pino({ level: 'silent' }), metrics: createMetrics() };
    return createBearerVerifier({
      signingKeys: createSigningKeys({
        ...{ urlOf: createKeysUrl(accessUrl, tenantIssuers), pace: { spacing: 20 } },
        ...common,
      }),
      ...{ accessPublicUrl: accessUrl, tenantIssuers, clientId: audience },
      tenants: { byRealm: async (realm) => (realm === 'town' ? town : undefined) },
    });
  };
  const bearer = async (iss = issuer) =>
    `Bearer ${await new SignJWT({ sub: 'alice', aud: audience })
      .setProtectedHeader({ alg: 'ES256', kid: 'k' })
      .setIssuer(iss)
      .setExpirationTime('5m')
      .sign(key)}`;

  it('is verified with the keys that discovery names, and its caller belongs to the tenant', async () => {
    const caller = await verifier().verify(await bearer(), [audience]);
    expect(caller).toMatchObject({ subject: 'alice', realm: 'town', tenant: town, isCore: false, issuer });
  });

  it.each([
    ['another spelling', () => `${issuer}/`],
    ['the realm at the platform’s identity provider', () => 'http://127.0.0.1:1/auth/realms/town'],
    ['another issuer', () => 'https://evil.example'],
  ])('is refused if it has %s', async (_, iss) => {
    await expect(verifier().verify(await bearer(iss()), [audience])).rejects.toMatchObject({ slug: 'unauthenticated' });
  });

  it.each([
    ['names another issuer', () => ({ issuer: `${issuer}/`, jwks_uri: `${issuer}/keys` }), 200],
    ['names keys on another host', () => ({ issuer, jwks_uri: 'http://127.0.0.2:1/keys' }), 200],
    ['names no keys', () => ({ issuer }), 200],
    ['fails', () => ({}), 500],
  ])('cannot be verified while discovery %s, and can be afterwards', async (_, found, code) => {
    const own = verifier();
    document = found();
    status = code;
    await expect(own.verify(await bearer(), [audience])).rejects.toMatchObject({ slug: 'unavailable' });
    status = 200;
    document = { issuer, jwks_uri: `${issuer}/keys` };
    expect(await own.verify(await bearer(), [audience])).toMatchObject({ subject: 'alice' });
  });
});
