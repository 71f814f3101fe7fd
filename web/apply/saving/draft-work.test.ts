// Tests the work on an open draft: obstacles to saving, files that are being sent, and the browser's warning.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Api, ApiProblem, type Draft } from '../api.ts';
import { DraftWork } from './draft-work.ts';
import type { Content, Outcome } from './saver.ts';

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('window', new EventTarget());
  vi.stubGlobal('document', Object.assign(new EventTarget(), { hidden: false }));
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const typed = (text: string): Content => ({ data: { text }, files: {} });
const stored: Draft = { data: {}, files: {}, etag: '"1"' };

/** Returns true if the browser would warn before it closes the page. */
const isWarned = () => !window.dispatchEvent(new Event('beforeunload', { cancelable: true }));

/** Opens a draft. `api` replaces the usual responses of the service. */
function open(api: Partial<Api> = {}) {
  const puts: Content[] = [];
  const ends: string[] = [];
  const usual: Partial<Api> = {
    async put(_id, content): Promise<Outcome> {
      puts.push(content);
      return { type: 'saved', etag: '"2"' };
    },
  };
  const work = new DraftWork({
    api: { ...usual, ...api } as Api,
    formId: 'form',
    draft: stored,
    onEnd: (reason) => ends.push(reason),
  });
  return { work, puts, ends };
}

describe('a save that meets changes of another window', () => {
  const conflict = async (): Promise<Outcome> => ({ type: 'conflict' });
  const problem = (slug: string) => ({ type: `urn:formgate:problem:${slug}` });

  it.each([
    [410, 'gone', 'gone'],
    [404, 'not-found', 'gone'],
    [409, 'form-locked', 'locked'],
    [409, 'form-not-draft', 'submitted'],
  ])('says that the form has ended if the other window has ended it: %i %s', async (status, slug, reason) => {
    const read = vi.fn(async () => {
      throw new ApiProblem(status, problem(slug));
    });
    const { work, ends } = open({ put: conflict, read });
    work.change(typed('a'));
    await pass(60_000);
    expect([ends, read.mock.calls.length]).toEqual([[reason], 1]);
  });

  it('reads the changes again, but not before the service allows it, and not after the form was closed', async () => {
    const read = vi.fn(async () => {
      throw new ApiProblem(429, problem('too-many-requests'), 20_000);
    });
    const { work, ends } = open({ put: conflict, read });
    work.change(typed('a'));
    await pass(20_000);
    expect(read).toHaveBeenCalledTimes(1);
    await pass(1_000);
    expect(read).toHaveBeenCalledTimes(2);
    work.close();
    await pass(60_000);
    expect([read.mock.calls.length, ends]).toEqual([2, []]);
  });
});

it('says that there is no connection while the changes of another window cannot be read, and reads them on demand', async () => {
  const reads: (() => Draft)[] = [];
  const read = vi.fn(async (): Promise<Draft> => {
    const next = reads.shift();
    if (!next) throw new ApiProblem(0);
    return next();
  });
  const outcomes: Outcome[] = [{ type: 'conflict' }];
  const { work } = open({ put: async () => outcomes.shift() ?? { type: 'saved', etag: '"2"' }, read });
  work.change(typed('a'));
  await pass(1_000);
  expect([work.state, read.mock.calls.length]).toEqual(['offline', 1]);
  reads.push(() => stored);
  work.retryNow();
  await pass(0);
  expect([work.state, read.mock.calls.length]).toEqual(['saved', 2]);
  await pass(60_000);
  expect(read).toHaveBeenCalledTimes(2);
});

it('saves immediately when the page is hidden, until the form is closed', async () => {
  const { work, puts } = open();
  const show = (hidden: boolean) => {
    Object.assign(document, { hidden });
    document.dispatchEvent(new Event('visibilitychange'));
  };
  work.change(typed('a'));
  show(false);
  expect(puts).toEqual([]);
  show(true);
  // No timer may be needed, because the page may end before its next timer.
  expect(puts).toEqual([typed('a')]);
  await pass(0);
  show(true);
  work.change(typed('ab'));
  work.close();
  show(true);
  await pass(60_000);
  expect(puts).toEqual([typed('a')]);
});

describe('a code that two requests need', () => {
  const unauthorized = async (): Promise<never> => {
    throw new ApiProblem(401);
  };

  it.each(['save first', 'deletion first'])('saves the changes after it was entered: %s', async (order) => {
    const outcomes: Outcome[] = [{ type: 'code' }];
    const puts: Content[] = [];
    const put = async (_id: string, content: Content): Promise<Outcome> => {
      puts.push(content);
      return outcomes.shift() ?? { type: 'saved', etag: '"2"' };
    };
    const { work } = open({ put });
    if (order === 'deletion first') work.requireCode();
    work.change(typed('a'));
    await pass(1_000);
    if (order === 'save first') work.requireCode();
    expect([work.state, work.pause]).toEqual(['blocked', { type: 'code', next: 'save' }]);
    await work.codeEntered();
    await pass(1_000);
    expect([puts.length, work.state]).toEqual([2, 'saved']);
  });

  it('compares with the changes of another window after it was entered, although a deletion needed it too', async () => {
    const reads = [unauthorized, async () => stored];
    const read = vi.fn(async () => (reads.shift() ?? unauthorized)());
    const outcomes: Outcome[] = [{ type: 'conflict' }];
    const { work } = open({ put: async () => outcomes.shift() ?? { type: 'saved', etag: '"2"' }, read });
    work.change(typed('a'));
    await pass(1_000);
    work.requireCode();
    expect(work.pause).toEqual({ type: 'code', next: 'compare' });
    await work.codeEntered();
    await pass(1_000);
    expect([read.mock.calls.length, work.state]).toEqual([2, 'saved']);
  });

  it('does not end a choice between answers, which the changes wait for', async () => {
    const theirs = { ...stored, data: { text: 'theirs' } };
    const { work } = open({ put: async () => ({ type: 'conflict' }), read: async () => theirs });
    work.change(typed('mine'));
    await pass(1_000);
    work.requireCode();
    expect(work.pause?.type).toBe('conflict');
  });
});

