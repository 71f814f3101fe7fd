// Tests how cookies are read. Generates Cookie headers from names and values, and compares the values that are read
// with the generated values. Also tests which session cookie is used if other hosts of the domain have set cookies of
// the same name.
import { createHmac, randomBytes } from 'node:crypto';
import type { Request, Response } from 'express';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cpuOf } from '../../../test/support/stopwatch.ts';
import { cookiePairs, cookieValues } from '../../service/http/cookie-header.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { requiresHttps } from './cookie-name.ts';
import { checkCookieScheme, cookieScheme, createSessionCookie, csrfToken, handleOf } from './cookies.ts';

const name = 'session';
const cookie = createSessionCookie(name, createKeyRing(`a:${randomBytes(32).toString('base64')}`));
/** Signs an id in the same way as cookie-signature, the library that express-session uses. */
function signedValue(id: string): string {
  const [secret = ''] = cookie.secrets;
  return encodeURIComponent(`s:${id}.${createHmac('sha256', secret).update(id).digest('base64').replace(/=+$/, '')}`);
}
const [own, other] = [signedValue('own'), signedValue('other')];
const forged = `${own.slice(0, -4)}AAAA`;

describe('the pairs of a Cookie header', () => {
  it.each([
    ['', []],
    ['a', []],
    ['=x; a', [['', 'x']]],
    ['a=1;b', [['a', '1']]],
    [
      ' a = 1 ; b==2',
      [
        ['a', '1'],
        ['b', '=2'],
      ],
    ],
  ])('of %j are %j', (header, pairs) => {
    expect(cookiePairs(header)).toEqual(pairs);
  });
});

describe('the values of a cookie', () => {
  it('are those of the pairs with exactly this name', () => {
    const piece = fc.constantFrom('session', 'session.x', 'my-session', '=', ';', ' ', '\t', ';;', '; ', 'a', '1', '"');
    const header = fc.array(piece, { maxLength: 14 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(header, (text) => {
        const values = cookiePairs(text).filter(([one]) => one === name);
        expect(cookieValues(text, name)).toEqual([...new Set(values.map(([, value]) => value))]);
      }),
      { numRuns: 2_000, examples: [['session=a; session=b;session = a ;session'], ['x=session=1'], ['session==;=;']] },
    );
  });

  it('are found in linear time', () => {
    const header = `${'session;'.repeat(200_000)}session=1`;
    const milliseconds = cpuOf(() => expect(cookieValues(header, name)).toEqual(['1']));
    expect(milliseconds).toBeLessThan(10_000);
  });
});

describe('the session of a Cookie header', () => {
  const handle = handleOf('own');
  it.each([
    ['the only cookie', `${name}=${own}`, handle],
    ['a cookie among others', `a=1; ${name}=${own}; XSRF-TOKEN=x; ${name}.2=${other}`, handle],
    ['the same cookie twice', `${name}=${own}; ${name}=${own}`, handle],
    ['the validly signed of several', `${name}=x; ${name}=${forged}; ${name}=${own}; ${name}=`, handle],
    ['none of two validly signed ones', `${name}=${own}; ${name}=${other}`, undefined],
    ['none of more than four values', `${name}=1; ${name}=2; ${name}=3; ${name}=4; ${name}=${own}`, undefined],
    ['no forged cookie', `${name}=${forged}`, undefined],
    ['no cookie of another name', `my-${name}=${own}; ${name}.2=${own}; ${name.toUpperCase()}=${own}`, undefined],
    ['no cookie', undefined, undefined],
  ])('is that of %s', (_, header, expected) => {
    for (let time = 0; time < 2; time += 1) {
      expect(cookie.handleOf(header)).toBe(expected);
      expect(cookie.valueIn(header)).toBe(expected && own);
    }
  });
});

describe('a session cookie', () => {
  const rotated = createSessionCookie(
    name,
    createKeyRing(`new:${randomBytes(32).toString('base64')},k1:${Buffer.alloc(32, 7).toString('base64')}`),
  );
  const [newest = '', oldest = ''] = rotated.secrets;
  const sign = (id: string, secret: string) =>
    createHmac('sha256', secret).update(id).digest('base64').replace(/=$/, '');

  it('stays valid when the key ring is rotated, as long as the ring has its key', () => {
    for (const secret of [newest, oldest])
      expect(rotated.handleOf(`${name}=s:own.${sign('own', secret)}`)).toBe(handleOf('own'));
    expect(rotated.handleOf(`${name}=s:own.${sign('own', 'another')}`)).toBeUndefined();
  });

  it('outlives an upgrade: its secret and the handle of its session are those of version 0.2', () => {
    expect(oldest).toBe('Eh3DYOdU1Hh1fNbT-2LklLz7oQ-WKegFrGistTRbHQU');
    expect(handleOf('an id')).toBe('ubHbPFt5Xz4mLw22-koNzkB-Ncj4YEn8jyrPafas8zM');
    expect(csrfToken({ handle: 'a handle', csrfSecret: 'a secret' })).toBe(
      'A6y2RidTqsJo3xtrlA0m6m8HbmsGYZTURKuRXnl4qYM',
    );
  });

  it.each([
    ['another prefix', `x:own.${sign('own', newest)}`],
    ['no prefix', `own.${sign('own', newest)}`],
    ['no id', `s:.${sign('own', newest)}`],
    ['no dot', `s:own${sign('own', newest)}`],
    ['no signature', 's:own.'],
    ['an invalid percent sign', `s:own.${sign('own', newest)}%zz`],
    ['a signature that is longer', `s:own.${sign('own', newest)}A`],
  ])('is refused with %s', (_what, value) => {
    expect(rotated.handleOf(`${name}=${value}`)).toBeUndefined();
  });
});

describe('a cookie that browsers accept over https only', () => {
  it.each([
    ['__Host-session', true],
    ['__Secure-session', true],
    ['session', false],
    ['x__Host-session', false],
    ['__Hostsession', false],
    ['__host-session', false],
  ])('%s: %s', (cookieName, expected) => {
    expect(requiresHttps(cookieName)).toBe(expected);
    const check = (secure: boolean) => () => checkCookieScheme(cookieName, { secure });
    expect(check(true)).not.toThrow();
    if (!expected) expect(check(false)).not.toThrow();
    else
      expect(check(false)).toThrow(
        expect.objectContaining({ slug: 'invalid-request', errors: [expect.objectContaining({ pointer: '' })] }),
      );
  });

  it('is refused before a sign-in that could not set it', () => {
    const guard = cookieScheme('__Host-session');
    expect(guard.name).toBe('cookieScheme');
    const request = (secure: boolean) => ({ secure }) as Request;
    expect(() => guard.check(request(false), {} as Response)).toThrow('');
    expect(() => guard.check(request(true), {} as Response)).not.toThrow();
  });
});
