// Tests how long a pod waits for a dependency before it first becomes ready.
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createMetrics } from './metrics.ts';
import { startupCheck, WrongSetting } from './startup-check.ts';

/** Starts a check that fails with the current `failure`. */
function start(patience: number, first: Error) {
  const current = { failure: first };
  const { log } = captureLog();
  const { problem, stop } = startupCheck({
    ...{ what: 'the provider', log, metrics: createMetrics(), pace: { patience, firstRetry: 5, longestRetry: 10 } },
    check: () => Promise.reject(current.failure),
  });
  onTestFinished(stop);
  return { problem, current };
}

const unreachable = new Error('connect ECONNREFUSED');

it('a pod does not wait longer than its patience for a provider that cannot be reached', async () => {
  const { problem } = start(50, unreachable);
  expect(problem()).toBeDefined();
  await expect.poll(problem).toBeUndefined();
});

it('a pod waits without end while a setting is wrong, also after an outage', async () => {
  const { problem, current } = start(50, new WrongSetting('the issuer differs'));
  await expect.poll(problem).toBe('the issuer differs');
  for (const failure of [new WrongSetting('no such host', {}, { mayPass: true }), unreachable]) {
    current.failure = failure;
    await delay(100);
    expect(problem()).toBeDefined();
  }
});

it('a pod waits only as long as the host of the provider does not exist', async () => {
  const { problem, current } = start(50, new WrongSetting('no such host', {}, { mayPass: true }));
  await expect.poll(problem).toBe('no such host');
  await delay(200);
  expect(problem()).toBe('no such host');
  current.failure = unreachable;
  await expect.poll(problem).toBeUndefined();
});
