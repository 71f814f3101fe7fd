// Tests that refreshed tokens are accepted only if they belong to the person and the client of the session (OpenID
// Connect Core 1.0 section 12.2). A proxy in front of a real identity provider replaces the tokens in its responses.
import { createHash } from 'node:crypto';
import type { JWTPayload } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import {
  addReplicaClient,
  type OpenedSession,
  type SessionReplica,
  startSessionReplica,
} from '../../../test/support/session-replica.ts';
import type { ForeignToken } from '../../../test/support/test-access.ts';
import { startTokenDoor, type TokenDoor } from '../../../test/support/token-door.ts';

const audience = 'replica-client';
let access: TestAccess;
let redis: TestRedis;
let door: TokenDoor;
let replica: SessionReplica;
let offset = 0;
let session: OpenedSession;

beforeAll(async () => {
  [access, redis] = await Promise.all([startTestAccess(), startTestRedis()]);
  await addReplicaClient(access);
  door = await startTokenDoor(access.url);
  const clock = () => new Date(Date.now() + offset);
  replica = await startSessionReplica({ access, accessUrl: door.url, clock, redisUrl: redis.url });
});
afterAll(async () => {
  await replica.close();
  await Promise.all([access.close(), redis.close(), door.close()]);
});

/** Returns an ID token of the session's person that is valid, except for the given claims and options. */
function idToken(claims: JWTPayload = {}, options: ForeignToken = {}): Promise<string> {
  const own = { sub: session.session.user.id, aud: audience, azp: audience, typ: 'ID' };
  return access.foreignToken({ ...own, ...claims }, options);
}

/** Opens a session of Alice. Its ID token has the nonce `the nonce`, and its access token has expired. */
beforeEach(async () => {
  offset = 0;
  session = await replica.open();
  const { user } = session.session;
  const original = await access.foreignToken({ sub: user.id, aud: audience, azp: audience, nonce: 'the nonce' });
  session = await replica.reopen(session.session, { ...session.tokens, idToken: original });
  offset = 301_000;
  replica.outcomes.length = 0;
});

/**
 * Sends a request that causes a refresh. The identity provider's response to the refresh contains the given tokens.
 * Returns the access token that the upstream receives, or `refused`.
 */
function refreshWith(tokens: Record<string, unknown>): Promise<string> {
  door.set({ edit: (members) => ({ ...members, ...tokens }) });
  return replica.call(session.cookie);
}

const second = () => Math.floor(Date.now() / 1_000);
const halfHash = (token: string) => createHash('sha256').update(token).digest().subarray(0, 16).toString('base64url');

describe('refreshed tokens are accepted', () => {
  it.each<[string, () => JWTPayload]>([
    ['an ID token without a nonce', () => ({})],
    ['the nonce of the sign-in', () => ({ nonce: 'the nonce' })],
    ['a time that a fast clock takes for the past', () => ({ iat: second() - 900, exp: second() - 600 })],
    ['a time that a slow clock takes for the future', () => ({ iat: second() + 600, nbf: second() + 600 })],
  ])('with %s', async (_, claims) => {
    expect(await refreshWith({ id_token: await idToken(claims()) })).not.toBe('refused');
  });

  it('without an ID token, with an opaque access token, and with one that names no subject', async () => {
    expect(await refreshWith({ id_token: undefined })).not.toBe('refused');
    offset += 301_000;
    expect(await refreshWith({ access_token: 'opaque', id_token: undefined })).toBe('opaque');
    offset += 301_000;
    const anonymous = await access.foreignToken({ sub: undefined as unknown as string });
    expect(await refreshWith({ access_token: anonymous, id_token: undefined })).toBe(anonymous);
  });

  it('with the at_hash of the access token', async () => {
    const token = await access.foreignToken({ sub: session.session.user.id });
    const id = await idToken({ at_hash: halfHash(token) });
    expect(await refreshWith({ access_token: token, id_token: id })).toBe(token);
  });

  it('with the nonce of the sign-in, after a refresh whose ID token had none', async () => {
    expect(await refreshWith({ id_token: await idToken() })).not.toBe('refused');
    offset += 301_000;
    expect(await refreshWith({ id_token: await idToken({ nonce: 'the nonce' }) })).not.toBe('refused');
    offset += 301_000;
    expect(await refreshWith({ id_token: await idToken({ nonce: 'another' }) })).toBe('refused');
  });
});

