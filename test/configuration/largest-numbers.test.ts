// Tests that each size and count has a maximum if a larger number breaks something, so that a mistyped value stops the
// process at its start and not the requests of people. The cases are generated from the settings of the processes.
import { expect, it } from 'vitest';
import { ConfigError, parseSettings } from '../../src/service/operations/config.ts';
import { problemOf, processes, settingsOfKind } from './settings-of-processes.ts';

/** Numbers that are only compared with counts and sums, which JavaScript, Redis and Postgres keep in 64 bits. */
const onlyCompared = [
  ...['ANONYMOUS_READ_LIMIT', 'APPLY_REQUEST_LIMIT', 'APPLY_CODE_LIMIT', 'APPLY_UPLOAD_LIMIT'],
  ...['APPLY_FILE_BYTES_PER_FORM', 'TENANT_STORAGE_LIMIT', 'TENANT_CONFIGURATION_LIMIT'],
  ...['SIGN_IN_LIMIT', 'SESSION_REQUEST_LIMIT', 'TARGET_SESSION_LIMIT', 'TARGET_ADDRESS_LIMIT', 'TENANT_SESSION_LIMIT'],
];

const numbers = settingsOfKind('many', 'whole number');
const bounded = numbers.filter(({ name }) => !onlyCompared.includes(name));

it('the numbers are found', () => {
  expect(bounded.length).toBeGreaterThan(20);
  const names = numbers.map(({ name }) => name);
  for (const name of onlyCompared) expect(names).toContain(name);
});

it.each(bounded)('$name of $process has a maximum, which the problem names', ({ field }) => {
  expect(problemOf(field, String(Number.MAX_SAFE_INTEGER))).toMatch(/^must be a whole number from \d+ to \d+$/);
});

it.each([
  ['BODY_LIMIT', 67_108_864],
  ['BODY_MIN_RATE', 1_048_576],
  ['APPLY_DRAFTS_PER_ADDRESS', 500_000_000],
  ['APPLY_DRAFTS_PER_TENANT', 500_000_000],
  ['APPLY_DRAFTS_TOTAL', 500_000_000],
])('%s is at most %i', (name, largest) => {
  const fields = numbers.filter((one) => one.name === name).map(({ field }) => field);
  expect(fields.length).toBeGreaterThan(0);
  for (const field of fields) {
    expect(problemOf(field, String(largest))).toBeUndefined();
    expect(problemOf(field, String(largest + 1))).toContain(`to ${largest}`);
  }
});

it.each(Object.entries(processes))(
  'all numbers of %s that are too large are reported together',
  (process, settings) => {
    const names = bounded.filter((one) => one.process === process).map(({ name }) => name);
    const env = Object.fromEntries(names.map((name) => [name, String(Number.MAX_SAFE_INTEGER)]));
    let error: unknown;
    try {
      parseSettings(settings, env);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ConfigError);
    const reported = (error as ConfigError).problems.filter(({ problem }) =>
      problem.startsWith('must be a whole number'),
    );
    expect(reported.map(({ name }) => name).sort()).toEqual(names.sort());
  },
);
