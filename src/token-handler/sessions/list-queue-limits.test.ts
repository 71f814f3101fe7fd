// Tests how many lists of sessions run and wait, and for how long, with scripted responses and simulated time. Tests
// with real connections are in list-queue.test.ts.
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Problem } from '../../service/http/problem.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { createListQueue } from './list-queue.ts';

/** A response that is read when a test says so. */
class Response extends EventEmitter {
  closed = false;
  destroyed = 0;
  close(): void {
    this.closed = true;
    this.emit('close');
  }
  destroy(): void {
    this.destroyed += 1;
    this.close();
  }
}

let metrics: Metrics;
let queue: ReturnType<typeof createListQueue>;
/** The lists that have started, as `tenant/member`. */
let started: string[];
beforeEach(() => {
  vi.useFakeTimers();
  metrics = createMetrics();
  queue = createListQueue({ metrics });
  started = [];
});
afterEach(() => void vi.useRealTimers());

const settled = () => vi.advanceTimersByTimeAsync(0);

/** Asks for the list of a person. Returns the response, and the outcome once the list has ended. */
function ask(name: string, response = new Response()) {
  const [tenant = '', member = ''] = name.split('/');
  const list = { response, outcome: undefined as unknown };
  queue({ tenant, member }, response as unknown as ServerResponse, async () => void started.push(name)).then(
    () => (list.outcome = 'sent'),
    (error: unknown) => (list.outcome = error),
  );
  return list;
}
const refusals = async () =>
  (await metrics.queueRefusals.get()).values.map(({ labels, value }) => ({ ...labels, value }));

describe('a list', () => {
  it('ends when the client has read it, and the next one of the person starts', async () => {
    const [first, , third] = [ask('demo/ana'), ask('demo/ana'), ask('demo/ana')];
    await settled();
    expect([started.length, first.outcome]).toEqual([2, undefined]);
    first.response.close();
    await settled();
    expect([started.length, first.outcome, third.outcome]).toEqual([3, 'sent', undefined]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(first.response.destroyed).toBe(0);
  });

  it('that has been read already ends immediately', async () => {
    const response = new Response();
    response.closed = true;
    const list = ask('demo/ana', response);
    await settled();
    expect([list.outcome, response.listenerCount('close'), vi.getTimerCount()]).toEqual(['sent', 0, 0]);
  });

  it('that is not read within 30 s loses its connection, so that the next one starts', async () => {
    const { response } = ask('demo/ana');
    ask('demo/ana');
    await vi.advanceTimersByTimeAsync(29_000);
    const third = ask('demo/ana');
    await vi.advanceTimersByTimeAsync(999);
    expect([response.destroyed, started.length]).toEqual([0, 2]);
    await vi.advanceTimersByTimeAsync(1);
    expect([response.destroyed, started.length, third.outcome]).toEqual([1, 3, undefined]);
  });

  it('that fails reports its error, and does not wait for its client', async () => {
    const error = new Problem('unavailable');
    for (let nth = 0; nth < 3; nth += 1) {
      const failing = queue({ tenant: 'demo', member: 'ana' }, new Response() as never, () => Promise.reject(error));
      await expect(failing).rejects.toBe(error);
    }
    expect(await refusals()).toEqual([]);
  });
});

describe('lists of the same time', () => {
  it('are at most four of a tenant, and sixteen in total', async () => {
    for (let tenant = 0; tenant < 5; tenant += 1)
      for (let person = 0; person < 5; person += 1) ask(`${tenant}/${person}`);
    await settled();
    const ofTenants = [0, 1, 2, 3, 4].map((tenant) => started.filter((name) => name.startsWith(`${tenant}/`)).length);
    expect(ofTenants).toEqual([4, 4, 4, 4, 0]);
  });

  it('of a person wait if there are at most ten; more get 503', async () => {
    const lists = Array.from({ length: 13 }, () => ask('demo/ana'));
    await settled();
    expect(lists.map(({ outcome }) => outcome !== undefined)).toEqual([...Array(12).fill(false), true]);
    expect(lists.at(-1)?.outcome).toMatchObject({ slug: 'busy', status: 503, headers: { 'Retry-After': '5' } });
    expect(await refusals()).toEqual([{ queue: 'session-lists', reason: 'full', value: 1 }]);
  });

  it('of a tenant wait if there are at most a hundred', async () => {
    const lists = Array.from({ length: 105 }, (_, nth) => ask(`demo/${nth}`));
    await settled();
    expect(lists.filter(({ outcome }) => outcome !== undefined)).toEqual([lists.at(-1)]);
  });

  it('wait for at most ten seconds', async () => {
    const lists = [ask('demo/ana'), ask('demo/ana'), ask('demo/ana')];
    await vi.advanceTimersByTimeAsync(9_999);
    expect(lists[2]?.outcome).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(lists[2]?.outcome).toMatchObject({ slug: 'busy' });
    expect(await refusals()).toEqual([{ queue: 'session-lists', reason: 'late', value: 1 }]);
  });
});
