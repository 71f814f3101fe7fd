// Tests the rules for logout tokens (OpenID Connect Back-Channel Logout 1.0, sections 2.4 and 2.6) at their limits.
import { generateKeyPair, type JWTVerifyGetKey, SignJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Tenant } from '../../service/auth/identity.ts';
import type { SigningKeys } from '../../service/auth/signing-keys.ts';
import type { Registration } from '../clients/registration.ts';
import { createProviderAddresses } from '../provider-addresses.ts';
import { createLogoutVerifier, LogoutRefusal, type VerifyLogoutToken } from './logout-token.ts';

const now = new Date('2026-11-22T12:00:00Z');
const seconds = now.getTime() / 1_000;
const issuer = 'https://id.example.org/auth/realms/demo';
const event = 'http://schemas.openid.net/event/backchannel-logout';
const tenant = { id: 'urn:tenant:demo', name: 'Demo', realm: 'demo' } as Tenant;

let own: Awaited<ReturnType<typeof generateKeyPair>>;
let foreign: typeof own;
let symmetric: CryptoKey;
beforeAll(async () => {
  [own, foreign] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')]);
  symmetric = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, true, ['sign', 'verify']);
});

/** Returns the right key for the realm `demo`, and a foreign key for every other realm. */
const realmKeys = (find: JWTVerifyGetKey = async () => own.publicKey) => ({
  ofRealm: (realm: string) => (realm === 'demo' ? find : async () => foreign.publicKey),
});
const asked: unknown[][] = [];
function createVerifier(keys = realmKeys()): VerifyLogoutToken {
  return createLogoutVerifier({
    addresses: createProviderAddresses({ accessUrl: 'https://id.example.org/auth' }),
    tenants: { byRealm: async (realm) => (realm === 'demo' ? tenant : undefined) },
    registrations: {
      async find(...given) {
        asked.push(given);
        return given[1] === 'web' ? ({ oidcClientId: 'oidc-web' } as Registration) : undefined;
      },
    },
    keys: keys as unknown as SigningKeys,
    clock: () => now,
  });
}

const usual = {
  ...{ iss: issuer, aud: 'oidc-web', iat: seconds, exp: seconds + 120, jti: 'token 1' },
  ...{ sub: 'ana', sid: 'session 1', events: { [event]: {} } },
};
type Signing = { typ?: string | undefined; alg?: string; key?: () => CryptoKey };

function sign(
  changes: Record<string, unknown>,
  { typ = 'logout+jwt', alg = 'ES256', key = () => own.privateKey }: Signing,
) {
  return new SignJWT({ ...usual, ...changes }).setProtectedHeader({ alg, ...(typ !== '' && { typ }) }).sign(key());
}
const verify = async (changes: Record<string, unknown> = {}, signing: Signing = {}, clientId = 'web') => {
  const token = await createVerifier()(await sign(changes, signing));
  return token.logoutOf(clientId);
};

