// Tests when a service counts as down, and when it is probed.
import { expect, it } from 'vitest';
import { retryDelay } from '../../service/retry.ts';
import { createOutage } from './failure.ts';

function world() {
  let now = 0;
  const outage = createOutage({ clock: () => new Date(now), backoff: { first: 1_000, cap: 30_000 }, random: () => 1 });
  const fail = (count: number, side: 'service' | 'row') => Array.from({ length: count }, () => outage.failed(side));
  const advance = (milliseconds: number) => {
    now += milliseconds;
  };
  return { outage, fail, advance };
}

it('a service is down after five consecutive failures', () => {
  const { outage, fail } = world();
  fail(4, 'service');
  expect(outage.state()).toBe('none');
  fail(3, 'service');
  expect(outage.state()).toBe('down');
  expect(outage.waitMs()).toBe(1_000);
});

it('a success between failures shows that the service works', () => {
  const { outage, fail } = world();
  for (let round = 0; round < 20; round += 1) {
    fail(4, 'service');
    expect(outage.succeeded()).toBeUndefined();
  }
  expect(outage.state()).toBe('none');
});

it('each failed probe doubles the wait up to the cap, and a successful one ends the outage', () => {
  const { outage, fail, advance } = world();
  fail(5, 'service');
  const waits: number[] = [];
  for (let probe = 0; probe < 7; probe += 1) {
    waits.push(outage.waitMs());
    advance(outage.waitMs());
    expect(outage.state()).toBe('probe');
    outage.failed('service');
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  advance(30_000);
  expect(outage.succeeded()).toBe('ended');
  expect(outage.state()).toBe('none');
  fail(5, 'service');
  expect(outage.waitMs()).toBe(1_000);
});

it('a refused row shows that the service is back', () => {
  const { outage, fail, advance } = world();
  fail(5, 'service');
  advance(1_000);
  expect(outage.failed('row')).toBe('ended');
  expect(outage.state()).toBe('none');
});

it('refused rows are no outage, however many: those of one tenant do not hold back the others', () => {
  const { outage, fail } = world();
  expect(fail(1_000, 'row').every((change) => change === undefined)).toBe(true);
  expect(outage.state()).toBe('none');
});

it('the wait of a row doubles with each attempt, is capped, and its upper half is random', () => {
  const backoff = { first: 5_000, cap: 300_000 };
  expect([1, 2, 3, 7, 8, 1_000].map((attempts) => retryDelay(attempts, backoff, () => 1))).toEqual([
    5_000, 10_000, 20_000, 300_000, 300_000, 300_000,
  ]);
  expect(retryDelay(1, backoff, () => 0)).toBe(2_500);
});
