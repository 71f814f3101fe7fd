// Tests that the actions of the console can be read from its sources. all/console-pages.test.ts tests that each action
// has run.
import { expect, it } from 'vitest';
import { ConsoleCoverage, listConsoleActions } from './console-actions.ts';

it('lists the handlers of events by file and line', () => {
  const names = listConsoleActions().map(({ name }) => name);
  expect(names.length).toBeGreaterThan(90);
  expect(names).toContainEqual(expect.stringMatching(/^sessions\/session-list\.tsx:\d+ onEnd$/));
  expect(names).toContainEqual(expect.stringMatching(/^registers\/import-csv\.tsx:\d+ onFile$/));
});

it('finds that nothing has run without a browser', () => {
  const actions = listConsoleActions();
  expect(new ConsoleCoverage('').missing(actions)).toHaveLength(actions.length);
});