describe('a logout token', () => {
  it('names the sessions that end', async () => {
    expect(await verify()).toEqual({
      ...{ tenantId: tenant.id, clientId: 'web', jti: 'token 1', sub: 'ana', sid: 'session 1', algorithm: 'ES256' },
    });
    expect(asked.at(-1)).toEqual([tenant.id, 'web']);
  });

  it.each<[string, Record<string, unknown>, Signing]>([
    ['without a person', { sub: undefined }, {}],
    ['without a session', { sid: undefined }, {}],
    ['with an id of 500 characters', { jti: 'x'.repeat(500) }, {}],
    ['with other events, too', { events: { [event]: { more: 1 }, other: 'x' } }, {}],
    ['for several audiences', { aud: ['other', 'oidc-web'] }, {}],
    ['of five minutes ago', { iat: seconds - 305, exp: seconds + 1 }, {}],
    ['that expired 4 s ago', { exp: seconds - 4 }, {}],
    ['of a clock that is 5 s ahead', { iat: seconds + 5 }, {}],
    ['of the type JWT', {}, { typ: 'JWT' }],
    ['of the type application/logout+jwt', {}, { typ: 'application/Logout+JWT' }],
    ['without a type', {}, { typ: '' }],
  ])('is accepted %s', async (_what, changes, signing) => {
    expect(await verify(changes, signing)).toMatchObject({ tenantId: tenant.id });
  });

  it.each<[string, Record<string, unknown>, Signing]>([
    ['of another issuer', { iss: 'https://evil.example.org/auth/realms/demo' }, {}],
    ['of a realm without a tenant', { iss: 'https://id.example.org/auth/realms/other' }, {}],
    ['without an issuer', { iss: undefined }, {}],
    ['whose issuer is no text', { iss: 7 }, {}],
    ['for another client', { aud: 'oidc-other' }, {}],
    ['without an audience', { aud: undefined }, {}],
    ['that is older than five minutes', { iat: seconds - 306 }, {}],
    ['that has expired', { exp: seconds - 5 }, {}],
    ['of the future', { iat: seconds + 6 }, {}],
    ['without a time', { iat: undefined }, {}],
    ['without an end', { exp: undefined }, {}],
    ['without an id', { jti: undefined }, {}],
    ['with an empty id', { jti: '' }, {}],
    ['with an id of 501 characters', { jti: 'x'.repeat(501) }, {}],
    ['without events', { events: undefined }, {}],
    ['without the event of a logout', { events: { other: {} } }, {}],
    ['whose event is null', { events: { [event]: null } }, {}],
    ['whose event is a text', { events: { [event]: 'x' } }, {}],
    ['whose event is a list', { events: { [event]: [] } }, {}],
    ['with a nonce, like an ID token', { nonce: 'x' }, {}],
    ['that names neither a person nor a session', { sub: undefined, sid: undefined }, {}],
    ['with an empty person', { sub: '' }, {}],
    ['with an empty session', { sid: '' }, {}],
    ['of the type of an access token', {}, { typ: 'at+jwt' }],
    ['of a type with a prefix in its middle', {}, { typ: 'logoutapplication/+jwt' }],
    ['signed with another key', {}, { key: () => foreign.privateKey }],
    ['signed with an algorithm that is not accepted', {}, { alg: 'HS256', key: () => symmetric }],
  ])('is refused %s', async (_what, changes, signing) => {
    await expect(verify(changes, signing)).rejects.toThrow(LogoutRefusal);
  });

  it.each(['RS256', 'PS384', 'RS512', 'ES384', 'EdDSA'])(
    'signed with %s is accepted, as an ID token is',
    async (alg) => {
      const { publicKey, privateKey } = await generateKeyPair(alg);
      const token = await createVerifier(realmKeys(async () => publicKey))(
        await sign({}, { alg, key: () => privateKey }),
      );
      expect(await token.logoutOf('web')).toMatchObject({ tenantId: tenant.id, algorithm: alg });
    },
  );

  it('is refused for a client that is not registered', async () => {
    await expect(verify({}, {}, 'other')).rejects.toThrow(LogoutRefusal);
  });

  it('is refused if it is no JWT', async () => {
    for (const text of ['', 'opaque', 'a.b.c']) await expect(createVerifier()(text)).rejects.toThrow(LogoutRefusal);
  });

  it('cannot be checked while the keys of the realm cannot be fetched, so the provider is asked to repeat it', async () => {
    const verifier = createVerifier(realmKeys(() => Promise.reject(new Error('the provider is away'))));
    const failure = {
      slug: 'unavailable',
      headers: { 'Retry-After': '5' },
      cause: { message: 'the provider is away' },
    };
    await expect(verifier(await sign({}, {}))).rejects.toMatchObject(failure);
  });

  it('that is refused is logged with the reason', async () => {
    const failure = { name: 'LogoutRefusal', cause: { code: 'ERR_JWT_EXPIRED' } };
    await expect(verify({ exp: seconds - 5 })).rejects.toMatchObject(failure);
    await expect(createVerifier()('opaque')).rejects.toMatchObject({ cause: { name: 'JWTInvalid' } });
  });

  it.each<[string, Record<string, unknown>, Signing, string]>([
    ['unknown issuer', { iss: 'https://evil.example.org' }, {}, 'web'],
    ['the issuer belongs to no tenant', { iss: 'https://id.example.org/auth/realms/other' }, {}, 'web'],
    ['the client is not registered', {}, {}, 'other'],
    ['the token is not valid', { exp: seconds - 5 }, {}, 'web'],
    ['the token is for another client', { aud: 'oidc-other' }, {}, 'web'],
    ['the token has another type', {}, { typ: 'at+jwt' }, 'web'],
    ['the claims of a logout token are missing or invalid', { nonce: 'x' }, {}, 'web'],
  ])('is refused because %s', async (message, changes, signing, clientId) => {
    await expect(verify(changes, signing, clientId)).rejects.toThrow(message);
  });
});
