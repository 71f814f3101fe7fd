// When a lane is held back, and when it is let go.
import { expect, it } from 'vitest';
import { retryDelay } from '../../service/retry.ts';
import { createGate } from './gate.ts';

function gateAt() {
  let now = 0;
  const gate = createGate({ clock: () => new Date(now), backoff: { first: 1_000, cap: 30_000 }, random: () => 1 });
  const failures = (count: number, side: 'service' | 'row') => Array.from({ length: count }, () => gate.failed(side));
  return { gate, failures, pass: (ms: number) => (now += ms) };
}

it('five failures of the service in a row shut the gate, and only the fifth begins the outage', () => {
  const { gate, failures } = gateAt();
  expect(failures(4, 'service')).toEqual([undefined, undefined, undefined, undefined]);
  expect(gate.state()).toBe('open');
  expect(failures(3, 'service')).toEqual(['began', undefined, undefined]);
  expect(gate.state()).toBe('shut');
  expect(gate.waitMs()).toBe(1_000);
});

it('a success between failures keeps the gate open, so that one bad row does not stop the others', () => {
  const { gate, failures } = gateAt();
  for (let round = 0; round < 20; round += 1) {
    failures(4, 'service');
    expect(gate.succeeded()).toBeUndefined();
  }
  expect(gate.state()).toBe('open');
});

it('each failed probe doubles the wait up to the cap, and a probe that succeeds ends the outage', () => {
  const { gate, failures, pass } = gateAt();
  failures(5, 'service');
  const waits: number[] = [];
  for (let probe = 0; probe < 7; probe += 1) {
    waits.push(gate.waitMs());
    pass(gate.waitMs());
    expect(gate.state()).toBe('probe');
    gate.failed('service');
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  pass(30_000);
  expect(gate.succeeded()).toBe('ended');
  expect(gate.state()).toBe('open');
  failures(5, 'service');
  expect(gate.waitMs()).toBe(1_000);
});

it('a refused row shows that the service is back', () => {
  const { gate, failures, pass } = gateAt();
  failures(5, 'service');
  pass(1_000);
  expect(gate.failed('row')).toBe('ended');
  expect(gate.state()).toBe('open');
});

it('refused rows never shut the gate, however many: one tenant’s rows hold up nobody else’s', () => {
  const { gate, failures } = gateAt();
  expect(failures(1_000, 'row').filter((change) => change !== undefined)).toEqual([]);
  expect(gate.state()).toBe('open');
});

it('the wait of a row doubles with each try, is capped, and is spread over the upper half', () => {
  const backoff = { first: 5_000, cap: 300_000 };
  expect([1, 2, 3, 7, 8, 1_000].map((attempts) => retryDelay(attempts, backoff, () => 1))).toEqual([
    5_000, 10_000, 20_000, 300_000, 300_000, 300_000,
  ]);
  expect(retryDelay(1, backoff, () => 0)).toBe(2_500);
});
