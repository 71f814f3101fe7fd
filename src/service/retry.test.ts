import { expect, it } from 'vitest';
import { retryUntilDone } from './retry.ts';

const backoff = { first: 2, cap: 5 };

it('repeats an action until it succeeds, and reports each failure with the wait that follows', async () => {
  const waits: number[] = [];
  let attempts = 0;
  const action = async () => {
    attempts += 1;
    if (attempts < 4) throw new Error('not yet');
  };
  const { signal } = new AbortController();
  const onFailure = (_: unknown, retryInMs: number) => void waits.push(retryInMs);
  expect(await retryUntilDone(action, { backoff, signal, onFailure })).toBe(true);
  expect(attempts).toBe(4);
  expect(waits).toHaveLength(3);
  expect(Math.max(...waits)).toBeLessThanOrEqual(5);
});

it('ends with false, and without waiting, when the signal aborts', async () => {
  const stopping = new AbortController();
  const options = { backoff: { first: 60_000, cap: 60_000 }, signal: stopping.signal, onFailure: () => undefined };
  const result = retryUntilDone(() => Promise.reject(new Error('never')), options);
  stopping.abort();
  expect(await result).toBe(false);
});
