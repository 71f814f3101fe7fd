// Tests which tokens are accepted. The tokens are signed with keys that a real HTTP server publishes.
import { createHmac } from 'node:crypto';
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type KeyServer, type RealmKey, signToken, startKeyServer } from '../../../test/support/key-server.ts';
import { Problem } from '../http/problem.ts';
import { createMetrics, type Metrics } from '../operations/metrics.ts';
import { type BearerVerifier, createBearerVerifier, type Tenant } from './identity.ts';
import { createSigningKeys, type SigningKeys } from './signing-keys.ts';
import { createKeysUrl } from './tenant-issuers.ts';

const audience = 'urn:example:platform:form-service';
const start = new Date('2026-09-01T12:00:00.000Z');
const tenants: Record<string, Tenant> = {
  demo: { id: 'urn:example:platform:tenant-service:v2:/tenants/demo', name: 'Demo', realm: 'demo' },
  other: { id: 'urn:example:platform:tenant-service:v2:/tenants/other', name: 'Other', realm: 'other' },
};

let server: KeyServer;
let key: RealmKey;
let now: Date;
let metrics: Metrics;
let realmsAsked: string[];
let verifier: BearerVerifier;
let signingKeys: SigningKeys;
const { log, text } = captureLog();

beforeEach(async () => {
  server = await startKeyServer();
  key = await addKey('demo');
  now = start;
  metrics = createMetrics();
  realmsAsked = [];
  signingKeys = createSigningKeys({ urlOf: createKeysUrl(server.url), log, metrics, pace: { spacing: 20 } });
  verifier = createBearerVerifier({
    signingKeys,
    accessPublicUrl: server.url,
    clientId: audience,
    clock: () => now,
    tenants: {
      byRealm: async (realm) => {
        realmsAsked.push(realm);
        return tenants[realm];
      },
    },
  });
});
afterEach(async () => {
  await server.close();
});

/** Generates ES256 keys, because that takes less time than generating RSA keys. */
const addKey = (realm: string) => server.addKey(realm, 'ES256');
const seconds = (date: Date) => Math.floor(date.getTime() / 1000);
const claims = (changes: Record<string, unknown> = {}): JWTPayload => ({
  iss: server.issuer('demo'),
  sub: '9d1c7e2a',
  aud: [audience],
  iat: seconds(start),
  exp: seconds(start) + 300,
  typ: 'Bearer',
  azp: 'demo-app',
  ...changes,
});
const token = (changes: Record<string, unknown> = {}) => signToken(key, claims(changes));
const verify = async (jwt: string, audiences: string[] | 'any' = [audience]) =>
  verifier.verify(`Bearer ${jwt}`, audiences);

async function refusal(attempt: Promise<unknown>): Promise<Problem> {
  const error = await attempt.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  if (error instanceof Problem) return error;
  throw new Error('the token was not refused by a problem', { cause: error });
}

async function expectUnauthenticated(attempt: Promise<unknown>): Promise<void> {
  const problem = await refusal(attempt);
  expect([problem.status, problem.headers['WWW-Authenticate']]).toEqual([
    401,
    `Bearer error="invalid_token", error_description="${problem.detail}"`,
  ]);
}

