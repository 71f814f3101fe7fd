// Tests how often watched sessions are read from the store: once after each change, however many sessions there are,
// and however few of them the cache holds. The clock is a fake. The test decides what the store contains.
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { EndWatch } from './end-watch.ts';
import type { FoundSession } from './session.ts';

const found = { session: { realm: 'town', issuer: 'https://id.example', handle: 'a' }, state: { touched: 1 } };
const session = found as unknown as FoundSession;
let store: { isTracked: boolean; trackedUntil: number; onChange(listener: (handle: string | null) => void): void };
/** Reports a change of one session, or of any session (null), as the store does. */
let report: (handle: string | null) => void;
let read: (handle: string) => Promise<FoundSession | undefined>;
let reads: string[];
let alive: boolean;
/** What the watch last asked about: the data from which `isAlive` decides whether a session is alive. */
let life: unknown;
let watch: EndWatch;
let ended: string[];

beforeEach(() => {
  vi.useFakeTimers();
  store = {
    ...{ isTracked: true, trackedUntil: Number.POSITIVE_INFINITY },
    onChange(listener) {
      report = listener;
    },
  };
  [reads, ended, alive] = [[], [], true];
  read = async () => session;
  watch = new EndWatch(
    {
      // This cache holds none of the watched sessions.
      cached: () => undefined,
      read(handle) {
        reads.push(handle);
        return read(handle);
      },
      isAlive(given) {
        life = given;
        return alive;
      },
    },
    store,
  );
});
afterEach(() => {
  watch.close();
  vi.useRealTimers();
});

const listen = (handle = 'a') => watch.onEnd(handle, () => ended.push(handle));
async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 500) {
    vi.advanceTimersByTime(500);
    // Each read lets the next one begin.
    for (let turns = 0; turns < 20; turns += 1) await turn();
  }
}

it('a thousand sessions that are not in the cache are read once, and each again after its change', async () => {
  const handles = Array.from({ length: 1_000 }, (_, index) => `session-${index}`);
  for (const handle of handles) listen(handle);
  await pass(500);
  expect(reads).toEqual(handles);
  await pass(10_000);
  expect(reads).toHaveLength(1_000);
  report('session-7');
  report('a session that nobody watches');
  await pass(2_000);
  expect(reads.slice(1_000)).toEqual(['session-7']);
  report(null);
  await pass(500);
  expect(reads.slice(1_001)).toEqual(handles);
  expect(ended).toEqual([]);
});

it('at most 64 sessions are read at the same time, and the others as soon as a read has ended', async () => {
  const pending: (() => void)[] = [];
  read = () => new Promise((resolve) => pending.push(() => resolve(session)));
  for (let index = 0; index < 200; index += 1) listen(`session-${index}`);
  await pass(2_000);
  expect(reads).toHaveLength(64);
  for (const answer of pending.splice(0, 10)) answer();
  await turn();
  expect(reads).toHaveLength(74);
  while (pending.length > 0) {
    for (const answer of pending.splice(0)) answer();
    await turn();
  }
  expect([reads.length, new Set(reads).size]).toEqual([200, 200]);
});

it('a failed read frees its place', async () => {
  read = () => Promise.reject(new Error('the store is away'));
  for (let index = 0; index < 200; index += 1) listen(`session-${index}`);
  await pass(500);
  expect(reads).toHaveLength(200);
});

it.each([
  ['whose listener was removed', (remove: () => void) => remove()],
  ['of a watch that was closed', () => watch.close()],
])('a session %s is not read when others have been read', async (_which, end) => {
  const slow = Promise.withResolvers<FoundSession>();
  read = () => slow.promise;
  for (let index = 0; index < 64; index += 1) listen(`session-${index}`);
  const remove = listen('a');
  await pass(500);
  expect(reads).toHaveLength(64);
  end(remove);
  slow.resolve(session);
  await turn();
  expect(reads).toHaveLength(64);
});

it('a change during a read lets the session be read again', async () => {
  const slow = Promise.withResolvers<FoundSession>();
  read = () => slow.promise;
  listen();
  await pass(500);
  report('a');
  slow.resolve(session);
  await pass(1_000);
  expect(reads).toEqual(['a', 'a']);
});

it('a read that began while the store tracked no changes is repeated once it does', async () => {
  store.isTracked = false;
  const slow = Promise.withResolvers<FoundSession>();
  read = () => slow.promise;
  listen();
  await pass(1_000);
  store.isTracked = true;
  slow.resolve(session);
  await pass(1_000);
  expect(reads).toEqual(['a', 'a']);
});

it('a session that has expired since its read is read again, and ends if the store has it no longer', async () => {
  listen();
  await pass(5_000);
  expect(reads).toEqual(['a']);
  expect(life).toEqual({ session: { realm: 'town', issuer: 'https://id.example' }, state: { touched: 1 } });
  alive = false;
  read = async () => undefined;
  await pass(500);
  expect([reads, ended]).toEqual([['a', 'a'], ['a']]);
});
