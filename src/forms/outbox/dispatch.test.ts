// What is started of the rows that a relay has claimed, and what is given back. Deliveries end when the test says so.
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createDispatch } from './dispatch.ts';
import { createGate, type Gate } from './gate.ts';
import type { ClaimedRow } from './store.ts';
import { createThrottle } from './throttle.ts';

const now = new Date('2026-08-20T17:00:00.000Z');
const lease = 60_000;

function rows(count: number, leaseLeft = lease): ClaimedRow[] {
  return Array.from({ length: count }, (_, index) => ({
    sequence: String(index + 1),
    formId: `form-${index}`,
    tenantId: 't',
    kind: 'form-locked',
    facts: { definitionId: 'permit' },
    created: now,
    attempts: 1,
    refusals: 0,
    form: undefined,
    claimedUntil: new Date(now.getTime() + leaseLeft),
  }));
}

function world(capacity = 8) {
  const [started, givenBack, ends]: [string[], string[], (() => void)[]] = [[], [], []];
  const gate: Gate = createGate({ clock: () => now, backoff: { first: 1_000, cap: 1_000 } });
  const dispatch = createDispatch({
    capacity,
    lease,
    gate,
    throttle: createThrottle({ allowance: () => ({ rate: 1_000_000, burst: 1_000 }), now: () => performance.now() }),
    clock: () => now,
    deliver: ({ sequence }) => {
      started.push(sequence);
      return new Promise((resolve) => ends.push(resolve));
    },
    giveBack: ({ sequence }) => givenBack.push(sequence),
  });
  return { dispatch, gate, started, givenBack, ends };
}

it('a few deliveries start at a time, so that requests come in between, and the rest follows', async () => {
  const { dispatch, started } = world();
  dispatch.add(rows(6));
  expect(started).toHaveLength(4);
  await turn();
  expect(started).toHaveLength(6);
});

it('no more are under way than there is room for; the next starts when one ends', async () => {
  const { dispatch, started, ends } = world(3);
  dispatch.add(rows(5));
  await turn();
  expect([started.length, dispatch.size()]).toEqual([3, 5]);
  ends[0]?.();
  await turn();
  expect([started.length, dispatch.size()]).toEqual([4, 4]);
});

it('a row whose claim is half over is given back and not tried: another relay may take it soon', () => {
  const { dispatch, started, givenBack } = world();
  dispatch.add(rows(2, lease / 2 - 1));
  expect([started, givenBack]).toEqual([[], ['1', '2']]);
});

it('rows that come while the service is down are given back, but for the probe', () => {
  const { dispatch, gate, started, givenBack } = world();
  for (let failure = 0; failure < 5; failure += 1) gate.failed('service');
  expect(gate.state()).toBe('shut');
  dispatch.add(rows(3));
  expect([started, givenBack]).toEqual([[], ['1', '2', '3']]);
});

it('a stop gives back what waits and resolves when what is under way has ended', async () => {
  const { dispatch, started, givenBack, ends } = world(1);
  dispatch.add(rows(3));
  const stopped = dispatch.stop();
  expect([started, givenBack]).toEqual([['1'], ['2', '3']]);
  ends[0]?.();
  await stopped;
  dispatch.add(rows(1));
  expect(givenBack).toHaveLength(3);
});
