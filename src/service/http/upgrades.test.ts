// Tests WebSocket handshakes that pass through the app, and the end of upgraded connections when the process stops.

import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { createMetrics } from '../operations/metrics.ts';
import { type RunningService, serve } from '../operations/serve.ts';
import { anonymous, createHttpApp, route } from './http-app.ts';
import { upgradeOf } from './upgrades.ts';

let running: RunningService;
let log: CapturedLog;

/**
 * Serves three routes. `/socket` switches the protocol and echoes, `/refuse` sends an ordinary response, and `/plain`
 * may not switch the protocol.
 */
beforeEach(async () => {
  log = captureLog();
  const responses = { 200: { description: 'Fine' } };
  const metrics = createMetrics();
  const routes = ['/socket', '/refuse', '/plain'].map((path) =>
    route({
      method: 'get',
      path,
      summary: path,
      guards: [anonymous],
      responses,
      handle(_input, request, response) {
        const upgrade = upgradeOf(request);
        if (!upgrade || path !== '/socket') {
          response.json(upgrade ? 'refused' : 'no upgrade');
          return;
        }
        response.statusCode = 101;
        upgrade.socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
        upgrade.socket.write(upgrade.head);
        upgrade.socket.pipe(upgrade.socket);
      },
    }),
  );
  const app = createHttpApp({ log: log.log, metrics, routes, trustedProxies: 0, corsOrigins: [], bodyLimit: 1_024 });
  running = await serve({
    ...{ app, metrics, log: log.log, host: '127.0.0.1', port: 0, metricsPort: 0, drainDeadline: 300 },
    mayUpgrade: ({ url }) => url === '/socket' || url === '/refuse',
    close: async () => undefined,
  });
});
afterEach(() => running.close());

const handshake = (path: string, lines: string[] = [], body = '') => {
  const head = [
    `GET ${path} HTTP/1.1`,
    'Host: a',
    'Connection: Upgrade',
    ...(lines.length > 0 ? lines : ['Upgrade: websocket']),
  ];
  return sendRaw(running.port, `${head.join('\r\n')}\r\n\r\n${body}`);
};

describe('a WebSocket handshake', () => {
  it('is passed to the route with data that the client sent early, and is logged with status 101 when it ends', async () => {
    const socket = connect(running.port, '127.0.0.1');
    socket.write('GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    const body = () => text.split('\r\n\r\n')[1];
    await expect.poll(body).toBe('early');
    socket.write(' late');
    await expect.poll(body).toBe('early late');
    expect(log.lines().filter(({ msg }) => msg === 'request')).toEqual([]);
    socket.destroy();
    const line = () => log.lines().find(({ msg }) => msg === 'request');
    await expect.poll(line).toMatchObject({ route: '/socket', status: 101 });
  });

  it('that the route does not accept gets a normal response, and the connection closes', async () => {
    const { status, body, headers } = await handshake('/refuse');
    expect([status, body, headers.get('connection')]).toEqual([200, '"refused"', 'close']);
    expect((await handshake('/refuse/nothing')).status).toBe(404);
    expect(log.lines().filter(({ msg }) => msg === 'request')).toHaveLength(2);
  });

  it('is ignored on other URLs, with another protocol, method or version, or with a body', async () => {
    expect((await handshake('/plain')).body).toBe('"no upgrade"');
    for (const protocol of ['h2c', 'websocket, h2c', 'foo']) {
      expect((await handshake('/socket', [`Upgrade: ${protocol}`, 'Connection: close'])).body).toBe('"no upgrade"');
    }
    const withBody = await handshake('/socket', ['Upgrade: websocket', 'Content-Length: 4'], 'body');
    expect(withBody.body).toBe('"no upgrade"');
    const old = await sendRaw(
      running.port,
      'GET /socket HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    expect(old.body).toBe('"no upgrade"');
  });

  it('survives a client that disconnects before the response', async () => {
    for (let index = 0; index < 20; index += 1) {
      const socket = connect(running.port, '127.0.0.1');
      socket.write('GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      await delay(1);
      socket.resetAndDestroy();
    }
    expect((await handshake('/refuse')).status).toBe(200);
  });
});

it('an upgraded connection ends at the drain deadline and does not delay the stop', async () => {
  const socket = connect(running.port, '127.0.0.1');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined).resume();
  socket.write('GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await once(socket, 'data');
  const started = performance.now();
  await running.close();
  expect(performance.now() - started).toBeGreaterThan(250);
  await closed;
});
