// Tests the rules of session.ts and session-indexes.ts at their limits: what a token set contains, when a session ends,
// when a refresh is due, and which indexes list a session.
import { hash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  claimsOf,
  expiryOf,
  hardLimit,
  isRefreshDue,
  isUsable,
  nonceOf,
  recordContext,
  recordKey,
  type Session,
  type TokenSet,
  tokenSetOf,
  withoutRefreshToken,
} from './session.ts';
import { indexesOf, providerIndex, tenantIndex, userIndex } from './session-indexes.ts';

const now = 1_800_000_000_000;
const jwt = (claims: unknown) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
const set = (changes: Partial<TokenSet> = {}): TokenSet => ({
  ...{ accessToken: 'opaque', accessIssued: now, accessExpiry: now + 300_000, roles: [] },
  ...changes,
});

describe('a session ends', () => {
  const session = { absoluteExpiry: now + 1_000_000 };

  it('with its refresh token, its access token without one, or its own limit, whichever is first', () => {
    expect(hardLimit(session, set({ refreshToken: 'r', refreshExpiry: now + 900_000 }))).toBe(now + 900_000);
    expect(hardLimit(session, set({ refreshToken: 'r', refreshExpiry: now + 1_000_001 }))).toBe(now + 1_000_000);
    expect(hardLimit(session, set({ refreshToken: 'r' }))).toBe(now + 1_000_000);
    expect(hardLimit(session, set())).toBe(now + 300_000);
    // Without a refresh token, `refreshExpiry` does not count.
    expect(hardLimit(session, set({ refreshExpiry: now + 900_000 }))).toBe(now + 300_000);
    expect(hardLimit(session, set({ accessExpiry: now + 2_000_000 }))).toBe(now + 1_000_000);
  });

  it('after the idle time without a request, but not after its limit', () => {
    expect(expiryOf({ limit: now + 500, touched: now - 200 }, 600)).toBe(now + 400);
    expect(expiryOf({ limit: now + 500, touched: now }, 600)).toBe(now + 500);
  });
});

describe('the store names a record', () => {
  it('by the handle, in one slot of a cluster with the other keys of the session', () => {
    expect(recordKey('abc')).toBe('{sess:abc}');
    expect(recordContext('abc')).toBe('record of session abc');
  });
});

