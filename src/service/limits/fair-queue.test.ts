import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairQueue, type FairQueueOptions, type ReleaseSlot } from './fair-queue.ts';

function queueOf(options: Partial<FairQueueOptions> = {}) {
  return new FairQueue({
    slots: { total: 2, perTenant: 2, perMember: 2 },
    waiting: { total: 100, perTenant: 50, perMember: 25 },
    waitMs: 10_000,
    detail: 'The workers are busy. Try again.',
    retryAfterSeconds: 2,
    ...options,
  });
}

/** Returns the heap size in bytes after a garbage collection, because other tests may leave much garbage. */
function usedHeap(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

const requester = (tenant: string, member = 'someone') => ({ tenant, member });

/** Returns the order in which requesters get the only slot of a queue. Each of them releases it immediately. */
async function orderOf(requesters: [string, string][]): Promise<string[]> {
  const queue = queueOf({ slots: { total: 1, perTenant: 1, perMember: 1 } });
  const first = await queue.take(requester('holder'));
  const order: string[] = [];
  const all = requesters.map(async ([tenant, member]) => {
    const release = await queue.take({ tenant, member });
    order.push(`${tenant}/${member}`);
    release();
  });
  first();
  await Promise.all(all);
  return order;
}

describe('a fair queue', () => {
  it('serves a tenant with one request before the second request of a tenant with many', async () => {
    expect(
      await orderOf([
        ['busy', 'a'],
        ['busy', 'a'],
        ['busy', 'a'],
        ['quiet', 'b'],
      ]),
    ).toEqual(['busy/a', 'quiet/b', 'busy/a', 'busy/a']);
  });

  it('serves the members of a tenant round-robin', async () => {
    expect(
      await orderOf([
        ['t', 'a'],
        ['t', 'a'],
        ['t', 'b'],
        ['t', 'c'],
      ]),
    ).toEqual(['t/a', 't/b', 't/c', 't/a']);
  });

  it('refuses with 503 and Retry-After when its queue is full', async () => {
    const refused: string[] = [];
    const queue = queueOf({
      slots: { total: 1, perTenant: 1, perMember: 1 },
      waiting: { total: 0, perTenant: 0, perMember: 0 },
      onRefused: (reason) => refused.push(reason),
    });
    await queue.take(requester('t'));
    await expect(queue.take(requester('t'))).rejects.toMatchObject({
      slug: 'busy',
      status: 503,
      detail: 'The workers are busy. Try again.',
      headers: { 'Retry-After': '2' },
    });
    expect(refused).toEqual(['full']);
  });

  it('lets the first request of a tenant wait, although requests of other tenants fill the queue', async () => {
    const queue = queueOf({
      slots: { total: 1, perTenant: 1, perMember: 1 },
      waiting: { total: 2, perTenant: 2, perMember: 2 },
    });
    const release = await queue.take(requester('holder'));
    const full = [queue.take(requester('busy')), queue.take(requester('busy'))];
    const first = queue.take(requester('quiet'));
    await expect(queue.take(requester('quiet'))).rejects.toMatchObject({ slug: 'busy' });
    await expect(queue.take(requester('busy'))).rejects.toMatchObject({ slug: 'busy' });
    expect(queue.waiting).toBe(3);
    release();
    for (const granted of [full[0], first, full[1]]) (await granted)?.();
    expect(queue).toMatchObject({ running: 0, waiting: 0 });
  });

  it('refuses a request that waits too long, and forgets it', async () => {
    const queue = queueOf({ slots: { total: 1, perTenant: 1, perMember: 1 }, waitMs: 20 });
    const release = await queue.take(requester('t'));
    await expect(queue.take(requester('t'))).rejects.toMatchObject({ slug: 'busy' });
    expect(queue).toMatchObject({ running: 1, waiting: 0 });
    release();
    expect(queue.running).toBe(0);
  });

  it('forgets a request whose caller gave up', async () => {
    const queue = queueOf({ slots: { total: 1, perTenant: 1, perMember: 1 } });
    const release = await queue.take(requester('t'));
    const caller = new AbortController();
    const waiting = queue.take(requester('t'), caller.signal);
    caller.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    await expect(queue.take(requester('t'), caller.signal)).rejects.toThrow('gone');
    release();
    expect(queue).toMatchObject({ running: 0, waiting: 0 });
  });

  it('frees one slot if it is released twice', async () => {
    const queue = queueOf();
    const release = await queue.take(requester('t'));
    await queue.take(requester('t'));
    release();
    release();
    expect(queue.running).toBe(1);
  });

  it('forgets tenants and members that hold nothing, once there are many', () => {
    const queue = queueOf({ slots: { total: 1_000_000, perTenant: 1_000_000, perMember: 1 } });
    const held = Array.from({ length: 3 }, () => queue.tryTake(requester('t', 'holder')));
    expect(held.map((release) => release !== undefined)).toEqual([true, false, false]);
    const before = usedHeap();
    for (let index = 0; index < 300_000; index += 1) {
      queue.tryTake(requester(`tenant ${index}`))?.();
      queue.tryTake(requester('t', `member ${index}`))?.();
    }
    expect(usedHeap() - before).toBeLessThan(30_000_000);
    expect(queue.tryTake(requester('t', 'holder'))).toBeUndefined();
    expect(queue.running).toBe(1);
  });

  it('never exceeds a share, leaves no slot idle that a waiting request could use, and knows which slots others want', async () => {
    const step = fc.record({
      tenant: fc.constantFrom('a', 'b', 'c'),
      member: fc.constantFrom('1', '2', '3'),
      releases: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const slots = { total: 5, perTenant: 3, perMember: 2 };
        const queue = queueOf({ slots, waiting: { total: 1_000, perTenant: 1_000, perMember: 1_000 } });
        const held: { tenant: string; member: string; release: ReleaseSlot }[] = [];
        let waiting: { tenant: string; member: string }[] = [];
        for (const { releases, ...asked } of steps) {
          if (releases) held.shift()?.release();
          else {
            waiting.push(asked);
            void queue.take(asked).then((release) => {
              waiting = waiting.filter((one) => one !== asked);
              held.push({ ...asked, release });
            });
          }
          await new Promise(setImmediate);
          const ofTenant = (name: string) => held.filter(({ tenant }) => tenant === name).length;
          const ofMember = (one: { tenant: string; member: string }) =>
            held.filter(({ tenant, member }) => tenant === one.tenant && member === one.member).length;
          expect(held.length).toBeLessThanOrEqual(slots.total);
          for (const one of held) {
            expect(ofTenant(one.tenant)).toBeLessThanOrEqual(slots.perTenant);
            expect(ofMember(one)).toBeLessThanOrEqual(slots.perMember);
          }
          for (const one of waiting)
            expect(
              held.length === slots.total ||
                ofTenant(one.tenant) === slots.perTenant ||
                ofMember(one) === slots.perMember,
            ).toBe(true);
          for (const one of held) {
            const others = held.filter((other) => other !== one);
            const couldStart = ({ tenant, member }: { tenant: string; member: string }) => {
              const ofSameTenant = others.filter((other) => other.tenant === tenant);
              const ofSameMember = ofSameTenant.filter((other) => other.member === member);
              return ofSameTenant.length < slots.perTenant && ofSameMember.length < slots.perMember;
            };
            const isOfAnother = (requester: { tenant: string; member: string }) =>
              requester.tenant !== one.tenant || requester.member !== one.member;
            expect(queue.isWanted(one)).toBe(
              waiting.some((requester) => isOfAnother(requester) && couldStart(requester)),
            );
          }
          expect(queue).toMatchObject({ running: held.length, waiting: waiting.length });
        }
        while (held.length > 0) {
          held.shift()?.release();
          await new Promise(setImmediate);
        }
        expect(queue).toMatchObject({ running: 0, waiting: 0 });
      }),
    );
  });
});
