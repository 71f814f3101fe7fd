// Tests the limits of attempts to sign in and of their cookies: age, size and number. Also tests which browser may
// complete an attempt.
import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { beforeEach, describe, expect, it } from 'vitest';
import { Problem } from '../../service/http/problem.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createMemoryStore } from '../sessions/memory-store.ts';
import type { Marks } from '../sessions/store.ts';
import { createAttemptCookies } from './attempt-cookies.ts';
import {
  type Attempt,
  type Attempts,
  attemptId,
  attemptIdPattern,
  createAttempts,
  type SignInRequest,
} from './attempts.ts';

const keys = createKeyRing(`one:${Buffer.alloc(32, 1).toString('base64')}`);
const hour = 3_600_000;
let now: number;
let marks: Marks;
let attempts: Attempts;
beforeEach(() => {
  now = 1_800_000_000_000;
  const clock = () => new Date(now);
  marks = createMemoryStore({ idle: hour, clock }).marks;
  attempts = createAttempts({ keys, clock, marks });
});

const callbackUrl = 'https://app.example.org/token-handler/clients/web/callback';
const signIn: SignInRequest = { tenantId: 'urn:tenant:demo', clientId: 'web', callbackUrl };
const digest = (text: string) => createHash('sha256').update(text).digest('base64url');

