// How the outbox dispatcher notices the requests of its process.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createTraffic } from './relay.ts';

it('a process serves while more requests come in a second than those of probes', async () => {
  let time = 0;
  const traffic = createTraffic({ now: () => time });
  const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const ask = async (times: number) => {
      for (let made = 0; made < times; made += 1)
        await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    };
    await ask(4);
    expect(traffic.isServing()).toBe(false);
    time = 500;
    await ask(1);
    expect(traffic.isServing()).toBe(true);
    time = 999;
    expect(traffic.isServing()).toBe(true);
    time = 1_000;
    expect(traffic.isServing()).toBe(false);
    await ask(4);
    expect(traffic.isServing()).toBe(true);
    traffic.close();
    time = 5_000;
    await ask(9);
    expect(traffic.isServing()).toBe(false);
  } finally {
    traffic.close();
    server.closeAllConnections();
    server.close();
  }
});
