// Tests reading cookies from a Cookie header: against a simple definition with generated headers, and which session
// cookie counts if other hosts of the domain have set cookies of its name.
import { createHmac, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cookiePairs, cookieValues } from '../../service/http/cookie-header.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createSessionCookie, handleOf } from './cookies.ts';

const name = 'session';
const cookie = createSessionCookie(name, createKeyRing(`a:${randomBytes(32).toString('base64')}`));
/** As cookie-signature signs, which express-session uses. */
function signedValue(id: string): string {
  const [secret = ''] = cookie.secrets;
  return encodeURIComponent(`s:${id}.${createHmac('sha256', secret).update(id).digest('base64').replace(/=+$/, '')}`);
}
const [own, other] = [signedValue('own'), signedValue('other')];
const forged = `${own.slice(0, -4)}AAAA`;

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
    const started = performance.now();
    expect(cookieValues(header, name)).toEqual(['1']);
    expect(performance.now() - started).toBeLessThan(2_000);
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
