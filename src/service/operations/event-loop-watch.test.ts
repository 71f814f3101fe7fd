import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { watchEventLoop } from './event-loop-watch.ts';

const block = (milliseconds: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

it('a blocked event loop is reported immediately and for a while afterwards', async () => {
  const watch = watchEventLoop({ beat: 20, longestDelay: 1_000, memory: 3_000 });
  await delay(50);
  expect(watch.problem()).toBeUndefined();
  block(1_500);
  expect(watch.problem()).toContain('the event loop was blocked');
  await delay(100);
  expect(watch.problem()).toContain('the event loop was blocked');
  await expect.poll(() => watch.problem()).toBeUndefined();
  watch.stop();
});
