// Tests that each duration that can reach a timer has a maximum that a timer of Node can hold: 2^31 - 1 ms (24.8 days).
// A longer timer fires at once. The cases are generated from the settings of the processes.
import { expect, it } from 'vitest';
import { readReference } from '../../src/platform-server/reference/reference-times.ts';
import { ConfigError } from '../../src/service/operations/config.ts';
import { problemOf, settingsOfKind } from './settings-of-processes.ts';

/** Durations that are only added to dates or compared with ages. They reach no timer, so they may be longer. */
const onlyDates = [
  ...['WARN_BEFORE', 'LOCK_AFTER', 'DELETE_AFTER', 'SUBSCRIBER_REMOVAL_DELAY'],
  ...['SESSION_MAX_AGE', 'SESSION_IDLE'],
];
const durations = settingsOfKind('10m', 'ISO 8601 duration');
const bounded = durations.filter(({ name }) => !onlyDates.includes(name));

it('the durations are found', () => {
  expect(bounded.length).toBeGreaterThan(20);
  const names = durations.map(({ name }) => name);
  for (const name of onlyDates) expect(names).toContain(name);
});

it.each(bounded)('$name of $process is shorter than the longest timer', ({ field }) => {
  expect(problemOf(field, 'P25D')).toMatch(/^must be at most P/);
});

it.each([
  ['CODE_LIFETIME', 'P1D', 'P1DT1S'],
  ['PLATFORM_CACHE_TTL', 'P1D', 'P1DT1S'],
  ['SUBSCRIBER_REMOVAL_DELAY', 'P30D', 'P30DT1S'],
  ['WORKER_STALE_AFTER', 'PT4H', 'PT4H1S'],
])('%s is at most %s', (name, longest, longer) => {
  const fields = durations.filter((one) => one.name === name).map(({ field }) => field);
  expect(fields.length).toBeGreaterThan(0);
  for (const field of fields) {
    expect(problemOf(field, longest)).toBeUndefined();
    expect(problemOf(field, longer)).toBe(`must be at most ${longest}`);
  }
});

it.each(['REFERENCE_CACHE', 'REFERENCE_EVENT_TIME', 'REFERENCE_DELAY'])('%s is shorter too', (name) => {
  const read = (text: string) => readReference({ PLATFORM_BEHAVIOUR: 'reference', [name]: text });
  expect(read('PT1H')).toBeDefined();
  expect(() => read('P25D')).toThrow(ConfigError);
});
