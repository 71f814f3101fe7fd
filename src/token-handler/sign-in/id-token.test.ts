// Tests rules for ID tokens that most identity providers cannot be made to break: uncommon algorithms, and another
// person after a refresh. The tests in test/conformance cover all other rules with complete sign-ins.
import { hash } from 'node:crypto';
import { generateKeyPair, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { type ExpectedIdToken, IdTokenFault, verifyIdToken } from './id-token.ts';

const issuer = 'https://id.example.org/realms/demo';
const now = new Date('2026-11-22T12:00:00Z');
const expected: ExpectedIdToken = { issuer, clientId: 'web', now, accessToken: 'access', code: 'code' };

/** Signs an ID token with a new key, and verifies it with the same key. */
async function judge(alg: string, changes: JWTPayload, asked: Partial<ExpectedIdToken> = {}, typ?: string) {
  const { privateKey, publicKey } = await generateKeyPair(alg);
  const iat = now.getTime() / 1_000;
  const claims = { iss: issuer, aud: 'web', sub: 'alice', iat, exp: iat + 300, ...changes };
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg, ...(typ !== undefined && { typ }) })
    .sign(privateKey);
  return verifyIdToken(token, (text, options) => jwtVerify(text, publicKey, options), { ...expected, ...asked });
}

/** Computes the hash for `at_hash` (OpenID Connect Core 1.0, section 3.1.3.6). */
const leftHalf = (text: string, algorithm: string) => {
  const digest = hash(algorithm, text, 'buffer');
  return digest.subarray(0, digest.length / 2).toString('base64url');
};

describe('an ID token', () => {
  it.each([
    { alg: 'ES256', algorithm: 'sha256' },
    { alg: 'PS384', algorithm: 'sha384' },
    { alg: 'RS512', algorithm: 'sha512' },
    { alg: 'Ed25519', algorithm: 'sha512' },
    { alg: 'EdDSA', algorithm: 'sha512' },
  ])('of $alg has hashes of $algorithm', async ({ alg, algorithm }) => {
    const hashes = { at_hash: leftHalf('access', algorithm), c_hash: leftHalf('code', algorithm) };
    await expect(judge(alg, hashes)).resolves.toMatchObject({ sub: 'alice' });
    const other = leftHalf('access', algorithm === 'sha256' ? 'sha512' : 'sha256');
    await expect(judge(alg, { at_hash: other })).rejects.toMatchObject({ rule: 'at_hash' });
  });

  it('signed with the client’s secret is rejected', async () => {
    const secret = Buffer.alloc(32, 'x');
    const token = await new SignJWT({}).setProtectedHeader({ alg: 'HS256' }).sign(secret);
    const verified = verifyIdToken(token, (text, options) => jwtVerify(text, secret, options), expected);
    await expect(verified).rejects.toThrow(IdTokenFault);
  });

  it('after a refresh must be of the person who signed in', async () => {
    await expect(judge('ES256', {}, { sub: 'alice', code: undefined })).resolves.toMatchObject({ sub: 'alice' });
    await expect(judge('ES256', {}, { sub: 'bob', code: undefined })).rejects.toMatchObject({ rule: 'sub' });
  });

  it('is not at fault if the keys cannot be fetched', async () => {
    const unreachable = () => Promise.reject(new TypeError('fetch failed'));
    await expect(verifyIdToken('a.b.c', unreachable, expected)).rejects.toThrow(TypeError);
  });

  const seconds = now.getTime() / 1_000;
  it.each<[string, { [claim: string]: unknown }]>([
    ['iss', { iss: 'https://other.example.org' }],
    ['aud', { aud: 'other' }],
    ['exp', { exp: seconds - 6 }],
    ['nbf', { nbf: seconds + 6 }],
    ['iat', { iat: seconds - 601 }],
    ['iat', { iat: seconds + 61 }],
    ['exp', { exp: undefined }],
    ['iat', { iat: undefined }],
    ['sub', { sub: undefined }],
    ['sub', { sub: '' }],
    ['sub', { sub: 'x'.repeat(256) }],
    ['azp', { azp: 'other' }],
    ['azp', { aud: ['web', 'other'] }],
    ['azp', { azp: 7 }],
    ['at_hash', { at_hash: 7 }],
    ['c_hash', { c_hash: 7 }],
    ['c_hash', { c_hash: leftHalf('another code', 'sha256') }],
    ['events', { events: {} }],
  ])('breaks the rule for %s: %j', async (rule, changes) => {
    const fault = await judge('ES256', changes as JWTPayload).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(IdTokenFault);
    expect(fault).toMatchObject({ rule, name: 'IdTokenFault', message: `the ID token is not valid: ${rule}` });
  });

  it.each<[string, JWTPayload, Partial<ExpectedIdToken>]>([
    ['of ten minutes ago', { iat: seconds - 600 }, {}],
    ['of a clock that is a minute ahead', { iat: seconds + 60 }, {}],
    ['that expired 4 s ago', { exp: seconds - 4 }, {}],
    ['for one audience as a list', { aud: ['web'] }, {}],
    ['for two audiences, issued to this client', { aud: ['web', 'other'], azp: 'web' }, {}],
    ['with a subject of 255 characters', { sub: 'x'.repeat(255) }, {}],
    ['with the hash of a code after a refresh, which has no code', { c_hash: 'anything' }, { code: undefined }],
    ['without hashes', {}, {}],
  ])('is accepted %s', async (_what, changes, asked) => {
    await expect(judge('ES256', changes, asked)).resolves.toMatchObject({ iss: issuer });
  });

  it.each([
    ['JWT', true],
    ['jwt', true],
    ['application/jwt', true],
    ['at+jwt', false],
    ['logout+jwt', false],
    ['application/at+jwt', false],
    ['x-application/jwt', false],
    ['japplication/wt', false],
  ])('of the type %s: %s', async (typ, isAccepted) => {
    const judged = judge('ES256', {}, {}, typ);
    if (isAccepted) await expect(judged).resolves.toMatchObject({ sub: 'alice' });
    else await expect(judged).rejects.toMatchObject({ rule: 'typ' });
  });
});
