// Tests when the latency of honest users counts as worse than without adversaries.
import { expect, it } from 'vitest';
import type { Sample } from './honest/recorder.ts';
import { baselinePhase, judgeLatency } from './invariants.ts';
import { latencies } from './latency.ts';

/** Returns `count` samples: `slow` of them take `milliseconds`, and the others take 10 ms. */
function samplesOf(phase: string, count: number, slow: number, milliseconds: number): Sample[] {
  return Array.from({ length: count }, (_, index) => ({
    ...{ kind: 'sign-in' as const, phase, milliseconds: index < slow ? milliseconds : 10 },
  })) as Sample[];
}

const attack = 'garbage';

it.each([
  ['one request in a hundred is slow', 20, []],
  [
    'three in a hundred are slow',
    60,
    [expect.stringMatching(/^p99 of sign-in: 900 ms with adversaries, 10 ms without/)],
  ],
])('with adversaries, %s', (_name, slow, problems) => {
  const samples = [...samplesOf(baselinePhase, 300, 0, 0), ...samplesOf(attack, 2_000, slow, 900)];
  expect(judgeLatency(samples, 250)).toEqual(problems);
});

it('the interval of p99 contains it, and is wide for few values', () => {
  const values = (count: number) => Array.from({ length: count }, (_, index) => samplesOf(attack, 1, 1, index)).flat();
  const [few, many] = [100, 10_000].map((count) => latencies(values(count), () => true)['sign-in']);
  expect(few?.p99Interval).toEqual([expect.closeTo(97, -1), 99]);
  expect(many?.p99Interval[0]).toBeGreaterThan(9_850);
  expect(many?.p99Interval[1]).toBeLessThan(9_950);
});
