// Tests which refreshed tokens belong to the session (OpenID Connect Core 1.0, section 12.2).
import { generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import type { OriginalTokens, TokenResponse } from '../sessions/session.ts';
import { IdTokenFault, type VerifyJwt } from './id-token.ts';
import { findForeignToken, preloadKeys } from './refreshed-tokens.ts';

const issuer = 'https://id.example.org/realms/demo';
const seconds = Date.parse('2026-11-22T12:00:00Z') / 1_000;
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
beforeAll(async () => {
  keys = await generateKeyPair('ES256');
});
const verify: VerifyJwt = (token, options) => jwtVerify(token, keys.publicKey, options);

type Claims = Record<string, unknown>;
const sign = (claims: Claims) =>
  new SignJWT({ iss: issuer, aud: 'web', sub: 'ana', iat: seconds, exp: seconds + 60, ...claims })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(keys.privateKey);

interface Given {
  /** Claims of the tokens that the sign-in returned. A string stands for an opaque token. */
  before?: { access?: Claims | string; id?: Claims; nonce?: string };
  /** Claims of the refreshed access token. A string stands for an opaque token. */
  access?: Claims | string;
  id?: Claims;
  verify?: VerifyJwt;
}

const tokenOf = async (claims: Claims | string) => (typeof claims === 'string' ? claims : sign(claims));

async function find(given: Given): Promise<string | undefined> {
  const { before = {}, access = 'opaque', id } = given;
  const tokens: OriginalTokens['tokens'] = {
    accessToken: await tokenOf(before.access ?? 'opaque'),
    ...(before.id && { idToken: await sign(before.id) }),
    ...(before.nonce !== undefined && { nonce: before.nonce }),
  };
  const response: TokenResponse = { access_token: await tokenOf(access), ...(id && { id_token: await sign(id) }) };
  const original = { subject: 'ana', tokens };
  return findForeignToken(response, { issuer, clientId: 'web', original, verify: given.verify ?? verify });
}

describe('refreshed tokens belong to the session', () => {
  it.each<[string, Given]>([
    ['without anything to compare', {}],
    ['with an access token of the person', { access: { sub: 'ana' } }],
    [
      'with an access token that names the person as the one before',
      { before: { access: { sub: 'x1' } }, access: { sub: 'x1' } },
    ],
    ['with an opaque access token after a JWT', { before: { access: { sub: 'x1' } } }],
    ['with an ID token of the person', { id: {} }],
    ['with the ID token of the sign-in', { before: { id: { nonce: 'n' } }, id: { nonce: 'n' } }],
    ['with an ID token without the nonce', { before: { id: { nonce: 'n' } }, id: {} }],
    ['with the nonce that was kept', { before: { id: { nonce: 'other' }, nonce: 'n' }, id: { nonce: 'n' } }],
    ['with the same audience as a list', { before: { id: { aud: 'web' } }, id: { aud: ['web'] } }],
    [
      'with the same audiences in another order',
      { before: { id: { aud: ['web', 'b'], azp: 'web' } }, id: { aud: ['b', 'web'], azp: 'web' } },
    ],
    ['with an ID token that seems to have expired', { id: { iat: 1, exp: 2 } }],
    ['with an ID token of the future', { id: { iat: seconds + 1e9, nbf: seconds + 1e9, exp: seconds + 2e9 } }],
    ['although the person signed in again', { before: { id: { auth_time: 1 } }, id: { auth_time: 2 } }],
  ])('%s', async (_how, given) => {
    expect(await find(given)).toBeUndefined();
  });
});

describe('refreshed tokens of somebody else', () => {
  it.each<[string, string, Given]>([
    ['access-token-sub', 'with an access token of another person', { access: { sub: 'ben' } }],
    [
      ...(['access-token-sub', 'with an access token of another person than before'] as const),
      { before: { access: { sub: 'x1' } }, access: { sub: 'ana' } },
    ],
    ['sub', 'with an ID token of another person', { id: { sub: 'ben' } }],
    ['aud', 'with an ID token for another client', { id: { aud: 'other' } }],
    ['aud', 'with another audience', { before: { id: {} }, id: { aud: ['web', 'other'], azp: 'web' } }],
    ['aud', 'with an audience less', { before: { id: { aud: ['web', 'b'] } }, id: {} }],
    [
      'aud',
      'with a replaced audience',
      { before: { id: { aud: ['web', 'b'] } }, id: { aud: ['web', 'c'], azp: 'web' } },
    ],
    ['azp', 'with an authorized party that the sign-in did not have', { before: { id: {} }, id: { azp: 'web' } }],
    ['nonce', 'with another nonce', { before: { id: { nonce: 'n' } }, id: { nonce: 'm' } }],
    ['nonce', 'with a nonce that the sign-in did not have', { before: { id: {} }, id: { nonce: 'm' } }],
    ['nonce', 'with a nonce that no sign-in had', { id: { nonce: 'm' } }],
    ['at_hash', 'with an ID token of another access token', { id: { at_hash: 'x' } }],
    ['iss', 'with an ID token of another issuer', { id: { iss: 'https://evil.example.org' } }],
    ['sub', 'with an ID token of another person that has expired', { id: { sub: 'ben', exp: 1 } }],
  ])('are detected by %s: %s', async (check, _how, given) => {
    expect(await find(given)).toBe(check);
  });

  it('cannot be detected while the keys cannot be fetched', async () => {
    const away: VerifyJwt = () => Promise.reject(new TypeError('the provider is away'));
    await expect(find({ id: {}, verify: away })).rejects.toThrow('the provider is away');
    expect(await find({ verify: away })).toBeUndefined();
  });
});

describe('the keys', () => {
  const preload = (idToken: string | undefined, judge: VerifyJwt) =>
    preloadKeys({
      ...{ issuer, clientId: 'web', verify: judge },
      original: { subject: 'ana', tokens: { accessToken: 'a', ...(idToken !== undefined && { idToken }) } },
    });

  it('are fetched with the ID token of the session before the refresh token is sent', async () => {
    const seen: unknown[] = [];
    const token = await sign({});
    await preload(token, (given, options) => {
      seen.push(given, options.issuer, options.audience);
      return verify(given, options);
    });
    expect(seen).toEqual([token, issuer, 'web']);
  });

  it('are not fetched without an ID token', async () => {
    await preload(undefined, () => Promise.reject(new Error('fetched')));
  });

  it('may have been replaced since the sign-in', async () => {
    await preload(await sign({}), () => Promise.reject(new IdTokenFault('ERR_JWKS_NO_MATCHING_KEY')));
  });

  it('that cannot be fetched stop the refresh', async () => {
    const away: VerifyJwt = () => Promise.reject(new TypeError('the provider is away'));
    await expect(preload(await sign({}), away)).rejects.toThrow('the provider is away');
  });
});