describe('an attempt to sign in', () => {
  it('has an unguessable state, whose digest names it', () => {
    const [one, other] = [attempts.begin(signIn), attempts.begin(signIn)];
    expect(one.state).toMatch(/^[\w-]{43}$/);
    expect(one.state).not.toBe(other.state);
    expect(one.id).toBe(digest(`formgate state ${one.state}`).slice(0, 16));
    expect(attemptId(one.state)).toBe(one.id);
    expect(one.id).toMatch(attemptIdPattern);
  });

  it('has a nonce and a code verifier that only the browser with its cookie knows', () => {
    const { sealed, nonce, codeVerifier, id } = attempts.begin(signIn);
    expect(nonce).toBe(digest(`formgate nonce of ${sealed}`));
    expect(codeVerifier).toBe(digest(`formgate code verifier of ${sealed}`));
    expect(attempts.open(id, sealed)).toMatchObject({ nonce, codeVerifier });
  });

  it.each<[string, Partial<SignInRequest>]>([
    ['only what is required', {}],
    ['a landing page', { returnTo: '/here?a=b' }],
    ['a new start', { restarted: true }],
    ['parameters of the frontend', { asked: { prompt: 'login', max_age: '60' } }],
    ['everything', { returnTo: '/here', restarted: true, asked: { login_hint: 'ana@example.org' } }],
    ['a client with a space in its name', { clientId: 'a b', callbackUrl: 'https://x.example/clients/a%20b/callback' }],
    ['a callbackUrl with another ending', { callbackUrl: 'https://x.example/clients/other/callback' }],
    ['a callbackUrl that continues after the usual ending', { callbackUrl: `${callbackUrl}/more` }],
  ])('carries %s in its cookie', (_what, changes) => {
    const given = { ...signIn, ...changes };
    const { id, sealed, signIn: begun } = attempts.begin(given);
    expect(begun).toEqual(given);
    const opened = attempts.open(id, sealed);
    expect(opened).toMatchObject({ id, begun: now, isLate: false });
    expect(opened?.signIn).toStrictEqual(given);
  });

  it('asks for an authentication that is at most max_age old when the attempt begins', () => {
    const opened = (asked: SignInRequest['asked']) => {
      const { id, sealed } = attempts.begin({ ...signIn, ...(asked && { asked }) });
      now += 120_000;
      return attempts.open(id, sealed);
    };
    expect(opened({ max_age: '60' })?.earliestAuthTime).toBe(now - 120_000 - 60_000);
    expect(opened({ max_age: '0' })?.earliestAuthTime).toBe(now - 120_000);
    expect(opened({ prompt: 'login' })).not.toHaveProperty('earliestAuthTime');
    expect(opened(undefined)).not.toHaveProperty('earliestAuthTime');
  });

  it('has a short cookie: members that are not needed are left out', () => {
    const contentOf = (changes: Partial<SignInRequest>) => {
      const { id, sealed } = attempts.begin({ ...signIn, ...changes });
      return JSON.parse(keys.open(sealed, `attempt ${id}`));
    };
    const required = [now, 'urn:tenant:demo', 'web', 'https://app.example.org/token-handler/\\'];
    expect(contentOf({})).toEqual(required);
    expect(contentOf({ returnTo: undefined, asked: undefined })).toEqual(required);
    expect(contentOf({ returnTo: '/x' })).toEqual([...required, '/x']);
    expect(contentOf({ restarted: true })).toEqual([...required, '', { restarted: true }]);
  });

  it('is opened neither with a changed cookie nor with the cookie of another attempt', () => {
    const [one, other] = [attempts.begin(signIn), attempts.begin(signIn)];
    expect(attempts.open(one.id, other.sealed)).toBeUndefined();
    expect(attempts.open(one.id, `${one.sealed}x`)).toBeUndefined();
    expect(attempts.open(one.id, 'x')).toBeUndefined();
    expect(attempts.open(one.id, keys.seal('no JSON', `attempt ${one.id}`))).toBeUndefined();
  });

  it('is late after ten minutes, and forgotten after an hour', () => {
    const { id, sealed } = attempts.begin(signIn);
    now += 600_000;
    expect(attempts.open(id, sealed)?.isLate).toBe(false);
    now += 1;
    expect(attempts.open(id, sealed)?.isLate).toBe(true);
    now += hour - 600_001;
    expect(attempts.open(id, sealed)).toBeDefined();
    now += 1;
    expect(attempts.open(id, sealed)).toBeUndefined();
  });

  it('is completed once, which is remembered until it is late on a replica whose clock is a minute behind', async () => {
    const { id, sealed } = attempts.begin(signIn);
    now += 60_000;
    const attempt = attempts.open(id, sealed) as Attempt;
    const other = attempts.begin(signIn);
    expect(await attempts.claim(attempt)).toBe(true);
    expect(await attempts.claim(attempt)).toBe(false);
    expect(await attempts.claim(attempts.open(other.id, other.sealed) as Attempt)).toBe(true);
    now += 600_000;
    expect(await attempts.claim(attempt)).toBe(false);
    now += 1;
    expect(await attempts.claim({ ...attempt, begun: now })).toBe(true);
  });

  it('can be completed although the response of the store was lost, also if the store is away a little longer', async () => {
    const { id, sealed } = attempts.begin(signIn);
    const attempt = attempts.open(id, sealed) as Attempt;
    const { claim, remove } = marks;
    const away = () => Promise.reject(new Problem('unavailable', 'The store cannot be reached.'));
    const stores = async (...given: Parameters<typeof claim>) => {
      await claim(...given);
      return away();
    };
    Object.assign(marks, { claim: stores, remove: away });
    await expect(attempts.claim(attempt)).rejects.toMatchObject({ slug: 'unavailable' });
    Object.assign(marks, { claim, remove });
    await expect.poll(() => attempts.claim(attempt)).toBe(true);
    // The mark now belongs to another request, which completes the attempt.
    Object.assign(marks, { claim: away });
    await expect(attempts.claim(attempt)).rejects.toMatchObject({ slug: 'unavailable' });
    Object.assign(marks, { claim });
    expect(await attempts.claim(attempt)).toBe(false);
  });

  it('that does not fit into a cookie is refused, and the error names the longer address', () => {
    const fits = (length: number) => {
      try {
        return attempts.begin({ ...signIn, returnTo: `/${'x'.repeat(length)}` }).sealed.length;
      } catch {
        return undefined;
      }
    };
    let length = 2_700;
    while (fits(length + 1) !== undefined) length += 1;
    // Each byte of an attempt adds one or two characters to the cookie, so the longest cookie may have 3,999
    // characters.
    expect(fits(length)).toBeGreaterThanOrEqual(3_999);
    expect(fits(length)).toBeLessThanOrEqual(4_000);
    const pointerOf = (changes: Partial<SignInRequest>) => {
      try {
        attempts.begin({ ...signIn, ...changes });
        return undefined;
      } catch (error) {
        return (error as { errors: { pointer: string }[] }).errors[0]?.pointer;
      }
    };
    const long = (size: number) => `https://x.example/${'y'.repeat(size)}`;
    expect(pointerOf({ returnTo: `/${'x'.repeat(4_000)}` })).toBe('/query/returnTo');
    expect(pointerOf({ callbackUrl: long(4_000) })).toBe('/query/callbackUrl');
    expect(pointerOf({ callbackUrl: long(2_000), returnTo: 'x'.repeat(long(2_000).length) })).toBe('/query/returnTo');
    expect(pointerOf({ callbackUrl: long(2_000), returnTo: 'x'.repeat(long(2_000).length - 1) })).toBe(
      '/query/callbackUrl',
    );
  });
});

