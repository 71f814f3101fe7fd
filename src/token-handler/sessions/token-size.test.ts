// Tests which token sets are too large for a session: by their tokens, and by the names of roles in them.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type TokenSet, tokenSetOf } from './session.ts';
import { areTokensTooLarge, mostTokenSetSize, sessionCacheLimits, TokensTooLarge } from './token-size.ts';

const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
const rolesOf = (length: number) => Array.from({ length }, (_, nth) => `role-of-a-department-${nth}`);

describe('tokens are too large for a session', () => {
  it('if their lengths exceed 64 KiB together, also those that a refresh keeps', () => {
    const half = 'a'.repeat(mostTokenSetSize / 2);
    expect(areTokensTooLarge({ access_token: half })).toBe(false);
    expect(areTokensTooLarge({ access_token: half, id_token: half })).toBe(true);
    expect(areTokensTooLarge({ access_token: half, refresh_token: half })).toBe(true);
    expect(areTokensTooLarge({ access_token: half }, { idToken: half } as TokenSet)).toBe(true);
    expect(areTokensTooLarge({ access_token: half, id_token: '' }, { idToken: half } as TokenSet)).toBe(false);
    expect(areTokensTooLarge({ access_token: half }, { refreshToken: half } as TokenSet)).toBe(true);
  });

  it('not if Keycloak names 800 roles in an access token of 32 KiB', () => {
    const access = jwt({ realm_access: { roles: rolesOf(800) }, padding: 'p'.repeat(2_500) });
    expect(access.length).toBeGreaterThan(31_000);
    const other = 'o'.repeat(1_500);
    expect(areTokensTooLarge({ access_token: access, refresh_token: other, id_token: other })).toBe(false);
    expect(areTokensTooLarge({ access_token: jwt({ realm_access: { roles: rolesOf(1_500) } }) })).toBe(true);
  });

  it('if the names of roles repeat a long name of a client', () => {
    const roles = Array.from({ length: 3_000 }, () => 'a');
    expect(areTokensTooLarge({ access_token: jwt({ resource_access: { ['c'.repeat(20_000)]: { roles } } }) })).toBe(
      true,
    );
  });

  it('if the token set needs more than 64 KiB as JSON, and not at exactly 64 KiB', () => {
    const around = JSON.stringify(tokenSetOf({ access_token: '' }, 0)).length;
    const sizes = [mostTokenSetSize, mostTokenSetSize + 1];
    expect(sizes.map((size) => areTokensTooLarge({ access_token: 'a'.repeat(size - around) }))).toEqual([false, true]);
  });

  it('if one token alone is larger', () => {
    expect(areTokensTooLarge({ access_token: 'a'.repeat(mostTokenSetSize + 1) })).toBe(true);
  });

  it('by their bytes as JSON', () => {
    const roles = Array.from({ length: 700 }, () => 'a');
    const client = '\u0001'.repeat(20);
    expect(areTokensTooLarge({ access_token: jwt({ resource_access: { [client]: { roles } } }) })).toBe(true);
    const plain = jwt({ resource_access: { ['c'.repeat(20)]: { roles } } });
    expect(areTokensTooLarge({ access_token: plain })).toBe(false);
  });
});

describe('what is too large is refused before it takes more memory', () => {
  afterEach(() => void vi.restoreAllMocks());
  const token = jwt({ sub: 'ana', padding: 'p'.repeat(30_000) });

  it.each([
    ['new tokens', { access_token: token, refresh_token: token }, undefined],
    ['a token and one that a refresh keeps', { access_token: token }, { idToken: token } as TokenSet],
  ])('%s are not decoded', (_what, response, previous) => {
    const parse = vi.spyOn(JSON, 'parse');
    expect(areTokensTooLarge(response, previous)).toBe(true);
    expect(parse).not.toHaveBeenCalled();
  });

  it('role names are not written as JSON', () => {
    const roles = Array.from({ length: 1_000 }, () => 'a');
    const access = jwt({ resource_access: { ['c'.repeat(100)]: { roles } } });
    const stringify = vi.spyOn(JSON, 'stringify');
    expect(areTokensTooLarge({ access_token: access })).toBe(true);
    expect(stringify).not.toHaveBeenCalled();
  });
});

it('the error says how large tokens may be', () => {
  const { name, message } = new TokensTooLarge();
  expect([name, message]).toEqual([
    'TokensTooLarge',
    'the tokens of the identity provider need more than 65536 bytes in a session',
  ]);
});

it('a session counts in the cache with all its tokens and role names', () => {
  const tokens = { accessToken: 'a', accessIssued: 0, accessExpiry: 0, roles: [] as string[] };
  const size = (changes: Partial<TokenSet>) =>
    sessionCacheLimits.sizeCalculation({ tokens: { ...tokens, ...changes } }) -
    sessionCacheLimits.sizeCalculation({ tokens });
  const long = 'x'.repeat(60_000);
  for (const name of ['refreshToken', 'idToken'] as const) expect(size({ [name]: long })).toBe(60_000);
  expect(size({ accessToken: `a${long}` })).toBe(60_000);
  expect(size({ roles: [long] })).toBeGreaterThanOrEqual(60_000);
  // Short names take more memory than their characters.
  expect(size({ roles: Array(10_000).fill('r') })).toBeGreaterThan(300_000);
});

it('the cache holds a thousand sessions of the largest size, and 8,000 of a usual size', () => {
  const tokens = { accessToken: 'x'.repeat(4_000), accessIssued: 0, accessExpiry: 0, roles: [] };
  const usual = sessionCacheLimits.sizeCalculation({ tokens });
  const largest = sessionCacheLimits.sizeCalculation({ tokens: { ...tokens, accessToken: 'x'.repeat(60_000) } });
  expect(Math.floor(sessionCacheLimits.maxSize / largest)).toBeGreaterThan(1_000);
  expect(Math.floor(sessionCacheLimits.maxSize / usual)).toBeGreaterThan(8_000);
});
