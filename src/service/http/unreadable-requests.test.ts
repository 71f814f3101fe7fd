// Tests over real connections that a request that Node's parser cannot read gets a problem, a log line and a metric.
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createMetrics, type Metrics } from '../operations/metrics.ts';
import { type RunningService, serve } from '../operations/serve.ts';

let service: RunningService;
let metrics: Metrics;
let client: Socket;
let received: string;
let failures: string[];
const { log, lines } = captureLog();
afterEach(async () => {
  client.destroy();
  await service.close();
});

async function start(app: RequestListener = (_request, response) => void response.end('served')): Promise<void> {
  metrics = createMetrics();
  const ports = { host: '127.0.0.1', port: 0, metricsPort: 0, drainDeadline: 1_000 };
  service = await serve({ app, metrics, log, ...ports, close: async () => undefined });
  [received, failures] = ['', []];
  client = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
  client.on('error', ({ message }) => failures.push(message));
  client.on('data', (data) => {
    received += data;
  });
}

/** Resolves when the server has closed its direction of the connection, or has reset the connection. */
const isClosed = () => new Promise<void>((resolve) => client.once('end', resolve).once('close', () => resolve()));

/** Returns the status and the problem of a response that is the only one of its connection. */
function response(): { status: number; head: string; body: Record<string, unknown> } {
  const [head = '', body = ''] = received.split('\r\n\r\n');
  expect(Number(/content-length: (\d+)/i.exec(head)?.[1])).toBe(Buffer.byteLength(body));
  return { status: Number(/^HTTP\/1\.1 (\d{3}) [A-Z]/.exec(head)?.[1]), head, body: JSON.parse(body) };
}

it.each([
  [
    'has too large headers',
    431,
    'headers-too-large',
    `GET / HTTP/1.1\r\nHost: a\r\nCookie: ${'x'.repeat(20_000)}\r\n\r\n`,
  ],
  ['is not HTTP', 400, 'invalid-request', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
  [
    'has two lengths',
    400,
    'invalid-request',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
  ],
  [
    'has too large chunk extensions',
    413,
    'body-too-large',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(20_000)}\r\n`,
  ],
])('a request that %s gets %i %s', async (_what, status, slug, text) => {
  // This app waits for the body.
  await start((request, answer) => void request.once('end', () => answer.end('served')).resume());
  client.write(text);
  await once(client, 'end');
  const problem = response();
  expect(problem.body).toMatchObject({
    type: `urn:formgate:problem:${slug}`,
    status,
    errorMessage: expect.any(String),
  });
  expect(problem.status).toBe(status);
  expect(problem.head).toMatch(/content-type: application\/problem\+json.*connection: close/is);
  const [, requestId] = /x-request-id: ([\w-]{36})\r/i.exec(`${problem.head}\r`) ?? [];
  expect(requestId).toBeDefined();
  expect(lines().at(-1)).toMatchObject({ msg: 'unreadable request', status, requestId });
  const counted = 'formgate_http_requests_total{method="other",route="unreadable",status="4xx"} 1';
  expect(await metrics.registry.metrics()).toContain(counted);
});

it('a client may send the rest of its headers before it reads the response', async () => {
  await start();
  client.write('GET / HTTP/1.1\r\nHost: a\r\n');
  for (let sent = 0; sent < 20; sent += 1) {
    client.write(`X-${sent}: ${'x'.repeat(10_000)}\r\n`);
    await delay(2);
  }
  client.end();
  await once(client, 'close');
  expect([response().status, failures]).toEqual([431, []]);
});

it('a response that has begun is not followed by the problem of the next request', async () => {
  await start((_request, answer) => void answer.writeHead(200, { 'Content-Length': 10 }).write('12345'));
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(client, 'data');
  client.write('not HTTP\r\n\r\n');
  await isClosed();
  expect(received).toMatch(/\r\n\r\n12345$/);
});

it('a response that waits behind another one is not overtaken by the problem of a third request', async () => {
  let requests = 0;
  await start((_request, answer) => {
    requests += 1;
    if (requests === 1) answer.writeHead(200, { 'Content-Length': 10 }).write('12345');
  });
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(client, 'data');
  await expect.poll(() => requests).toBe(2);
  client.write('not HTTP\r\n\r\n');
  await isClosed();
  expect(received).toMatch(/\r\n\r\n12345$/);
});

it('a client that never ends its unreadable request loses the connection after a time', async () => {
  await start();
  client.write('not HTTP\r\n\r\n');
  await once(client, 'end');
  const sending = setInterval(() => client.write('x'), 50);
  await new Promise((resolve) => client.once('close', resolve));
  clearInterval(sending);
  expect(response().status).toBe(400);
});