describe('a token response', () => {
  it('gives a set that expires when the response says', () => {
    const response = { access_token: 'a', expires_in: 120, refresh_token: 'r', refresh_expires_in: 1_800 };
    expect(tokenSetOf(response, now)).toEqual({
      ...{ accessToken: 'a', accessIssued: now, accessExpiry: now + 120_000, roles: [] },
      ...{ refreshToken: 'r', refreshExpiry: now + 1_800_000 },
    });
  });

  it('without optional members gives a set without them, which is assumed to be valid for a minute', () => {
    expect(tokenSetOf({ access_token: 'a' }, now)).toStrictEqual({
      ...{ accessToken: 'a', accessIssued: now, accessExpiry: now + 60_000, roles: [] },
    });
    expect(tokenSetOf({ access_token: 'a', expires_in: 0 }, now).accessExpiry).toBe(now);
  });

  it('with an expiry of 0, or one that is no number, gives a refresh token that does not expire', () => {
    const expiryFor = (seconds: unknown) =>
      tokenSetOf({ access_token: 'a', refresh_token: 'r', refresh_expires_in: seconds }, now);
    for (const seconds of [0, -1, '1800', undefined, null])
      expect(expiryFor(seconds)).not.toHaveProperty('refreshExpiry');
    expect(expiryFor(1)).toMatchObject({ refreshExpiry: now + 1_000 });
  });

  it('without a refresh token has no expiry of one', () => {
    expect(tokenSetOf({ access_token: 'a', refresh_expires_in: 1_800 }, now)).not.toHaveProperty('refreshExpiry');
  });

  it('keeps the refresh and ID token of the sign-in if a refresh brings no new ones', () => {
    const previous = set({ refreshToken: 'r', refreshExpiry: now + 7_000, idToken: 'i', nonce: 'n' });
    const next = tokenSetOf({ access_token: 'b', expires_in: 60 }, now + 1_000, previous);
    expect(next).toEqual({
      ...{ accessToken: 'b', accessIssued: now + 1_000, accessExpiry: now + 61_000, roles: [] },
      ...{ refreshToken: 'r', refreshExpiry: now + 7_000, idToken: 'i', nonce: 'n' },
    });
  });

  it('replaces both if it brings new ones, but never the nonce of the sign-in', () => {
    const previous = set({ refreshToken: 'r', refreshExpiry: now + 7_000, idToken: jwt({ nonce: 'first' }) });
    const response = { access_token: 'b', refresh_token: 's', id_token: jwt({ nonce: 'second' }) };
    const next = tokenSetOf(response, now, previous);
    expect(next).toMatchObject({ refreshToken: 's', idToken: response.id_token, nonce: 'first' });
    expect(next).not.toHaveProperty('refreshExpiry');
  });

  it('keeps the expiry of a refresh token that the response repeats, unless it has a new one', () => {
    const previous = set({ refreshToken: 'r', refreshExpiry: now + 7_000 });
    const repeated = { access_token: 'b', refresh_token: 'r' };
    expect(tokenSetOf(repeated, now, previous).refreshExpiry).toBe(now + 7_000);
    expect(tokenSetOf({ ...repeated, refresh_expires_in: 9 }, now, previous).refreshExpiry).toBe(now + 9_000);
    expect(tokenSetOf({ access_token: 'b', refresh_expires_in: 0 }, now, previous)).not.toHaveProperty('refreshExpiry');
    expect(tokenSetOf({ access_token: 'b', refresh_token: 'r' }, now).refreshExpiry).toBeUndefined();
  });

  it('of a sign-in gives the nonce of its ID token', () => {
    expect(tokenSetOf({ access_token: 'a', id_token: jwt({ nonce: 'n' }) }, now).nonce).toBe('n');
    expect(tokenSetOf({ access_token: 'a', id_token: jwt({ nonce: 7 }) }, now)).not.toHaveProperty('nonce');
    expect(tokenSetOf({ access_token: jwt({ nonce: 'n' }) }, now)).not.toHaveProperty('nonce');
  });

  it('gives realm roles by name, and client roles with the name of the client', () => {
    const claims = {
      realm_access: { roles: ['one', 7, 'two'] },
      resource_access: { web: { roles: ['three'] }, other: { roles: 'four' }, third: null, 'a:b': { roles: ['five'] } },
    };
    const rolesOf = (content: unknown) => tokenSetOf({ access_token: jwt(content) }, now).roles;
    expect(rolesOf(claims)).toEqual(['one', 'two', 'web:three', 'a:b:five']);
    for (const none of [{}, { realm_access: 'x' }, { realm_access: { roles: 'x' } }, { resource_access: ['x'] }, []])
      expect(rolesOf(none)).toEqual([]);
    expect(rolesOf({ resource_access: 'text' })).toEqual([]);
  });
});

describe('the nonce of a sign-in', () => {
  it('is that of the set, or else of its ID token', () => {
    expect(nonceOf({ nonce: 'one', idToken: jwt({ nonce: 'two' }) })).toBe('one');
    expect(nonceOf({ idToken: jwt({ nonce: 'two' }) })).toBe('two');
    expect(nonceOf({ idToken: jwt({ nonce: ['two'] }) })).toBeUndefined();
    expect(nonceOf({})).toBeUndefined();
  });
});

describe('a set without its refresh token', () => {
  it('keeps everything else', () => {
    const full = set({ refreshToken: 'r', refreshExpiry: now + 7_000, idToken: 'i', nonce: 'n', roles: ['a'] });
    expect(withoutRefreshToken(full)).toStrictEqual(set({ idToken: 'i', nonce: 'n', roles: ['a'] }));
  });
});

