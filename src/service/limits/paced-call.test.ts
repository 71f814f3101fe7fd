// Tests which callers share a call, and when calls start.
import { expect, it } from 'vitest';
import { pacedCall, startBudget } from './paced-call.ts';

/** Records the calls. Each call ends when the test resolves it. */
function createCalls() {
  const calls: PromiseWithResolvers<number>[] = [];
  const paced = pacedCall(
    () => {
      const call = Promise.withResolvers<number>();
      calls.push(call);
      return call.promise;
    },
    () => 0,
  );
  return { calls, paced };
}

it('callers share the call that has not started, and none that runs already', async () => {
  const { calls, paced } = createCalls();
  const first = [paced.next(), paced.next()];
  await expect.poll(() => calls.length).toBe(1);
  const second = [paced.next(), paced.next()];
  paced.request();
  calls[0]?.resolve(1);
  expect(await Promise.all(first)).toEqual([1, 1]);
  await expect.poll(() => calls.length).toBe(2);
  calls[1]?.resolve(2);
  expect(await Promise.all(second)).toEqual([2, 2]);
  expect([calls.length, paced.running]).toEqual([2, undefined]);
});

it('a call that fails fails for its callers only', async () => {
  const { calls, paced } = createCalls();
  const first = paced.next().catch((error: unknown) => error);
  await expect.poll(() => calls.length).toBe(1);
  const second = paced.next();
  const failure = new Error('no');
  calls[0]?.reject(failure);
  expect(await first).toBe(failure);
  await expect.poll(() => calls.length).toBe(2);
  calls[1]?.resolve(2);
  expect(await second).toBe(2);
});

it('a request that nobody waits for fails silently', async () => {
  const { calls, paced } = createCalls();
  paced.request();
  await expect.poll(() => calls.length).toBe(1);
  calls[0]?.reject(new Error('no'));
  await expect.poll(() => paced.running).toBe(undefined);
});

it('a call starts when its delay is over', async () => {
  const delays = [0, 30];
  const starts: number[] = [];
  const paced = pacedCall(
    async () => starts.push(performance.now()),
    () => delays.shift() ?? 0,
  );
  const began = performance.now();
  await paced.next();
  await paced.next();
  expect(Number(starts[1]) - began).toBeGreaterThanOrEqual(29);
});

it('a budget permits a second’s calls at once, then one after the other, and fills up again', () => {
  let now = 5_000;
  const reserve = startBudget(4, () => now);
  expect(Array.from({ length: 7 }, reserve)).toEqual([0, 0, 0, 0, 250, 500, 750]);
  now += 1_750;
  expect(Array.from({ length: 5 }, reserve)).toEqual([0, 0, 0, 0, 250]);
  now += 100_000;
  expect(Array.from({ length: 5 }, reserve)).toEqual([0, 0, 0, 0, 250]);
});
