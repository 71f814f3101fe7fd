// Tests how many lists of sessions run and wait, and for how long, with simulated time.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { createListQueue } from './list-queue.ts';

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

/** Asks for the list of a person. Returns a function that ends the list, and the outcome once the list has ended. */
function ask(name: string) {
  const [tenant = '', member = ''] = name.split('/');
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const list = { end, outcome: undefined as unknown };
  const work = () => {
    started.push(name);
    return promise;
  };
  queue.run({ tenant, member }, work).then(
    () => (list.outcome = 'sent'),
    (error: unknown) => (list.outcome = error),
  );
  return list;
}
const refusals = async () =>
  (await metrics.queueRefusals.get()).values.map(({ labels, value }) => ({ ...labels, value }));

describe('lists of the same time', () => {
  it('are two of a person; the next one starts when one ends', async () => {
    const [first, , third] = [ask('demo/ana'), ask('demo/ana'), ask('demo/ana')];
    await settled();
    expect([started.length, first.outcome]).toEqual([2, undefined]);
    first.end();
    await settled();
    expect([started.length, first.outcome, third.outcome]).toEqual([3, 'sent', undefined]);
  });

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