/** Creates a response that records the cookies that are set. For a removed cookie, records the value undefined. */
function createResponse() {
  const set: [string, string | undefined, object][] = [];
  const response = {
    cookie: (name: string, value: string, attributes: object) => set.push([name, value, attributes]),
    clearCookie: (name: string, attributes: object) => set.push([name, undefined, attributes]),
  } as unknown as Response;
  return { response, set, removed: () => set.filter(([, value]) => value === undefined).map(([name]) => name) };
}
const request = (pairs: [string, string][] = [], secure = true) =>
  ({
    secure,
    headers: pairs.length === 0 ? {} : { cookie: pairs.map((pair) => pair.join('=')).join('; ') },
  }) as Request;

describe('the cookie of an attempt', () => {
  const cookiesOf = (name = 'session') => createAttemptCookies(name, attempts);
  const usual = { httpOnly: true, sameSite: 'lax', secure: true };

  it('is sent to the endpoints of its client only, for an hour', () => {
    const begun = attempts.begin(signIn);
    const { response, set } = createResponse();
    cookiesOf().issue(begun, request(), response);
    const path = '/token-handler/clients/web';
    expect(set).toEqual([[`session.${begun.id}`, begun.sealed, { ...usual, path, maxAge: hour }]]);
    const plain = createResponse();
    cookiesOf().issue(begun, request([], false), plain.response);
    expect(plain.set[0]?.[2]).toEqual({ ...usual, secure: false, path, maxAge: hour });
  });

  it.each([
    ['a name with the prefix __Host-, which requires it', '__Host-session', callbackUrl],
    ['a callbackUrl without the usual ending', 'session', 'https://app.example.org/other'],
    ['a path with a semicolon', 'session', 'https://app.example.org/a;b/clients/web/callback'],
  ])('has the path / for %s', (_why, name, url) => {
    const { response, set } = createResponse();
    cookiesOf(name).issue(attempts.begin({ ...signIn, callbackUrl: url }), request(), response);
    expect(set[0]?.[2]).toMatchObject({ path: '/' });
  });

  it('is removed with the attributes with which it was set', () => {
    const { id } = attempts.begin(signIn);
    const { response, set } = createResponse();
    cookiesOf().remove({ id, signIn } as Attempt, request(), response);
    expect(set).toEqual([[`session.${id}`, undefined, { ...usual, path: '/token-handler/clients/web' }]]);
  });

  it('is found by the state, also beside up to three others of its name', () => {
    const { state, id, sealed } = attempts.begin(signIn);
    const name = `session.${id}`;
    const tossed = (count: number) =>
      Array.from({ length: count }, (_, nth): [string, string] => [name, `tossed ${nth}`]);
    const find = (pairs: [string, string][]) => cookiesOf().find(request(pairs), state)?.id;
    expect(find([[name, sealed]])).toBe(id);
    expect(find([...tossed(3), [name, sealed]])).toBe(id);
    expect(find([...tossed(4), [name, sealed]])).toBeUndefined();
    expect(find([['session.other', sealed]])).toBeUndefined();
    expect(find([])).toBeUndefined();
    expect(cookiesOf().find(request([[name, sealed]]), 'another state')).toBeUndefined();
  });
});

