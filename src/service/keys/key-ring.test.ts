// Tests sealing, digests and key rotation.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createKeyRing, KeyRingError, keyRingProblem } from './key-ring.ts';

const key = () => randomBytes(32).toString('base64');
const first = `2026a:${key()}`;
const second = `2026b:${key()}`;
const ring = createKeyRing(first);

describe('a sealed text', () => {
  it('opens to the original text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, context) => {
        expect(ring.open(ring.seal(text, context), context)).toBe(text.toWellFormed());
      }),
    );
  });

  it('consists of kid, nonce, ciphertext and tag, and does not contain the text', () => {
    const sealed = ring.seal('a very secret text', 'tests');
    expect(sealed).toMatch(/^2026a(\.[\w-]+){3}$/);
    expect(sealed).not.toContain(Buffer.from('secret').toString('base64url'));
  });

  it('is different each time', () => {
    expect(new Set(Array.from({ length: 100 }, () => ring.seal('same', 'tests'))).size).toBe(100);
  });

  it('does not open for another context, so a secret cannot be moved to another row', () => {
    expect(() => ring.open(ring.seal('x', 'secret of a'), 'secret of b')).toThrow(KeyRingError);
  });

  it('does not open if a character was changed, removed or added', () => {
    const sealed = ring.seal('text', 'tests');
    for (let at = 0; at < sealed.length; at += 1) {
      const other = sealed[at] === 'Q' ? 'g' : 'Q';
      for (const changed of [
        `${sealed.slice(0, at)}${other}${sealed.slice(at + 1)}`,
        `${sealed.slice(0, at)}${sealed.slice(at + 1)}`,
      ]) {
        // Skips changes without effect: decoding base64url ignores some bits of a part's last character.
        if (sameParts(changed, sealed)) continue;
        expect(() => ring.open(changed, 'tests'), changed).toThrow(KeyRingError);
      }
    }
    expect(() => ring.open(`${sealed}.AAAA`, 'tests')).toThrow(KeyRingError);
  });

  it.each(['', '2026a', '2026a...', 'plain text', 'a.b.c.d'])('cannot be %j', (text) => {
    expect(() => ring.open(text, 'tests')).toThrow(KeyRingError);
  });
});

describe('a text of an earlier version', () => {
  const ofVersion02 = createKeyRing(`k1:${Buffer.alloc(32, 7).toString('base64')}`);
  const sealed = 'k1.kylzWm3JnZ_4mhuIvjrC0r5DI3-cW2p3w541Jg.CTr_2vjRRK6ngFs.cllpfl1tRMz7v08vPZbapg';

  it('still opens, so sessions and registrations outlive an upgrade', () => {
    expect(ofVersion02.open(sealed, 'tests')).toBe('Straße ✓');
  });

  it('has the same digest, so cookies outlive an upgrade', () => {
    expect(ofVersion02.hmacs('x', 'session cookie')).toEqual(['myygdnzJIGpCGUlacmbSSV1dr5YC_AKk771kpfxFw3M']);
  });

  // A tag of n bits is guessed with a probability of 2^-n (NIST SP 800-38D, appendix C).
  it.each([0, 4, 8, 12, 13, 14, 15])('does not open with the first %i bytes of its tag', (length) => {
    const parts = sealed.split('.');
    const tag = Buffer.from(parts[3] ?? '', 'base64url').subarray(0, length);
    const shortened = [...parts.slice(0, 3), tag.toString('base64url')].join('.');
    expect(() => ofVersion02.open(shortened, 'tests')).toThrow('the text was changed');
  });

  it.each([
    ['without a nonce', 0],
    ['with half a nonce', 16],
    ['with a longer vector', 29],
  ])('is not sealed %s', (_what, length) => {
    const [id, , ...rest] = sealed.split('.');
    const changed = [id, Buffer.alloc(length, 1).toString('base64url'), ...rest].join('.');
    expect(() => ofVersion02.open(changed, 'tests')).toThrow('the text is not sealed');
  });

  it.each(['k1', 'k1.', 'k1.AAAA', 'k1.AAAA.AAAA', `${sealed}.`])('is not sealed with other parts: %s', (text) => {
    expect(() => ofVersion02.open(text, 'tests')).toThrow('the text is not sealed');
  });
});

function sameParts(one: string, other: string): boolean {
  const parts = (text: string) => text.split('.').map((part, at) => (at === 0 ? part : Buffer.from(part, 'base64url')));
  return JSON.stringify(parts(one)) === JSON.stringify(parts(other));
}

describe('rotation', () => {
  const rotated = createKeyRing(`${second},${first}`);

  it('opens texts of the old key while that key is in the ring, and not afterwards', () => {
    const sealed = ring.seal('x', 'tests');
    expect(rotated.open(sealed, 'tests')).toBe('x');
    expect(() => createKeyRing(second).open(sealed, 'tests')).toThrow(/not in the ring/);
  });

  it('makes digests with every key, the current one first', () => {
    expect(rotated.hmacs('x', 'session cookie')).toEqual(
      [second, first].flatMap((keys) => createKeyRing(keys).hmacs('x', 'session cookie')),
    );
  });
});

it('a digest depends on the text, the purpose and the key', () => {
  const digest = ring.hmacs('x', 'session cookie');
  expect(createKeyRing(first).hmacs('x', 'session cookie')).toEqual(digest);
  for (const other of [
    ring.hmacs('y', 'session cookie'),
    ring.hmacs('x', 'other'),
    createKeyRing(second).hmacs('x', 'session cookie'),
  ])
    expect(other).not.toEqual(digest);
});

describe('a ring', () => {
  const good = key();
  it.each([
    ['nothing', '', /not written as name:base64/],
    ['a key without a name', good, /not written as name:base64/],
    ['a key with a space in its name', `a b:${good}`, /not written as name:base64/],
    ['a key with a name of 33 characters', `${'a'.repeat(33)}:${good}`, /not written as name:base64/],
    ['a key that is no base64', 'a:not base64!', /not written as name:base64/],
    ['a key of 31 bytes', `a:${randomBytes(31).toString('base64')}`, /key 1 of the ring has fewer than 32 bytes/],
    ['two keys of one name', `a:${good},a:${key()}`, /key 2 of the ring has the same name as an earlier key/],
    ['a comma too many', `a:${good},`, /key 2 of the ring/],
  ])('cannot be %s, and the problem does not show the key', (_, keys, problem) => {
    expect(keyRingProblem(keys)).toMatch(problem);
    expect(keyRingProblem(keys)).not.toContain(good);
  });

  it('may have spaces, base64url, and keys of more than 32 bytes', () => {
    const keys = `a:${randomBytes(64).toString('base64url')} , b:${good}`;
    expect(keyRingProblem(keys)).toBeUndefined();
  });
});