it('the browser warns while one of two open forms has unsaved changes', async () => {
  const unsaved = open({ put: async () => ({ type: 'retry' }) }).work;
  const other = open().work;
  unsaved.change(typed('a'));
  other.change(typed('b'));
  await pass(2_000);
  expect([unsaved.state, other.state, isWarned()]).toEqual(['offline', 'saved', true]);
  unsaved.close();
  expect(isWarned()).toBe(false);
});

describe('files that are being sent', () => {
  const path = ['plan'];
  const file = (name: string) => new File(['x'], name);

  /** Opens a draft whose uploads wait until `end` is called with the name of the file. */
  function openWithFiles() {
    const sent: string[] = [];
    const runs = new Map<string, PromiseWithResolvers<{ urn: string; name: string }>>();
    const opened = open({
      upload: async (_id, { name }) => {
        sent.push(name);
        const run = Promise.withResolvers<{ urn: string; name: string }>();
        runs.set(name, run);
        return run.promise;
      },
    });
    const end = async (name: string, problem?: ApiProblem) => {
      if (problem) runs.get(name)?.reject(problem);
      else runs.get(name)?.resolve({ urn: `urn:${name}`, name });
      await pass(0);
    };
    return { ...opened, sent, end };
  }

  it('are waited for, and then saved, before the form is left; the browser warns until then', async () => {
    const { work, puts, sent, end } = openWithFiles();
    for (const name of ['one', 'two']) work.uploads.add({ file: file(name), path, isMultiple: true });
    await pass(0);
    expect([sent, work.state, isWarned()]).toEqual([['one'], 'saved', true]);
    const flushed = work.flush();
    await end('one');
    await pass(60_000);
    expect(sent).toEqual(['one', 'two']);
    await end('two');
    await pass(0);
    expect(await flushed).toBe('saved');
    expect(puts.at(-1)).toEqual({ data: { plan: 'urn:one;urn:two' }, files: { one: 'urn:one', two: 'urn:two' } });
    expect(isWarned()).toBe(false);
  });

  it('keep the form open if they fail, until the person goes on without them', async () => {
    const { work, puts, end } = openWithFiles();
    work.uploads.add({ file: file('large'), path, isMultiple: false });
    await pass(0);
    const flushed = work.flush();
    await end('large', new ApiProblem(413));
    expect([await flushed, isWarned()]).toEqual(['unsent', true]);
    for (const upload of work.uploads.failed) work.uploads.discard(upload);
    expect([await work.flush(), isWarned(), puts]).toEqual(['saved', false, []]);
  });

  it('ask for a code if the cookie has expired, and are sent again once it was entered', async () => {
    const { work, sent, end } = openWithFiles();
    work.uploads.add({ file: file('plan'), path, isMultiple: false });
    await pass(0);
    await end('plan', new ApiProblem(401));
    expect([work.pause, work.uploads.failed.length]).toEqual([{ type: 'code', next: 'nothing' }, 1]);
    await work.codeEntered();
    await pass(0);
    expect([sent, work.pause]).toEqual([['plan', 'plan'], undefined]);
    await end('plan');
    const flushed = work.flush();
    await pass(1_000);
    expect(await flushed).toBe('saved');
    expect(work.content.files).toEqual({ plan: 'urn:plan' });
  });

  it('are not sent again after a code if they failed for another reason', async () => {
    const { work, sent, end } = openWithFiles();
    work.uploads.add({ file: file('large'), path, isMultiple: false });
    await pass(0);
    await end('large', new ApiProblem(413));
    work.requireCode();
    await work.codeEntered();
    await pass(0);
    expect(sent).toEqual(['large']);
  });

  it.each([
    [404, 'not-found', 'gone'],
    [410, 'gone', 'gone'],
    [409, 'form-locked', 'locked'],
    [409, 'form-not-draft', 'submitted'],
  ])('end the form if the service says that it has ended: %i %s', async (status, slug, reason) => {
    const { work, ends, end } = openWithFiles();
    work.uploads.add({ file: file('plan'), path, isMultiple: false });
    await pass(0);
    await end('plan', new ApiProblem(status, { type: `urn:formgate:problem:${slug}` }));
    expect([ends, work.pause]).toEqual([[reason], undefined]);
  });

  it('are not offered to be sent again if the platform has no file service', async () => {
    const { work, ends, end } = openWithFiles();
    work.uploads.add({ file: file('plan'), path, isMultiple: false });
    await pass(0);
    await end('plan', new ApiProblem(501, { type: 'urn:formgate:problem:no-file-service' }));
    expect([work.uploads.failed.map(({ failure }) => failure), ends, work.pause]).toEqual([
      ['noService'],
      [],
      undefined,
    ]);
  });

  it('are forgotten with the form, and change nothing in it if they arrive later', async () => {
    const { work, puts, end } = openWithFiles();
    work.uploads.add({ file: file('late'), path, isMultiple: false });
    await pass(0);
    work.close();
    await end('late');
    await pass(60_000);
    expect([puts, work.content, isWarned()]).toEqual([[], { data: {}, files: {} }, false]);
  });
});
