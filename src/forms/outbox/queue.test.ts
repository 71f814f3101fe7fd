// Tests which claimed rows a queue delivers and which it gives back. The tests determine when deliveries end.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import type { Delivered } from './delivery.ts';
import { createFailureLog } from './failure-log.ts';
import { createQueue, type Queue } from './queue.ts';
import type { ClaimedRow } from './store.ts';

const now = new Date('2026-08-20T17:00:00.000Z');
const clock = () => now;
const lease = 60_000;

function rows(count: number, leaseLeft = lease): ClaimedRow[] {
  return Array.from({ length: count }, (_, index) => ({
    sequence: String(index + 1),
    formId: `form-${index}`,
    tenantId: 't',
    kind: 'form-locked',
    notBefore: '2026-08-20 17:00:00+00',
    facts: { definitionId: 'permit' },
    created: now,
    attempts: 1,
    refusals: 0,
    traceparent: null,
    requestId: null,
    form: undefined,
    claimedUntil: new Date(now.getTime() + leaseLeft),
  }));
}

let queue: Queue | undefined;
let ends: ((outcome: Promise<Delivered> | Delivered) => void)[] = [];
/** Ends the wait of a database that hangs. */
let settle: () => void = () => undefined;
afterEach(async () => {
  settle();
  const stopped = queue?.stop();
  for (const end of ends) end({ outcome: 'accepted' });
  await stopped;
});

/**
 * Creates a queue whose claims return these batches one after another, and then no rows. Rows are settled as accepted
 * only after `settling`.
 */
function world(batches: ClaimedRow[][], capacity = 8, settling: Promise<void> = Promise.resolve()) {
  const [started, accepted, givenBack]: [string[], string[], string[]] = [[], [], []];
  ends = [];
  const created = createQueue({
    service: 'events',
    pace: {
      ...{ capacity, ahead: 8, lease, deadline: 60_000, poll: { min: 5, max: 10 }, refusals: 10 },
      retry: { service: { first: 1_000, cap: 1_000 }, row: { first: 1_000, cap: 1_000 } },
      outage: { first: 1_000, cap: 1_000 },
    },
    store: {
      fewest: async () => [],
      claim: async ({ limit }) => ({ rows: (batches.shift() ?? []).slice(0, limit), end: undefined }),
      async accept(settled) {
        await settling;
        accepted.push(...settled.map(({ row }) => row.sequence));
      },
      fail: async (settled) => void givenBack.push(...settled.map(({ row }) => row.sequence)),
      quarantine: async () => undefined,
      backlog: async () => [],
      readData: async () => null,
    },
    deliver: ({ sequence }) => {
      started.push(sequence);
      return new Promise((resolve) => ends.push(resolve));
    },
    throttle: { take: () => true, waitMs: () => 0 },
    failures: createFailureLog({ log: captureLog().log, clock }),
    metrics: { delivered: () => undefined },
    clock,
  });
  queue = created;
  return { queue: created, started, accepted, givenBack };
}

it('requests of the process are handled between the starts of deliveries', async () => {
  const { started } = world([rows(6)]);
  const seen: number[] = [];
  while (started.length < 6) {
    await new Promise(setImmediate);
    seen.push(started.length);
  }
  expect(seen).toContain(4);
});

it('no more deliveries run than the capacity allows; the next starts when one ends', async () => {
  const { started } = world([rows(5)], 3);
  await expect.poll(() => started).toHaveLength(3);
  await sleep(30);
  expect(started).toHaveLength(3);
  ends[0]?.({ outcome: 'accepted' });
  await expect.poll(() => started).toHaveLength(4);
});

it('a row whose lease is half over is given back untried, because another process may claim it soon', async () => {
  const { started, givenBack } = world([rows(2, lease / 2 - 1)]);
  await expect.poll(() => givenBack).toEqual(['1', '2']);
  expect(started).toEqual([]);
});

it('rows that wait when the service goes down are given back', async () => {
  const { started, givenBack } = world([rows(8)], 5);
  await expect.poll(() => started).toHaveLength(5);
  for (const end of ends) end(Promise.reject(new PlatformError('events', 'unreachable', { reason: 'ECONNREFUSED' })));
  await expect.poll(() => givenBack).toHaveLength(8);
  expect(started).toHaveLength(5);
});

it('a stop gives back waiting rows, and resolves when the running delivery is settled', async () => {
  const { queue: stopping, started, accepted, givenBack } = world([rows(3)], 1);
  await expect.poll(() => started).toEqual(['1']);
  const stopped = stopping.stop();
  await expect.poll(() => givenBack).toEqual(['2', '3']);
  expect(accepted).toEqual([]);
  ends[0]?.({ outcome: 'accepted' });
  await stopped;
  expect(accepted).toEqual(['1']);
});

it('a stop waits three seconds for a delivery that hangs, and leaves its row to another process', async () => {
  const { queue: stopping, started, accepted, givenBack } = world([rows(1)]);
  await expect.poll(() => started).toEqual(['1']);
  const stopwatch = startStopwatch();
  await stopping.stop();
  // The process must release all its resources within five seconds.
  expect(stopwatch.stop()).toBeLessThan(5_000);
  ends[0]?.({ outcome: 'accepted' });
  await sleep(100);
  expect([accepted, givenBack]).toEqual([[], []]);
});

it('a stop does not wait for outcomes that the database never stores', async () => {
  const hanging = Promise.withResolvers<void>();
  settle = hanging.resolve;
  const { queue: stopping, started, accepted } = world([rows(1)], 1, hanging.promise);
  await expect.poll(() => started).toEqual(['1']);
  ends[0]?.({ outcome: 'accepted' });
  const stopwatch = startStopwatch();
  const late = new AbortController();
  const ended = await Promise.race([
    stopping.stop().then(() => 'stopped'),
    sleep(20_000, 'waiting', { signal: late.signal }),
  ]);
  late.abort();
  expect([ended, accepted]).toEqual(['stopped', []]);
  expect(stopwatch.stop()).toBeLessThan(5_000);
});
