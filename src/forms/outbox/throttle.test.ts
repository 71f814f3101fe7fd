// The throttle, on a clock that stands still unless it is moved.
import { expect, it } from 'vitest';
import { createThrottle } from './throttle.ts';

function world() {
  let time = 0;
  const throttle = createThrottle({ rate: 1_000, burst: 10, now: () => time });
  const takeAll = () => {
    let taken = 0;
    while (throttle.take()) taken += 1;
    return taken;
  };
  return { throttle, takeAll, advance: (milliseconds: number) => (time += milliseconds) };
}

it('lets as many start in a second as its rate says, however often it is asked', () => {
  const { takeAll, advance } = world();
  takeAll();
  let taken = 0;
  for (let step = 0; step < 400; step += 1) {
    advance(2.5);
    taken += takeAll();
  }
  expect(taken).toBe(1_000);
});

it('makes good what a busy moment held up, but no more than a burst', () => {
  const { takeAll, advance } = world();
  expect(takeAll()).toBe(10);
  advance(5);
  expect(takeAll()).toBe(5);
  advance(60_000);
  expect(takeAll()).toBe(10);
});

it('tells how long to wait', () => {
  const { throttle, takeAll, advance } = world();
  takeAll();
  expect(throttle.waitMs()).toBe(1);
  advance(1);
  expect(throttle.waitMs()).toBe(0);
  expect(throttle.take()).toBe(true);
});
