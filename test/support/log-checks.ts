// Checks the output of the suite's processes with output-check.ts: every line of a captured log or of a process that a
// test has started, every sample that `samplesOf` reads from their metrics, and every span that a test's collector
// receives.
import { afterAll, beforeAll, expect } from 'vitest';
import { onLogLine } from './captured-log.ts';
import { createOutputCheck } from './output-check.ts';

let check = createOutputCheck();

onLogLine((line) => check.add(line));

beforeAll(() => {
  check = createOutputCheck();
});

afterAll(() => {
  expect(check.problems, 'log lines, metrics and spans of this file').toEqual([]);
});
