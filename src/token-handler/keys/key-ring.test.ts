// Sealing and digests under a ring of keys, and its rotation.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createKeyRing, KeyRingError, keyRingProblem } from './key-ring.ts';

const key = () => randomBytes(32).toString('base64');
const first = `2026a:${key()}`;
const second = `2026b:${key()}`;
const ring = createKeyRing(first);

describe('a sealed text', () => {
  it('opens to what was sealed, whatever it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, context) => {
        expect(ring.open(ring.seal(text, context), context)).toBe(text.toWellFormed());
      }),
    );
  });

  it('is kid, nonce, ciphertext and tag, and holds nothing of the text', () => {
    const sealed = ring.seal('a very secret text', 'tests');
    expect(sealed).toMatch(/^2026a(\.[\w-]+){3}$/);
    expect(sealed).not.toContain(Buffer.from('secret').toString('base64url'));
  });

  it('is another one each time', () => {
    expect(new Set(Array.from({ length: 100 }, () => ring.seal('same', 'tests'))).size).toBe(100);
  });

  it('does not open for another context, so that one row’s secret cannot be put into another row', () => {
    expect(() => ring.open(ring.seal('x', 'secret of a'), 'secret of b')).toThrow(KeyRingError);
  });

  it('does not open when any character of it was changed, left out or added', () => {
    const sealed = ring.seal('text', 'tests');
    for (let at = 0; at < sealed.length; at += 1) {
      const other = sealed[at] === 'Q' ? 'g' : 'Q';
      for (const changed of [
        `${sealed.slice(0, at)}${other}${sealed.slice(at + 1)}`,
        `${sealed.slice(0, at)}${sealed.slice(at + 1)}`,
      ]) {
        // The last character of a part carries bits that base64url drops.
        if (sameParts(changed, sealed)) continue;
        expect(() => ring.open(changed, 'tests'), changed).toThrow(KeyRingError);
      }
    }
    expect(() => ring.open(`${sealed}.AAAA`, 'tests')).toThrow(KeyRingError);
  });

  it.each(['', '2026a', '2026a...', 'plain text', 'a.b.c.d'])('is not %j', (text) => {
    expect(() => ring.open(text, 'tests')).toThrow(KeyRingError);
  });
});

function sameParts(one: string, other: string): boolean {
  const parts = (text: string) => text.split('.').map((part, at) => (at === 0 ? part : Buffer.from(part, 'base64url')));
  return JSON.stringify(parts(one)) === JSON.stringify(parts(other));
}

describe('rotation', () => {
  const rotated = createKeyRing(`${second},${first}`);

  it('what the old key sealed opens while that key is in the ring, and not afterwards', () => {
    const sealed = ring.seal('x', 'tests');
    expect(rotated.open(sealed, 'tests')).toBe('x');
    expect(() => createKeyRing(second).open(sealed, 'tests')).toThrow(/not in the ring/);
  });

  it('what the old key sealed is no longer current, so that it can be sealed again', () => {
    expect(rotated.isCurrent(ring.seal('x', 'tests'))).toBe(false);
    expect(rotated.isCurrent(rotated.seal('x', 'tests'))).toBe(true);
    expect(createKeyRing(`2026:${key()}`).isCurrent(ring.seal('x', 'tests'))).toBe(false);
  });

  it('a digest of the old key is still recognised, and can be looked up', () => {
    const digest = ring.hmac('x', 'csrf');
    expect(rotated.hmac('x', 'csrf')).not.toBe(digest);
    expect(rotated.isHmac(digest, 'x', 'csrf')).toBe(true);
    expect(rotated.hmacs('x', 'csrf')).toEqual([rotated.hmac('x', 'csrf'), digest]);
    expect(createKeyRing(second).isHmac(digest, 'x', 'csrf')).toBe(false);
  });
});

describe('a digest', () => {
  it('is the same for the same text and purpose, and another for another of either', () => {
    expect(ring.hmac('x', 'csrf')).toBe(createKeyRing(first).hmac('x', 'csrf'));
    expect(ring.hmac('x', 'csrf')).not.toBe(ring.hmac('y', 'csrf'));
    expect(ring.hmac('x', 'csrf')).not.toBe(ring.hmac('x', 'handle'));
  });

  it.each(['', 'short', 'ö'.repeat(43)])('is not %j', (given) => {
    expect(ring.isHmac(given, 'x', 'csrf')).toBe(false);
  });
});

describe('a ring', () => {
  const good = key();
  it.each([
    ['nothing', '', /not written as name:base64/],
    ['a key without a name', good, /not written as name:base64/],
    ['a key that is no base64', 'a:not base64!', /not written as name:base64/],
    ['a key of 31 bytes', `a:${randomBytes(31).toString('base64')}`, /key 1 of the ring has less than 32 bytes/],
    ['two keys of one name', `a:${good},a:${key()}`, /key 2 of the ring has the name of an earlier one/],
    ['a comma too many', `a:${good},`, /key 2 of the ring/],
  ])('is not %s, and the problem does not show the key', (_, keys, problem) => {
    expect(keyRingProblem(keys)).toMatch(problem);
    expect(keyRingProblem(keys)).not.toContain(good);
  });

  it('may be written with blanks, in base64url, and with keys of more than 32 bytes', () => {
    const keys = `a:${randomBytes(64).toString('base64url')} , b:${good}`;
    expect(keyRingProblem(keys)).toBeUndefined();
  });
});
