import { expect, it } from 'vitest';
import { remembered } from './remembered.ts';

/** Returns a function that caches decisions, and the list of strings that were not found in the cache. */
function deciding(most = 2, longest = 3) {
  const decided: string[] = [];
  const decide = (text: string) => {
    decided.push(text);
    return text.includes('b');
  };
  return { decided, decide: remembered(decide, { most, longest }) };
}

it('a decision is made once for each text, whatever it is', () => {
  const { decided, decide } = deciding();
  expect(['a', 'b', 'a', 'b'].map(decide)).toEqual([false, true, false, true]);
  expect(decided).toEqual(['a', 'b']);
});

it('once the cache is full, a decision about a new text is made each time, and cached decisions stay', () => {
  const { decided, decide } = deciding();
  expect(['a', 'b', 'c', 'c', 'a', 'b'].map(decide)).toEqual([false, true, false, false, false, true]);
  expect(decided).toEqual(['a', 'b', 'c', 'c']);
});

it('a decision about a text that is longer than the limit is made each time', () => {
  const { decided, decide } = deciding();
  expect(['abc', 'abc', 'abcd', 'abcd', 'a', 'a'].map(decide)).toEqual([true, true, true, true, false, false]);
  expect(decided).toEqual(['abc', 'abcd', 'abcd', 'a']);
});
