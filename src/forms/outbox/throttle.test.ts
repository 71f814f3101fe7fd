// Tests the limit on the rate of deliveries, with a clock that the tests advance.
import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { createThrottle, watchTraffic } from './throttle.ts';

function world() {
  let time = 0;
  const traffic = { serving: false, isServing: () => traffic.serving };
  const throttle = createThrottle({ rates: { idle: 1_000, serving: 100 }, traffic, now: () => time });
  const takeAll = () => {
    let taken = 0;
    while (throttle.take()) taken += 1;
    return taken;
  };
  const advance = (milliseconds: number) => {
    time += milliseconds;
  };
  return { throttle, traffic, takeAll, advance };
}

it('no more deliveries start in a second than the rate, however often one asks', () => {
  const { takeAll, advance } = world();
  takeAll();
  let taken = 0;
  for (let step = 0; step < 400; step += 1) {
    advance(2.5);
    taken += takeAll();
  }
  expect(taken).toBe(1_000);
});

it('unused rate is made up for, but only up to the burst', () => {
  const { takeAll, advance } = world();
  expect(takeAll()).toBe(150);
  advance(5);
  expect(takeAll()).toBe(5);
  advance(60_000);
  expect(takeAll()).toBe(150);
});

it('the wait for the next delivery is known', () => {
  const { throttle, takeAll, advance } = world();
  takeAll();
  expect(throttle.waitMs()).toBe(1);
  advance(1);
  expect(throttle.waitMs()).toBe(0);
  expect(throttle.take()).toBe(true);
});

it('while requests come in, deliveries get the lower rate and a burst of four', () => {
  const { throttle, traffic, takeAll, advance } = world();
  traffic.serving = true;
  expect(takeAll()).toBe(4);
  expect(throttle.waitMs()).toBe(10);
  advance(20);
  expect(takeAll()).toBe(2);
  advance(60_000);
  expect(takeAll()).toBe(4);
  traffic.serving = false;
  advance(5);
  expect(takeAll()).toBe(5);
});

it('a process serves while more requests come in within a second than probes make', async () => {
  let time = 0;
  const traffic = watchTraffic(() => time);
  const server = createServer((_request, response) => response.end());
  try {
    const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
    const request = async (times: number) => {
      for (let made = 0; made < times; made += 1) await fetch(url);
    };
    await request(4);
    expect(traffic.isServing()).toBe(false);
    time = 500;
    await request(1);
    expect(traffic.isServing()).toBe(true);
    time = 999;
    expect(traffic.isServing()).toBe(true);
    time = 1_000;
    expect(traffic.isServing()).toBe(false);
    await request(4);
    expect(traffic.isServing()).toBe(true);
    traffic.close();
    time = 5_000;
    await request(9);
    expect(traffic.isServing()).toBe(false);
  } finally {
    traffic.close();
    await closeServer(server);
  }
});
