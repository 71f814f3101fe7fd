// What the relay knows of the requests of its process.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createTraffic } from './traffic.ts';

it('a process serves for a second after each request', async () => {
  let time = 0;
  const traffic = createTraffic({ now: () => time });
  const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const ask = () => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(traffic.isServing()).toBe(false);
    await ask();
    expect(traffic.isServing()).toBe(true);
    time = 999;
    expect(traffic.isServing()).toBe(true);
    time = 1_000;
    expect(traffic.isServing()).toBe(false);
    traffic.close();
    await ask();
    expect(traffic.isServing()).toBe(false);
  } finally {
    traffic.close();
    server.closeAllConnections();
    server.close();
  }
});
