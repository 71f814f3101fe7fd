import { describe, expect, it } from 'vitest';
import { codeAlphabet, codeLength, digestCheck, digestCode, generateCode, judgeCode, maxFailures } from './code.ts';

const key = 'a key of tests with more than 32 characters';
const place = { subscriberId: 'a'.repeat(24), channel: 'email', address: 'ana@example.org' };
const now = new Date('2026-08-20T12:00:00Z');
const later = new Date(now.getTime() + 1);

describe('a code', () => {
  it('has six characters of the alphabet, all of which come up about equally often', () => {
    const counts = new Map<string, number>();
    for (let n = 0; n < 5_000; n += 1) {
      const code = generateCode();
      expect(code).toHaveLength(codeLength);
      for (const character of code) counts.set(character, (counts.get(character) ?? 0) + 1);
    }
    expect([...counts.keys()].toSorted().join('')).toBe([...codeAlphabet].toSorted().join(''));
    const expected = (5_000 * codeLength) / codeAlphabet.length;
    for (const count of counts.values()) expect(Math.abs(count - expected)).toBeLessThan(expected / 4);
  });

  it('is stored as an HMAC that depends on the key, the code, the subscriber, the channel and the address', () => {
    const digests = [
      digestCode(key, place, 'K2TPX4'),
      digestCode(`${key}.`, place, 'K2TPX4'),
      digestCode(key, place, 'K2TPX5'),
      digestCode(key, { ...place, subscriberId: 'b'.repeat(24) }, 'K2TPX4'),
      digestCode(key, { ...place, channel: 'sms' }, 'K2TPX4'),
      digestCode(key, { ...place, address: 'bob@example.org' }, 'K2TPX4'),
    ].map((digest) => digest.toString('hex'));
    expect(new Set(digests).size).toBe(digests.length);
    expect(digests.join()).not.toContain('K2TPX4');
  });
});

describe('a check', () => {
  const digest = digestCode(key, place, 'K2TPX4');
  const wrong = digestCode(key, place, 'K2TPX5');
  const sent = { digest, verifiedCheck: null };

  it('verifies the right code before it expires', () => {
    expect(judgeCode({ ...sent, expires: later, failures: 0 }, digest, now)).toBe('verified');
    expect(judgeCode({ ...sent, expires: now, failures: 0 }, digest, now)).toBe('dead');
  });

  it('fails for a code that was used or removed', () => {
    expect(judgeCode({ ...sent, digest: null, expires: later, failures: 0 }, digest, now)).toBe('dead');
  });

  it('that used the code verifies it again until it expires; another check does not', () => {
    const [check, other] = [digestCheck(key, digest, 'check-1'), digestCheck(key, digest, 'check-2')];
    const used = { digest: null, verifiedCheck: check, expires: later, failures: 0 };
    expect(judgeCode(used, digest, now, check)).toBe('repeated');
    expect(judgeCode({ ...used, expires: now }, digest, now, check)).toBe('dead');
    expect(judgeCode(used, digest, now, other)).toBe('dead');
    expect(judgeCode(used, digest, now)).toBe('dead');
    expect(judgeCode(used, wrong, now, digestCheck(key, wrong, 'check-1'))).toBe('dead');
    expect(judgeCode({ ...used, verifiedCheck: null }, digest, now, check)).toBe('dead');
  });

  it('counts a wrong code as a failure, and ends the code with the tenth', () => {
    expect(judgeCode({ ...sent, expires: later, failures: maxFailures - 2 }, wrong, now)).toBe('failed');
    expect(judgeCode({ ...sent, expires: later, failures: maxFailures - 1 }, wrong, now)).toBe('exhausted');
    expect(judgeCode({ ...sent, expires: later, failures: maxFailures - 1 }, digest, now)).toBe('verified');
  });
});
