// Tests which texts Postgres can store, and how other texts are changed so that it can.
import { describe, expect, it } from 'vitest';
import { storable, storableText, unstorable } from './storable-text.ts';

describe('a text', () => {
  it.each(['', 'Ana', 'Zoë 😀', '\u0001\n\ufffd'])('can be stored: %j', (text) => {
    expect(unstorable(text)).toBeUndefined();
    expect(storable(text, 100)).toBe(text);
  });

  it.each([
    ['a\0b', 'contains a NUL character', 'a\ufffdb'],
    ['\0\0', 'contains a NUL character', '\ufffd\ufffd'],
    ['a\ud83d', 'contains a lone surrogate', 'a\ufffd'],
    ['\ude00a', 'contains a lone surrogate', '\ufffda'],
  ])('cannot be stored: %j; the reason is known, and the text can be repaired', (text, reason, repaired) => {
    expect(unstorable(text)).toBe(reason);
    expect(storable(text, 100)).toBe(repaired);
    expect(unstorable(storable(text, 100))).toBeUndefined();
  });

  it('is cut to the longest length, and half of a character at the end is replaced', () => {
    expect(storable('abc', 2)).toBe('ab');
    expect(storable('a😀', 2)).toBe('a\ufffd');
    expect(storable('\0bc', 2)).toBe('\ufffdb');
  });
});

describe('a field with a storable text', () => {
  it('accepts a text of the longest length', () => {
    expect(storableText(3).parse('abc')).toBe('abc');
    expect(storableText(3).parse('')).toBe('');
  });

  it.each([
    ['longer', 'abcd'],
    ['with a NUL character', 'a\0'],
    ['with half of a character', 'a\ud83d'],
    ['of another type', 7],
  ])('refuses one that is %s', (_what, value) => {
    expect(storableText(3).safeParse(value).success).toBe(false);
  });
});
