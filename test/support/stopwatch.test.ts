import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { cpuOf, startStopwatch } from './stopwatch.ts';

const block = (milliseconds: number) => {
  for (const end = performance.now() + milliseconds; performance.now() < end; );
};

it('counts the time of a wait', async () => {
  const stopwatch = startStopwatch();
  await delay(300);
  expect(stopwatch.stop()).toBeGreaterThan(20);
});

it('hardly counts a stall', async () => {
  const stopwatch = startStopwatch();
  block(1_000);
  expect(stopwatch.stop()).toBeLessThanOrEqual(30);
});

it('measures the CPU time of work, and not the time that passes', () => {
  const sleeping = cpuOf(() => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500));
  let calls = 0;
  const work = () => {
    for (; calls < 3_000_000; calls += 1) Math.sqrt(calls);
  };
  expect(sleeping).toBeLessThan(400);
  expect(cpuOf(work)).toBeGreaterThan(0);
});