/**
 * Expects that the request was refused, that the session has ended, and that the audit event does not name the person.
 */
async function expectEnd(received: string, check: string): Promise<void> {
  expect(received).toBe('refused');
  expect(await replica.read(session.cookie)).toBeUndefined();
  const { handle } = session.session;
  expect(await redis.command('EXISTS', `{sess:${handle}}:tokens`)).toBe(0);
  const line = replica.log.lines().find((one) => one.session === handle && 'audit' in one);
  const tenant = session.session.tenantId;
  const object = { type: 'session', id: handle };
  const audit = { action: 'session.foreign-tokens', tenant, object, outcome: 'succeeded' };
  expect(line).toMatchObject({ outcome: 'foreign', check, client: 'web', tenant, audit });
  // The session handle is left out of the search, because it is random and may contain `eyJ`, `Bob` or `Ada`.
  expect(JSON.stringify(line).replaceAll(handle, '')).not.toMatch(/eyJ|example\.com|Alice|Bob|Ada/);
  expect(replica.outcomes).toEqual(['foreign']);
}

describe('refreshed tokens end the session', () => {
  it('with the access token of another person, with and without an ID token', async () => {
    const other = await access.userToken('demo', 'admin@example.com');
    await expectEnd(await refreshWith({ access_token: other, id_token: undefined }), 'access-token-sub');
    const metrics = await replica.metrics.registry.metrics();
    expect(metrics).toMatch(/formgate_token_refreshes_total\{outcome="foreign"\} [1-9]/);
  });

  it('during a background refresh, although the former access token is valid', async () => {
    offset = 280_000;
    await refreshWith({ access_token: await access.userToken('demo', 'admin@example.com') });
    await expect.poll(() => replica.call(session.cookie)).toBe('refused');
  });

  it.each<[string, () => JWTPayload, string]>([
    ['of another person', () => ({ sub: 'somebody else' }), 'sub'],
    ['without a subject', () => ({ sub: undefined as unknown as string }), 'sub'],
    ['of another issuer', () => ({ iss: `${access.url}/realms/core` }), 'iss'],
    ['for another client', () => ({ aud: 'another-client' }), 'aud'],
    ['for a further audience', () => ({ aud: [audience, 'another-client'] }), 'aud'],
    ['of another authorized party', () => ({ azp: 'another-client' }), 'azp'],
    ['without the authorized party of the sign-in', () => ({ azp: undefined as unknown as string }), 'azp'],
    ['without iat', () => ({ iat: undefined as unknown as number }), 'iat'],
    ['without exp', () => ({ exp: undefined as unknown as number }), 'exp'],
    ['of another person that has expired', () => ({ sub: 'somebody else', exp: second() - 60 }), 'sub'],
    ['with another nonce', () => ({ nonce: 'another' }), 'nonce'],
    ['with the hash of another access token', () => ({ at_hash: halfHash('another token') }), 'at_hash'],
  ])('with an ID token %s', async (_, claims, check) => {
    await expectEnd(await refreshWith({ id_token: await idToken(claims()) }), check);
  });

  it.each<[NonNullable<ForeignToken['key']>, string]>([
    ['unknown', 'ERR_JWKS_NO_MATCHING_KEY'],
    ['none', 'ERR_JOSE_ALG_NOT_ALLOWED'],
    ['hmac', 'ERR_JOSE_ALG_NOT_ALLOWED'],
  ])('with an ID token whose signature is of the kind %s', async (key, check) => {
    await expectEnd(await refreshWith({ id_token: await idToken({}, { key }) }), check);
  });

  it('with an ID token whose claims were changed after it was signed', async () => {
    const [header, , signature] = (await idToken()).split('.');
    const [, payload] = (await idToken({ jti: 'another' })).split('.');
    const received = await refreshWith({ id_token: `${header}.${payload}.${signature}` });
    await expectEnd(received, 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED');
  });
});

it('a refresh token is not presented while the keys that check the response cannot be fetched', async () => {
  const clock = () => new Date(Date.now() + offset);
  const fresh = await startSessionReplica({ access, accessUrl: door.url, clock, redisUrl: redis.url });
  door.hideKeys(true);
  const before = door.presented.length;
  await expect(fresh.call(session.cookie)).rejects.toMatchObject({ status: 503 });
  await fresh.close();
  door.hideKeys(false);
  expect(door.presented).toHaveLength(before);
  expect(await refreshWith({ id_token: undefined })).not.toBe('refused');
});
