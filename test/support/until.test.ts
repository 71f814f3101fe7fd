import { expect, it } from 'vitest';
import { until } from './until.ts';

const soon = { patience: 100 };

it('waits until the condition holds, also if it throws before', async () => {
  let calls = 0;
  await until('the third call', () => {
    calls += 1;
    if (calls === 1) throw new Error('not yet');
    return calls === 3;
  });
  expect(calls).toBe(3);
});

it.each([
  ['does not hold', () => false, undefined],
  ['hangs', () => new Promise<boolean>(() => undefined), undefined],
  ['throws', () => Promise.reject(new Error('nothing listens')), 'nothing listens'],
])('names the condition and its last error if it %s', async (_, condition, reason) => {
  const error = await until('a miracle', condition, soon).catch((thrown: Error) => thrown);
  expect(error).toMatchObject({ message: 'Gave up after 0.1 s of waiting for a miracle.' });
  expect((error as Error).cause).toEqual(reason === undefined ? undefined : new Error(reason));
});