describe('a browser', () => {
  /** Begins attempts at intervals of one second. Returns their cookies, oldest first. */
  const open = (count: number, changes: Partial<SignInRequest> = {}) =>
    Array.from({ length: count }, (): [string, string] => {
      const { id, sealed } = attempts.begin({ ...signIn, ...changes });
      now += 1_000;
      return [`session.${id}`, sealed];
    });
  const issue = (pairs: [string, string][], changes: Partial<SignInRequest> = {}) => {
    const { response, removed, set } = createResponse();
    const begun = attempts.begin({ ...signIn, ...changes });
    createAttemptCookies('session', attempts).issue(begun, request(pairs), response);
    expect(set.at(-1)?.[0]).toBe(`session.${begun.id}`);
    return { removed: removed(), set };
  };

  it('has 20 open attempts at most: a new one removes the oldest', () => {
    const pairs = open(21);
    const reversed = [...pairs].reverse();
    expect(issue(pairs.slice(2)).removed).toEqual([]);
    expect(issue(pairs.slice(1)).removed).toEqual([pairs[1]?.[0]]);
    expect(issue(reversed).removed).toEqual([pairs[1]?.[0], pairs[0]?.[0]]);
  });

  it('has 7,000 characters of attempts at most', () => {
    const size = ([name, value]: [string, string]) => name.length + value.length + 3;
    const large = open(5, { returnTo: `/${'x'.repeat(1_000)}` });
    const own = size(open(1)[0] as [string, string]);
    let [total, kept] = [own, 0];
    for (const pair of [...large].reverse()) {
      total += size(pair);
      if (total <= 7_000) kept += 1;
    }
    expect(kept).toBeGreaterThan(2);
    expect(issue(large).removed).toEqual(
      large
        .slice(0, 5 - kept)
        .map(([name]) => name)
        .reverse(),
    );
  });

  it('may fill the 7,000 characters exactly', () => {
    const begun = attempts.begin(signIn);
    const names = ['A', 'B'].map((letter) => `session.${letter.repeat(16)}`);
    const small = begun.sealed.length + 3 * `session.${begun.id}=; `.length;
    // Accepts every cookie value as an attempt, so that the test can choose the sizes of the values.
    const opened = { open: (id: string) => ({ id, signIn, begun: 0 }) as Attempt };
    for (const excess of [0, 1]) {
      const values = ['x'.repeat(100), 'x'.repeat(7_000 - small - 100 + excess)];
      const { response, removed } = createResponse();
      const pairs = names.map((name, nth): [string, string] => [name, values[nth] ?? '']);
      createAttemptCookies('session', opened).issue(begun, request(pairs), response);
      expect(removed()).toEqual(excess === 0 ? [] : [names[1]]);
    }
  });

  it('loses cookies that look like attempts but were not made here, and keeps all others', () => {
    const tossed = `session.${'A'.repeat(16)}`;
    const others: [string, string][] = [
      ['session', 'x'],
      ['other', 'x'],
      [`sessionX${'A'.repeat(16)}`, 'x'],
      [`session.${'A'.repeat(15)}`, 'x'],
      [`session.${'A'.repeat(17)}`, 'x'],
      [`session."${'A'.repeat(15)}`, 'x'],
    ];
    const { removed, set } = issue([[tossed, 'x'], ...others]);
    expect(removed).toEqual([tossed]);
    expect(set[0]?.[2]).toEqual({ httpOnly: true, sameSite: 'lax', secure: true, path: '/token-handler/clients/web' });
  });

  it('keeps an attempt beside a cookie of its name that was not made here', () => {
    const [[name, value] = ['', '']] = open(1);
    const pairs: [string, string][] = [
      [name, 'tossed'],
      [name, value],
    ];
    expect(issue(pairs).removed).toEqual([]);
    expect(issue(pairs.reverse()).removed).toEqual([]);
  });
});