function unsigned(header: object, payload: JWTPayload, signature = ''): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part(header)}.${part(payload)}.${signature}`;
}

describe('a valid token', () => {
  it('identifies a caller with subject, name, email, issuer, realm, client and tenant', async () => {
    const jwt = await token({ name: 'Alice', preferred_username: 'alice', email: 'alice@example.org' });
    expect(await verify(jwt)).toEqual({
      subject: '9d1c7e2a',
      name: 'Alice',
      email: 'alice@example.org',
      issuer: server.issuer('demo'),
      realm: 'demo',
      clientId: 'demo-app',
      isCore: false,
      tenant: tenants.demo,
      roles: new Set(),
    });
  });

  it('is named by preferred_username without a name, and by the subject without either', async () => {
    expect((await verify(await token({ preferred_username: 'alice' }))).name).toBe('alice');
    expect((await verify(await token())).name).toBe('9d1c7e2a');
    // A longer name is cut, also within a character, because it is stored with each form.
    const name = `${'é'.repeat(199)}😀`;
    expect((await verify(await token({ name }))).name).toBe(`${'é'.repeat(199)}\ufffd`);
    expect((await verify(await token({ name: 'A\0B' }))).name).toBe('A\ufffdB');
  });

  it.each<[Record<string, unknown>, boolean | undefined]>([
    [{ email: 'alice@example.org', email_verified: true }, true],
    [{ email: 'alice@example.org', email_verified: false }, undefined],
    [{ email: 'alice@example.org', email_verified: 'true' }, undefined],
    [{ email: 'alice@example.org' }, undefined],
    [{ email_verified: true }, undefined],
    [{ email: 'alice\0@example.org', email_verified: true }, undefined],
  ])('with the claims %j states a verified email address: %s', async (changes, expected) => {
    expect((await verify(await token(changes))).isEmailVerified).toBe(expected);
  });

  it.each<[Record<string, unknown>, boolean | undefined]>([
    [{ azp: 'Portal', preferred_username: 'service-account-portal' }, true],
    [{ azp: 'portal', sub: 'portal' }, true],
    [{ azp: 'portal', preferred_username: 'service-account-portal', sid: '8c1f' }, undefined],
    [{ azp: 'portal', preferred_username: 'service-account-portal', session_state: '8c1f' }, undefined],
    [{ azp: 'app', preferred_username: 'service-account-portal' }, undefined],
    [{ azp: undefined, preferred_username: 'service-account-undefined' }, undefined],
    [{ azp: 'portal', preferred_username: 'alice' }, undefined],
  ])('with the claims %j is of a service account: %s', async (changes, expected) => {
    expect((await verify(await token(changes))).isServiceAccount).toBe(expected);
  });

  it('of realm core identifies a core caller without a tenant lookup', async () => {
    const coreKey = await addKey('core');
    const caller = await verify(await signToken(coreKey, claims({ iss: server.issuer('core') })));
    expect([caller.isCore, caller.tenant, realmsAsked]).toEqual([true, undefined, []]);
  });

  it.each(['RS256', 'PS256', 'ES256', 'EdDSA'])('may be signed by %s', async (alg) => {
    key = await server.addKey('demo', alg);
    expect((await verify(await token())).subject).toBe('9d1c7e2a');
  });

  it('has realm roles as they are, client roles as <client>:<role>, and the own client roles also unqualified', async () => {
    const jwt = await token({
      realm_access: { roles: ['staff'] },
      resource_access: {
        [audience]: { roles: ['form-admin'] },
        'urn:example:platform:configuration-service': { roles: ['configuration-admin'] },
        account: {},
      },
    });
    expect((await verify(jwt)).roles).toEqual(
      new Set([
        'staff',
        'form-admin',
        `${audience}:form-admin`,
        'urn:example:platform:configuration-service:configuration-admin',
      ]),
    );
  });

  it('may name its one audience as a string, and one of several accepted audiences is enough', async () => {
    expect(await verify(await token({ aud: audience }))).toBeDefined();
    expect(await verify(await token({ aud: 'b' }), ['a', 'b'])).toBeDefined();
    expect(await verify(await token({ aud: undefined }), 'any')).toBeDefined();
  });

  it('may come from a realm with any name that the contract allows', async () => {
    for (const realm of ['a', 'a'.repeat(50), '.town', 'town.', 'Town_1-x.2']) {
      tenants[realm] = { id: `urn:example:platform:tenant-service:v2:/tenants/${realm}`, name: realm, realm };
      const caller = await verify(await signToken(await addKey(realm), claims({ iss: server.issuer(realm) })));
      expect([caller.realm, caller.tenant]).toEqual([realm, tenants[realm]]);
      delete tenants[realm];
    }
  });

  it('has an empty client id without azp, and no email without one', async () => {
    const caller = await verify(await token({ azp: undefined }));
    expect(caller.clientId).toBe('');
    expect(caller).not.toHaveProperty('email');
  });

  it('may be written with the scheme in any case', async () => {
    const jwt = await token();
    for (const scheme of ['bearer', 'BEARER', 'Bearer  '])
      expect(await verifier.verify(`${scheme} ${jwt}`, 'any')).toBeDefined();
  });

  it('may name its type in the header', async () => {
    for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt', 'JWT', 'jwt', undefined])
      expect(await verify(await signToken(key, claims({ typ: undefined }), { typ } as { typ: string }))).toBeDefined();
  });
});

describe('a token is rejected with 401', () => {
  it('from another issuer', async () => {
    for (const iss of [
      'https://evil.example.org/auth/realms/demo',
      `${server.url}/demo`,
      `${server.url}x/realms/demo`,
      '',
      'demo',
    ])
      await expectUnauthenticated(verify(await token({ iss })));
    await expectUnauthenticated(verify(await token({ iss: undefined })));
    expect(realmsAsked).toEqual([]);
  });

  it('from an issuer that is not a string', async () => {
    for (const iss of [1, null, true, ['a'], { a: 1 }]) await expectUnauthenticated(verify(await token({ iss })));
  });

  it('from a realm without a tenant, without fetching its keys', async () => {
    await expectUnauthenticated(verify(await token({ iss: server.issuer('unknown') })));
    expect([realmsAsked, server.asked]).toEqual([['unknown'], []]);
  });

  it('from a malicious realm name, which is never used in a URL or a lookup', async () => {
    const hostile = [
      '..',
      '.',
      '../demo',
      'demo/../other',
      'demo?x=',
      'demo#',
      'demo%2f..',
      '..%2fcore',
      'de mo',
      '',
      'demo\n',
      '@evil',
      'a'.repeat(51),
      'demo/',
    ];
    for (const realm of hostile) await expectUnauthenticated(verify(await token({ iss: server.issuer(realm) })));
    expect([realmsAsked, server.asked]).toEqual([[], []]);
  });

  it('of one realm signed by the key of another', async () => {
    const otherKey = await addKey('other');
    await expectUnauthenticated(verify(await signToken(otherKey, claims({ iss: server.issuer('demo') }))));
    await expectUnauthenticated(verify(await signToken({ ...otherKey, kid: key.kid }, claims())));
  });

  it('for another audience, even if it was verified before', async () => {
    const jwt = await token({ aud: ['urn:example:platform:tenant-service', 'account'] });
    await expectUnauthenticated(verify(jwt));
    expect(await verify(jwt, ['account'])).toBeDefined();
    await expectUnauthenticated(verify(jwt));
    await expectUnauthenticated(verify(await token({ aud: undefined })));
    await expectUnauthenticated(verify(await token({ aud: [] })));
  });

  it('without a signature (alg none)', async () => {
    for (const alg of ['none', 'None', 'NONE', ''])
      await expectUnauthenticated(verify(unsigned({ alg, typ: 'JWT', kid: key.kid }, claims())));
  });

  it('signed by HMAC with the public key as the secret', async () => {
    key = await server.addKey('demo', 'RS256');
    const spki = await exportSPKI(key.publicKey);
    for (const [alg, digest] of [
      ['HS256', 'sha256'],
      ['HS512', 'sha512'],
    ] as const) {
      const signed = unsigned({ alg, typ: 'JWT', kid: key.kid }, claims()).slice(0, -1);
      const signature = createHmac(digest, spki).update(signed).digest('base64url');
      await expectUnauthenticated(verify(`${signed}.${signature}`));
    }
  });

  it.each(['RS384', 'RS512', 'PS384', 'PS512', 'ES384', 'ES512'])(
    'signed by %s, though the realm publishes that key',
    async (alg) => {
      key = await server.addKey('demo', alg);
      await expectUnauthenticated(verify(await token()));
    },
  );

  it('whose header names the wrong algorithm', async () => {
    const jwt = await token();
    const [, payload, signature] = jwt.split('.');
    for (const alg of ['RS256', 'PS256', 'EdDSA']) {
      const header = Buffer.from(JSON.stringify({ alg, kid: key.kid })).toString('base64url');
      await expectUnauthenticated(verify(`${header}.${payload}.${signature}`));
    }
  });

  it('with a changed payload, or a changed or truncated signature', async () => {
    const [header, , signature = ''] = (await token()).split('.');
    const [, payload] = (await token({ sub: 'somebody else' })).split('.');
    await expectUnauthenticated(verify(`${header}.${payload}.${signature}`));
    await expectUnauthenticated(verify(`${header}.${(await token()).split('.')[1]}.${signature.slice(0, -8)}`));
    await expectUnauthenticated(verify(`${header}.${payload}.`));
  });

  it('with a key in its header', async () => {
    const own = await generateKeyPair('ES256', { extractable: true });
    const jwk = await exportJWK(own.publicKey);
    const header = { alg: 'ES256', kid: key.kid, jwk, jku: 'http://127.0.0.1:1/keys', x5u: 'http://127.0.0.1:1/' };
    const jwt = await new SignJWT(claims()).setProtectedHeader(header).sign(own.privateKey);
    await expectUnauthenticated(verify(jwt));
  });

  it('without exp or sub, or if their type is wrong', async () => {
    for (const changes of [
      { exp: undefined },
      { sub: undefined },
      { sub: '' },
      { sub: 7 },
      { sub: 'x'.repeat(256) },
      { azp: 'x'.repeat(256) },
      { sub: 'x\0' },
      { azp: '\ud800' },
      { exp: 'soon' },
      { nbf: 'x' },
      { exp: null },
    ])
      await expectUnauthenticated(verify(await token(changes)));
  });

  it('whose claim typ is that of another token of Keycloak, such as ID, Refresh, Offline, Logout or DPoP', async () => {
    for (const typ of ['ID', 'Refresh', 'Offline', 'Logout', 'DPoP', 'RPT', 'bearer', '', null, 7, ['Bearer']])
      await expectUnauthenticated(verify(await token({ typ })));
  });

  it('whose header typ is not that of an access token', async () => {
    const types = ['logout+jwt', 'dpop+jwt', 'id+jwt', 'secevent+jwt', 'application/jwt', 'at', 'at+jwt; x', 'JWE', ''];
    for (const typ of [...types, null, 7, ['JWT']])
      await expectUnauthenticated(verify(await signToken(key, claims(), { typ } as { typ: string })));
  });

  it('with a claim of ID tokens or logout tokens', async () => {
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    for (const changes of [{ at_hash: 'abc' }, { c_hash: 'abc' }, { events }])
      await expectUnauthenticated(verify(await token({ typ: undefined, ...changes })));
  });

  it('that is garbage', async () => {
    for (const jwt of [
      'x',
      'a.b.c',
      '..',
      'a.b',
      'a.b.c.d.e',
      'eyJhbGciOiJSUzI1NiJ9.e30.AA',
      '='.repeat(100),
      'a'.repeat(8_000),
    ])
      await expectUnauthenticated(verify(jwt));
  });

  it('with the reason for which it is rejected', async () => {
    const reasonOf = async (jwt: string, audiences: string[] | 'any' = 'any') =>
      (await refusal(verify(jwt, audiences))).detail;
    const otherKey = { ...key, kid: 'other' };
    expect(await reasonOf(' ')).toBe('The request has no bearer token.');
    const basic = (async () => verifier.verify('Basic x', 'any'))();
    expect((await refusal(basic)).detail).toBe('The request has no bearer token.');
    expect(await reasonOf('x')).toBe('The token is not a JWT.');
    expect(await reasonOf(await token({ iss: 'https://evil.example' }))).toBe('The token is from another issuer.');
    expect(await reasonOf(await token({ iss: server.issuer('x') }))).toBe(
      'The realm of the token belongs to no tenant.',
    );
    expect(await reasonOf(await signToken(otherKey, claims()))).toBe('The token is not valid.');
    expect(await reasonOf(await token({ typ: 'ID' }))).toBe('The token is not an access token.');
    expect(await reasonOf(await token(), ['another'])).toBe('The token is for another audience.');
    const jwt = await token();
    await verify(jwt);
    now = new Date(start.getTime() + 305_000);
    expect(await reasonOf(jwt)).toBe('The token has expired.');
  });

  it('that is not sent as one bearer token', async () => {
    const jwt = await token();
    const headers = [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      jwt,
      `Basic ${jwt}`,
      `Bearer ${jwt} ${jwt}`,
      `Bearer ${jwt}, Bearer ${jwt}`,
      `Bearer, ${jwt}`,
      `Bearer "${jwt}"`,
      `Bearer\t${jwt}`,
      `DPoP ${jwt}`,
    ];
    for (const header of headers) await expectUnauthenticated((async () => verifier.verify(header, 'any'))());
  });
});

describe('the time of a token', () => {
  it('ends 5 s after exp, even if it was verified before', async () => {
    const jwt = await token({ exp: seconds(start) + 10 });
    const fresh = await token({ exp: seconds(start) + 10, jti: 'another' });
    await verify(jwt);
    now = new Date(start.getTime() + 14_999);
    expect(await verify(jwt)).toBeDefined();
    expect(await verify(await token({ exp: seconds(start) + 10, jti: 'third' }))).toBeDefined();
    now = new Date(start.getTime() + 15_000);
    await expectUnauthenticated(verify(jwt));
    await expectUnauthenticated(verify(fresh));
    await expectUnauthenticated(verify(jwt));
  });

  it('begins 5 s before nbf', async () => {
    const nbf = seconds(start) + 60;
    now = new Date((nbf - 6) * 1000);
    await expectUnauthenticated(verify(await token({ nbf })));
    now = new Date((nbf - 5) * 1000);
    expect(await verify(await token({ nbf }))).toBeDefined();
  });
});

describe('a verified token', () => {
  it('is cached, without another lookup of keys or tenant', async () => {
    const jwt = await token();
    await verify(jwt);
    await server.close();
    expect((await verify(jwt)).subject).toBe('9d1c7e2a');
    expect([realmsAsked, server.asked.length]).toEqual([['demo'], 1]);
  });

  it('is dropped from the cache if many tokens with many roles take too much memory', async () => {
    const roles = Array.from({ length: 1_000 }, (_, nth) => nth.toString(36));
    const tokens = await Promise.all(
      Array.from({ length: 700 }, (_, jti) => token({ jti: String(jti), realm_access: { roles } })),
    );
    for (const jwt of tokens) await verify(jwt);
    const askedAgain = async (jwt = '') => {
      realmsAsked = [];
      await verify(jwt);
      return realmsAsked.length > 0;
    };
    expect([await askedAgain(tokens.at(-1)), await askedAgain(tokens[0])]).toEqual([false, true]);
  });

  it('may not name more than 128 KiB of clients with its roles', async () => {
    const access = (count: number) => ({
      ['c'.repeat(1_023)]: { roles: Array.from({ length: count }, (_, nth) => String(nth)) },
    });
    expect((await verify(await token({ resource_access: access(128) }))).roles.size).toBe(128);
    await expectUnauthenticated(verify(await token({ resource_access: access(129) })));
  });

  it('does not validate a token that differs in one character', async () => {
    const jwt = await token();
    await verify(jwt);
    const last = jwt.at(-2) === 'A' ? 'B' : 'A';
    await expectUnauthenticated(verify(jwt.slice(0, -2) + last + jwt.at(-1)));
    await expectUnauthenticated(verify(`${jwt}=`));
  });
});

describe('the keys of a realm', () => {
  it('are fetched once for many concurrent tokens', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, jti) => token({ jti: String(jti) })));
    await Promise.all(tokens.map((jwt) => verify(jwt)));
    expect(server.asked).toEqual(['/auth/realms/demo/protocol/openid-connect/certs']);
  });

  it('are fetched again for an unknown kid, so that no token fails after a rotation', async () => {
    await verify(await token());
    const rotated = await addKey('demo');
    expect(await verify(await signToken(rotated, claims()))).toBeDefined();
    expect(server.asked).toHaveLength(2);
    for (let attempt = 0; attempt < 3; attempt += 1)
      await expectUnauthenticated(verify(await signToken({ ...rotated, kid: 'guess' }, claims())));
    expect(server.asked).toHaveLength(3);
  });

  it('that the realm has removed verify no token any more, even if it was verified before', async () => {
    const jwt = await token();
    await verify(jwt);
    const rotated = await addKey('demo');
    server.publish('demo', [rotated.jwk]);
    await verify(await signToken(rotated, claims()));
    await expectUnauthenticated(verify(jwt));
  });

  it('are used while the endpoint is down', async () => {
    await verify(await token());
    server.mode = 'hanging up';
    expect(await verify(await token({ jti: 'another' }))).toBeDefined();
  });

  it.each(['failing', 'garbage', 'hanging up'] as const)(
    'that cannot be fetched (%s) are a 503 with Retry-After and a counted failure, and the verifier recovers by itself',
    async (mode) => {
      server.mode = mode;
      const jwt = await token();
      const problem = await refusal(verify(jwt));
      expect([problem.slug, problem.status, problem.headers['Retry-After']]).toEqual(['unavailable', 503, '5']);
      expect(await metrics.registry.metrics()).toContain(
        'formgate_dependency_failures_total{dependency="identity-provider",kind="keys"} 1',
      );
      server.mode = 'up';
      expect(await verify(jwt)).toBeDefined();
    },
  );

  it('are not fetched if the tenant lookup fails, which is not a 401', async () => {
    const down = new Problem('dependency-failed');
    const broken = createBearerVerifier({
      signingKeys,
      accessPublicUrl: server.url,
      clientId: audience,
      clock: () => now,
      tenants: { byRealm: () => Promise.reject(down) },
    });
    expect(await refusal((async () => broken.verify(`Bearer ${await token()}`, 'any'))())).toBe(down);
    expect(server.asked).toEqual([]);
  });

  it('for encryption do not verify signatures', async () => {
    await addKey('demo');
    const [own, other] = server.publishedFor('demo');
    server.publish('demo', [{ ...own, use: 'enc' }, other ?? {}]);
    await expectUnauthenticated(verify(await token()));
  });
});

it('no token, and no part of one, is in the log', async () => {
  const jwt = await token();
  await verify(jwt);
  server.mode = 'failing';
  await refusal(verify(await signToken(key, claims({ iss: server.issuer('other') }))));
  for (const part of jwt.split('.')) expect(text()).not.toContain(part);
});

describe('the tenant of a token that was verified before', () => {
  const minute = 60_000;
  const demo = tenants.demo as Tenant;
  const renamed = { ...demo, id: `${demo.id}2` };
  afterEach(() => {
    tenants.demo = demo;
  });

  it('is looked up again once a minute', async () => {
    const jwt = await token();
    await verify(jwt);
    now = new Date(start.getTime() + minute - 1);
    await verify(jwt);
    expect(realmsAsked).toEqual(['demo']);
    now = new Date(start.getTime() + minute);
    for (let nth = 0; nth < 3; nth += 1) expect((await verify(jwt)).tenant).toEqual(demo);
    expect(realmsAsked).toEqual(['demo', 'demo']);
  });

  it('ends its access within a minute, if the tenant was removed', async () => {
    const jwt = await token();
    await verify(jwt);
    delete tenants.demo;
    now = new Date(start.getTime() + minute);
    await expectUnauthenticated(verify(jwt));
    tenants.demo = demo;
    expect(await verify(jwt)).toBeDefined();
  });

  it('changes within a minute, if the realm now belongs to another tenant', async () => {
    const jwt = await token();
    expect((await verify(jwt)).tenant?.id).toBe(demo.id);
    tenants.demo = renamed;
    now = new Date(start.getTime() + minute);
    expect((await verify(jwt)).tenant?.id).toBe(renamed.id);
  });

  it('is not looked up for the realm core', async () => {
    const realmKey = await addKey('core');
    const jwt = await signToken(realmKey, claims({ iss: server.issuer('core') }));
    await verify(jwt);
    now = new Date(start.getTime() + 5 * minute);
    expect((await verify(jwt)).isCore).toBe(true);
    expect(realmsAsked).toEqual([]);
  });
});
