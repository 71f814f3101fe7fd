// Prints what the open pages of Chromium show after a test has failed, and which of their requests failed. Without it,
// a test that waits for a text in vain reports only the text that it expected.
import { afterEach } from 'vitest';
import { reportsOfPages } from './chromium.ts';

afterEach(async ({ task }) => {
  if (task.result?.state !== 'fail') return;
  for (const report of await reportsOfPages()) process.stderr.write(`${task.name}: ${report}\n`);
});
