// The wait before another code may be tried or sent, which Retry-After reports.
import { describe, expect, it } from 'vitest';
import { attemptWait, sendWait } from './code.ts';

const now = new Date('2026-08-20T17:00:00Z');
const minute = 60_000;
const ago = (minutes: number) => new Date(now.getTime() - minutes * minute);
const wrong = (minutes: number) => ({ attempted: ago(minutes), wrong: true });
const unfinished = (minutes: number) => ({ attempted: ago(minutes), wrong: false });

describe('the wait until a code may be tried', () => {
  it.each([
    ['no tries', [], 0],
    ['four wrong codes', [1, 2, 3, 4].map(wrong), 0],
    ['five wrong codes, until the first is an hour old', [1, 2, 3, 4, 10].map(wrong), 50],
    ['six wrong codes, until the second is an hour old', [1, 2, 3, 4, 10, 20].map(wrong), 50],
    [
      'four wrong codes and a check that has just begun, until that must have ended',
      [unfinished(0.25), ...[1, 2, 3, 4].map(wrong)],
      0.75,
    ],
    [
      'four wrong codes and a check whose process died, minutes and not a second',
      [unfinished(2), ...[3, 4, 5, 6].map(wrong)],
      54,
    ],
    ['five checks whose process died', [2, 3, 4, 5, 6].map(unfinished), 54],
  ])('after %s', (_what, tries, minutes) => {
    expect(attemptWait(tries, now)).toBe(minutes * minute);
  });
});

describe('the wait until a code may be sent', () => {
  it.each([
    ['none was sent', [], 0],
    ['one was sent 20 s ago', [1 / 3], 2 / 3],
    ['five were sent within the hour', [5, 10, 15, 20, 25], 35],
    ['five were sent, the last a moment ago', [0.5, 10, 15, 20, 59.75], 0.5],
  ])('when %s', (_what, sent, minutes) => {
    expect(sendWait(sent.map(ago), now)).toBe(minutes * minute);
  });
});
