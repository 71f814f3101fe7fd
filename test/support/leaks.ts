// Fails a test file that leaves a connection, a server, a timer or a child process behind. The files of a worker share one
// process, so each is compared with what was open when it began.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from 'vitest';

/** Milliseconds for sockets and processes that were told to close, and for timers that fire once. */
const patience = 20_000;

let before: Map<string, number>;
beforeAll(() => {
  before = openResources();
});

afterAll(async () => {
  for (const deadline = Date.now() + patience; leaked().length > 0 && Date.now() < deadline; ) await delay(50);
  expect(leaked(), 'left open by this file').toEqual([]);
});

function leaked(): string[] {
  return [...openResources()].flatMap(([kind, count]) => {
    const more = count - (before.get(kind) ?? 0);
    return more > 0 ? [`${more} of ${kind}`] : [];
  });
}

/** What keeps the process alive, by kind; Node names the kinds after its internal classes. */
function openResources(): Map<string, number> {
  // The pipes of a child process count with it; the others are this worker's own output, opened when it is first used.
  const kinds = process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap');
  return new Map([...new Set(kinds)].map((kind) => [kind, kinds.filter((each) => each === kind).length]));
}
