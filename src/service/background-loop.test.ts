// Tests when background work is repeated, and that it ends when the process stops.
import { expect, it } from 'vitest';
import { startBackgroundLoop } from './background-loop.ts';

const backoff = { first: 1, cap: 4 };
const never = () => expect.unreachable('no piece fails');

it('a piece follows the pause that the piece before it asks for', async () => {
  const begun: number[] = [];
  const loop = startBackgroundLoop({
    work: async () => {
      begun.push(performance.now());
      return begun.length === 1 ? 50 : 600_000;
    },
    backoff,
    onFailure: never,
  });
  await expect.poll(() => begun).toHaveLength(2);
  const [first = 0, second = 0] = begun;
  expect(second - first).toBeGreaterThan(45);
  await loop.stop();
});

it('a piece that fails is repeated with growing waits, which begin anew after a success', async () => {
  const outcomes = ['fails', 'fails', 'succeeds', 'fails', 'succeeds'];
  const waits: number[] = [];
  const loop = startBackgroundLoop({
    work: async () => {
      const outcome = outcomes.shift();
      if (outcome === 'fails') throw new Error('this piece fails');
      return outcome === undefined ? 600_000 : 0;
    },
    backoff,
    onFailure: (_error, retryInMs) => waits.push(retryInMs),
  });
  await expect.poll(() => outcomes).toHaveLength(0);
  await loop.stop();
  expect(waits).toHaveLength(3);
  expect(waits[1]).toBeGreaterThanOrEqual(1);
  expect(waits[2]).toBeLessThanOrEqual(1);
});

it('stopping waits for the piece in progress, and cuts a pause short', async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  let pieces = 0;
  const work = () => {
    pieces += 1;
    return promise;
  };
  const loop = startBackgroundLoop({ work, backoff, onFailure: never });
  let isStopped = false;
  const stopped = loop.stop().then(() => {
    isStopped = true;
  });
  await new Promise(setImmediate);
  expect(isStopped).toBe(false);
  resolve(600_000);
  await stopped;
  expect(pieces).toBe(1);
});

it('stopping does not wait for a piece that takes too long, because the process must stop in time', async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const loop = startBackgroundLoop({ work: () => promise, backoff, onFailure: never });
  await loop.stop();
  resolve(0);
});
