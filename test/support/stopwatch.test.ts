import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { cpuOf, startStopwatch, turnsOf } from './stopwatch.ts';

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

it('measures the longest block of the event loop, and not the waits', async () => {
  const compute = () => {
    for (let calls = 0; calls < 30_000_000; calls += 1) Math.sqrt(calls);
  };
  const own = cpuOf(compute);
  const blocked = await turnsOf(async () => {
    await delay(20);
    compute();
    await delay(20);
  });
  expect(blocked.longest).toBeGreaterThanOrEqual(own / 4);
  const waited = await turnsOf(async () => {
    for (let waits = 0; waits < 20; waits += 1) await delay(20);
  });
  expect(waited.longest).toBeLessThan(100);
  expect(waited.count).toBeGreaterThan(10);
});
