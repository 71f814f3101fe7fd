// Tests when form data is saved, and that a lost connection or response loses nothing.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type Content, type Outcome, Saver, type SaveState } from '../../web/apply/saving/saver.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Put {
  content: Content;
  etag: string;
  saveId: string;
}

/** Creates a Saver. Its requests wait until a test passes their outcome to `answer`. */
function createWorld() {
  const puts: Put[] = [];
  const states: SaveState[] = [];
  const blocked: string[] = [];
  let resolve: (outcome: Outcome) => void = () => undefined;
  const ids: string[] = [];
  const saver = new Saver({
    content: { data: {}, files: {} },
    etag: '"1"',
    put(content, etag, saveId) {
      if (!ids.includes(saveId)) ids.push(saveId);
      puts.push({ content, etag, saveId: `id-${ids.indexOf(saveId) + 1}` });
      return new Promise((settle) => {
        resolve = settle;
      });
    },
    onState: (state) => states.push(state),
    onBlocked: (reason) => blocked.push(reason),
  });
  const answer = async (outcome: Outcome) => {
    resolve(outcome);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { saver, puts, states, blocked, answer };
}

const typed = (text: string): Content => ({ data: { text }, files: {} });
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

it('saves once after a pause in typing, with the version that was read', async () => {
  const { saver, puts, states, answer } = createWorld();
  for (const text of ['a', 'ab', 'abc']) {
    saver.change(typed(text));
    await pass(500);
  }
  expect(puts).toEqual([]);
  await pass(300);
  expect(puts).toEqual([{ content: typed('abc'), etag: '"1"', saveId: 'id-1' }]);
  await answer({ type: 'saved', etag: '"2"' });
  expect(states).toEqual(['waiting', 'saving', 'saved']);
});

it('sends one request at a time, and then what was typed in the meantime, based on the new version', async () => {
  const { saver, puts, answer } = createWorld();
  saver.change(typed('a'));
  await pass(800);
  saver.change(typed('ab'));
  await pass(5_000);
  expect(puts).toHaveLength(1);
  await answer({ type: 'saved', etag: '"2"' });
  await pass(800);
  expect(puts[1]).toEqual({ content: typed('ab'), etag: '"2"', saveId: 'id-2' });
});

it('repeats a request without a response unchanged, with growing pauses, before it sends what was typed since', async () => {
  const { saver, puts, states, answer } = createWorld();
  saver.change(typed('a'));
  await pass(800);
  await answer({ type: 'retry' });
  saver.change(typed('ab'));
  await pass(1_000);
  await answer({ type: 'retry' });
  await pass(1_999);
  expect(puts).toHaveLength(2);
  await pass(1);
  expect(puts.map(({ content, saveId }) => [content, saveId])).toEqual(Array(3).fill([typed('a'), 'id-1']));
  await answer({ type: 'saved', etag: '"2"' });
  await pass(800);
  expect(puts[3]).toEqual({ content: typed('ab'), etag: '"2"', saveId: 'id-2' });
  expect(states).toEqual(['waiting', 'saving', 'offline', 'waiting', 'saving']);
});

it('retries immediately when the connection is back, but not before the service allows it', async () => {
  const { saver, puts, answer } = createWorld();
  saver.change(typed('a'));
  await pass(800);
  await answer({ type: 'retry', afterMs: 20_000 });
  await pass(19_000);
  expect(puts).toHaveLength(1);
  saver.retryNow();
  await pass(0);
  expect(puts).toHaveLength(2);
});

it('sends the newest data soon after a refusal, because the refused data is not saved', async () => {
  const { saver, puts, answer } = createWorld();
  saver.change(typed('too long'));
  await pass(800);
  await answer({ type: 'refused' });
  saver.change(typed('short'));
  await pass(800);
  expect(puts[1]).toEqual({ content: typed('short'), etag: '"1"', saveId: 'id-2' });
});

it('says that data is refused, not that the connection is lost, and sends the data again after half a minute', async () => {
  const { saver, puts, states, answer } = createWorld();
  saver.change(typed('too long'));
  await pass(800);
  await answer({ type: 'refused' });
  expect(states).toEqual(['waiting', 'saving', 'refused']);
  await pass(29_000);
  expect(puts).toHaveLength(1);
  await pass(1_000);
  expect([puts.length, saver.state]).toEqual([2, 'refused']);
  await answer({ type: 'saved', etag: '"2"' });
  expect(saver.state).toBe('saved');
});

it('stops at an obstacle, and goes on with the version that the person has seen', async () => {
  const { saver, puts, blocked, answer } = createWorld();
  saver.change(typed('a'));
  await pass(800);
  await answer({ type: 'conflict' });
  saver.change(typed('ab'));
  await pass(60_000);
  expect([puts.length, blocked]).toEqual([1, ['conflict']]);
  saver.resume(typed('chosen'), { base: typed('theirs'), etag: '"7"' });
  await pass(0);
  expect(puts[1]).toEqual({ content: typed('chosen'), etag: '"7"', saveId: 'id-2' });
  expect(saver.base).toEqual(typed('theirs'));
});

it('sends and reports nothing after it was closed, whatever the response to an earlier request is', async () => {
  const { saver, puts, states, answer } = createWorld();
  saver.change(typed('a'));
  await pass(800);
  saver.close();
  await answer({ type: 'retry' });
  saver.change(typed('ab'));
  expect(await saver.flush()).toBe(false);
  await pass(60_000);
  expect(puts.map(({ content }) => content)).toEqual([typed('a')]);
  expect(states).toEqual(['waiting', 'saving']);
});

it('says whether everything is saved when it is asked to save now', async () => {
  const { saver, answer } = createWorld();
  expect(await saver.flush()).toBe(true);
  saver.change(typed('a'));
  const first = saver.flush();
  await pass(0);
  await answer({ type: 'saved', etag: '"2"' });
  expect(await first).toBe(true);
  saver.change(typed('ab'));
  const second = saver.flush();
  await pass(0);
  await answer({ type: 'retry' });
  expect(await second).toBe(false);
});
