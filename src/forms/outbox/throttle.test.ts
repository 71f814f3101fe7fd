// The throttle, on a clock that stands still unless it is moved.
import { expect, it } from 'vitest';
import { createThrottle } from './throttle.ts';

function world() {
  let time = 0;
  let allowance = { rate: 1_000, burst: 10 };
  const throttle = createThrottle({ allowance: () => allowance, now: () => time });
  const takeAll = () => {
    let taken = 0;
    while (throttle.take()) taken += 1;
    return taken;
  };
  return {
    throttle,
    takeAll,
    advance: (milliseconds: number) => {
      time += milliseconds;
    },
    allow: (value: typeof allowance) => {
      allowance = value;
    },
  };
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

it('makes nothing good where bursts are small: who is late starts fewer', () => {
  const { takeAll, advance, allow } = world();
  allow({ rate: 1_000, burst: 4 });
  expect(takeAll()).toBe(4);
  advance(30);
  expect(takeAll()).toBe(4);
});

it('goes by the allowance of the moment', () => {
  const { takeAll, advance, allow } = world();
  takeAll();
  allow({ rate: 100, burst: 10 });
  advance(50);
  expect(takeAll()).toBe(5);
  allow({ rate: 1_000, burst: 10 });
  advance(5);
  expect(takeAll()).toBe(5);
});