describe('the claims of a token', () => {
  it('are empty for an opaque token, and for content that is no object', () => {
    expect(claimsOf(jwt({ sub: 'ana', name: 'Ana Äres' }))).toEqual({ sub: 'ana', name: 'Ana Äres' });
    for (const token of ['', 'opaque', 'a.b.c', 'a..b', jwt('text'), jwt(null), jwt(['x']), jwt(7)])
      expect(claimsOf(token)).toEqual({});
  });
});

/**
 * The factor by which a session shortens the threshold of `isRefreshDue`: a number from 0.5 to 1, computed from the
 * first bytes of a digest of the handle.
 */
const factorOf = (handle: string) => 1 - hash('sha256', handle, 'buffer').readUInt32BE() / 2 ** 32 / 2;

describe('a refresh', () => {
  const handles = Array.from({ length: 20 }, (_, nth) => `session ${nth}`);
  const isDue = (lifetime: number, left: number, handle: string) =>
    isRefreshDue(set({ accessIssued: now + left - lifetime, accessExpiry: now + left }), handle, now);

  it.each([
    ['a minute before the end of a long token', 3_600_000, 60_000],
    ['a minute before the end of one of four minutes', 240_000, 60_000],
    ['a quarter of its lifetime before the end of a short token', 60_000, 15_000],
  ])('is due %s, times the factor of the session', (_when, lifetime, longest) => {
    for (const handle of handles) {
      const threshold = longest * factorOf(handle);
      expect(isDue(lifetime, Math.ceil(threshold) + 1, handle)).toBe(false);
      expect(isDue(lifetime, Math.floor(threshold) - 1, handle)).toBe(true);
      expect(isDue(lifetime, longest, handle)).toBe(false);
      expect(isDue(lifetime, longest / 2 - 1, handle)).toBe(true);
    }
  });

  it('is not due exactly at the threshold', () => {
    for (const handle of handles) {
      const left = 60_000 * factorOf(handle);
      expect(isRefreshDue(set({ accessIssued: left - 3_600_000, accessExpiry: left }), handle, 0)).toBe(false);
    }
  });

  it('is due after the end of the token', () => {
    expect(isDue(300_000, 0, 'any')).toBe(true);
    expect(isDue(300_000, -1_000, 'any')).toBe(true);
  });

  it('of different sessions is due at different times', () => {
    const due = handles.filter((handle) => isDue(3_600_000, 45_000, handle));
    expect(due.length).toBeGreaterThan(3);
    expect(due.length).toBeLessThan(17);
    expect(due).toEqual(handles.filter((handle) => isDue(3_600_000, 45_000, handle)));
  });
});

describe('an access token', () => {
  const isUsableWith = (lifetime: number, left: number) =>
    isUsable(set({ accessIssued: now + left - lifetime, accessExpiry: now + left }), now);

  it('is sent until a second before its end, or a tenth of a short lifetime', () => {
    expect(isUsableWith(300_000, 1_001)).toBe(true);
    expect(isUsableWith(300_000, 1_000)).toBe(false);
    expect(isUsableWith(5_000, 501)).toBe(true);
    expect(isUsableWith(5_000, 500)).toBe(false);
    expect(isUsableWith(10_000, 1_001)).toBe(true);
    expect(isUsableWith(300_000, -1)).toBe(false);
  });
});

describe('the lists of sessions', () => {
  const session = { tenantId: 'urn:t', clientId: 'web', user: { id: 'ana' } } as Session;
  const digest = (text: string) => hash('sha256', text, 'base64url');

  it('are named by digests, so that a copy of the store does not show who is signed in', () => {
    expect(tenantIndex('urn:t')).toBe(`tenant:${digest('urn:t')}`);
    expect(userIndex('urn:t', 'ana')).toBe(`user:${digest('urn:t\nana')}`);
    expect(providerIndex('urn:t', 'web', 's')).toBe(`sid:${digest('urn:t\nweb\ns')}`);
  });

  it('of the tenant and the person name each session, that of the session at the identity provider only some', () => {
    const both = [tenantIndex('urn:t'), userIndex('urn:t', 'ana')];
    expect(indexesOf(session)).toEqual(both);
    expect(indexesOf({ ...session, sid: 's' })).toEqual([...both, providerIndex('urn:t', 'web', 's')]);
  });
});
