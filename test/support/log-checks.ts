// Checks the output of the suite's processes with output-check.ts: all lines of captured logs and of processes that
// tests start, all metric samples that `samplesOf` reads, and all spans that the collectors of tests receive.
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
