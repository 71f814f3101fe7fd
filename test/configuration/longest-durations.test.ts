// Tests that each duration that can reach a timer has a maximum that a timer of Node can hold: 2^31 - 1 ms (24.8 days).
// A longer timer fires at once. The cases are generated from the settings of the processes.
import { expect, it } from 'vitest';
import type { z } from 'zod';
import { settings as reconciler } from '../../reconciler/config.ts';
import { settings as forms } from '../../src/forms/config.ts';
import { settings as platformServer } from '../../src/platform-server/config.ts';
import { readReference } from '../../src/platform-server/reference/reference-times.ts';
import { ConfigError } from '../../src/service/operations/config.ts';
import { settings as tokenHandler } from '../../src/token-handler/config.ts';

/** Durations that are only added to dates or compared with ages. They reach no timer, so they may be longer. */
const onlyDates = [
  ...['WARN_BEFORE', 'LOCK_AFTER', 'DELETE_AFTER', 'SUBSCRIBER_REMOVAL_DELAY'],
  ...['SESSION_MAX_AGE', 'SESSION_IDLE'],
];
const processes = { forms, 'token-handler': tokenHandler, 'platform-server': platformServer, reconciler };
const problemOf = (field: unknown, text: string) => (field as z.ZodType).safeParse(text).error?.issues[0]?.message;

const durations = Object.entries(processes).flatMap(([process, { schema }]) =>
  Object.entries(schema.shape)
    .filter(([, field]) => problemOf(field, '10m')?.includes('ISO 8601 duration'))
    .map(([name, field]) => ({ process, name, field })),
);
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
