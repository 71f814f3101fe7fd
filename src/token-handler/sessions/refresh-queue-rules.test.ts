// Tests how many token requests of a realm and of a person may run and wait, and what happens to further requests.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createRefreshQueue, requesterOfSession } from './refresh-queue.ts';

let refused: string[];
const refusals = { inc: ({ reason }: { reason: string }) => refused.push(reason) };
const createQueue = (concurrency: number) =>
  createRefreshQueue(concurrency, { refusals } as unknown as Parameters<typeof createRefreshQueue>[1]);

beforeEach(() => {
  vi.useFakeTimers();
  refused = [];
});
afterEach(() => void vi.useRealTimers());

const people = (count: number, realmOf: (nth: number) => string) =>
  Array.from({ length: count }, (_, nth) => ({ tenant: realmOf(nth), member: `person ${nth}` }));

describe('the refreshes that run', () => {
  it('are bounded for a realm, and a person has at most half of them, rounded up', () => {
    const queue = createQueue(5);
    const ofOne = Array.from({ length: 5 }, () => ({ tenant: 'demo', member: 'ana' }));
    expect(ofOne.filter((requester) => queue.tryTake(requester))).toHaveLength(3);
    expect(people(5, () => 'demo').filter((requester) => queue.tryTake(requester))).toHaveLength(2);
    expect(queue.tryTake({ tenant: 'another', member: 'ana' })).toBeDefined();
  });

  it('are bounded for all realms, at sixteen times the bound of one', () => {
    const queue = createQueue(2);
    expect(people(50, (nth) => `realm ${nth}`).filter((requester) => queue.tryTake(requester))).toHaveLength(32);
  });
});

describe('the refreshes that wait', () => {
  const wait = async (requesters: { tenant: string; member: string }[]) => {
    const queue = createQueue(1);
    queue.tryTake({ tenant: 'demo', member: 'first' });
    const results = requesters.map((requester) => queue.take(requester).catch((error: unknown) => error));
    return { queue, results };
  };

  it('are at most 250 for a person', async () => {
    const { queue, results } = await wait(Array.from({ length: 251 }, () => ({ tenant: 'demo', member: 'ana' })));
    expect([queue.waiting, refused]).toEqual([250, ['full']]);
    expect(await results[250]).toMatchObject({ slug: 'busy', headers: { 'Retry-After': '5' } });
  });

  it('are at most 1,000 for a realm', async () => {
    const { queue } = await wait(people(1_001, () => 'demo'));
    expect([queue.waiting, refused]).toEqual([1_000, ['full']]);
  });

  it('are at most 4,000 in total', () => {
    const queue = createQueue(1);
    const realms = Array.from({ length: 16 }, (_, nth) => `realm ${nth}`);
    for (const tenant of realms) queue.tryTake({ tenant, member: 'first' });
    for (const requester of people(4_001, (nth) => `realm ${nth % 16}`))
      void queue.take(requester).catch(() => undefined);
    expect([queue.waiting, refused]).toEqual([4_000, ['full']]);
  });

  it('are refused after 15 s', async () => {
    const { results, queue } = await wait([{ tenant: 'demo', member: 'ana' }]);
    await vi.advanceTimersByTimeAsync(14_999);
    expect(queue.waiting).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await results[0]).toMatchObject({ slug: 'busy' });
    expect(refused).toEqual(['late']);
  });
});

it('a session claims a slot for its person in its realm', () => {
  expect(requesterOfSession({ realm: 'demo', user: { id: 'ana', name: 'Ana', roles: [] } })).toEqual({
    tenant: 'demo',
    member: 'ana',
  });
});
