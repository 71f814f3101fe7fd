// Tests requests that a listener serves without Express.
import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { createOpenApi } from '../openapi/openapi.ts';
import { createMetrics, type Metrics } from '../operations/metrics.ts';
import { anonymous, documentedRoute } from './http-app.ts';
import { createPlainListener, type PlainHandler } from './plain-listener.ts';
import { Problem } from './problem.ts';
import { writeHead } from './request-context.ts';

let server: Server;
let log: CapturedLog;
let metrics: Metrics;
afterEach(() => closeServer(server));

/** Starts a listener with the route `/things/:thingId/*path`; returns its port. */
async function start(serve: PlainHandler['serve'], trustedProxies = 0): Promise<number> {
  log = captureLog();
  metrics = createMetrics();
  const recorders = { log: log.log, metrics, trustedProxies };
  server = createServer(createPlainListener(recorders, { routeOf: () => '/things/:thingId/*path', serve }));
  return listenOnLoopback(server);
}

const send = (port: number, line: string, ...lines: string[]) =>
  sendRaw(port, `${[`${line} HTTP/1.1`, 'Host: a', ...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`);

const lastLine = async () => {
  const line = () => log.lines().findLast(({ msg }) => String(msg).startsWith('request'));
  await expect.poll(line).toBeDefined();
  return line();
};

describe('a plain listener', () => {
  it('passes any method and URL on unchanged', async () => {
    const port = await start(async ({ method, url }, response) => void response.end(`${method} ${url}`));
    for (const line of [
      'PROPFIND /things/a/../b%2f%zz%00?c',
      'GET http://evil.example/things/a',
      'OPTIONS /things/x//y',
    ])
      expect((await send(port, line)).body).toBe(line);
  });

  it('gives a request the id, headers, log line and duration of every other request', async () => {
    const port = await start(async (_request, response) => {
      writeHead(response, 200, {});
      response.end('fine');
    }, 1);
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const { headers } = await send(port, 'GET /things/secret/x?y', 'X-Request-Id: one', `traceparent: ${traceparent}`);
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-request-id': 'one',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    const route = '/things/:thingId/*path';
    expect(await lastLine()).toMatchObject({ requestId: 'one', route, method: 'GET', status: 200 });
    expect((await lastLine())?.traceId).toBe(traceparent.slice(3, 35));
    expect(log.text()).not.toContain('secret');
    const text = await metrics.registry.metrics();
    expect(text).toContain(`formgate_http_requests_total{method="GET",route="${route}",status="2xx"} 1`);
  });

  it.each([false, true])('turns an error into the same problem as Express does; asynchronous: %s', async (isLate) => {
    const port = await start(async () => {
      if (isLate) await new Promise((resolve) => setImmediate(resolve));
      throw new Problem('forbidden', 'No.', { headers: { 'X-Why': 'no' } });
    });
    for (const origin of ['', 'http://a:99999', 'http://[']) {
      const { status, headers, body } = await send(port, `GET ${origin}/things/a?code=1`);
      if (status === 400) continue;
      expect([status, headers.get('content-type'), headers.get('x-why')]).toEqual([
        403,
        'application/problem+json; charset=utf-8',
        'no',
      ]);
      expect(JSON.parse(body)).toMatchObject({ detail: 'No.', instance: '/things/a' });
    }
  });

  it('hides an unknown error behind a bare 500, and logs its cause', async () => {
    const port = await start(async () => {
      throw new Error('the pool is empty');
    });
    const { status, body } = await send(port, 'GET /things/a');
    expect([status, body.includes('pool')]).toEqual([500, false]);
    expect(await lastLine()).toMatchObject({ level: 'error', status: 500, err: { message: 'the pool is empty' } });
  });

  it('closes the connection of a response that fails after it has begun', async () => {
    const port = await start(async (_request, response) => {
      response.write('half');
      await new Promise((resolve) => setImmediate(resolve));
      throw new Error('broken');
    });
    const response = await fetch(`http://127.0.0.1:${port}/things/a`);
    await expect(response.text()).rejects.toThrow();
  });

  it('adds no cross-origin headers, and passes preflight requests on', async () => {
    const port = await start(async ({ method }, response) => void response.end(method));
    const preflight = ['Origin: https://a.example', 'Access-Control-Request-Method: PUT'];
    const { headers, body } = await send(port, 'OPTIONS /things/x', ...preflight);
    expect([body, headers.has('access-control-allow-origin')]).toEqual(['OPTIONS', false]);
  });

  it('rejects faulty framing before the handler runs', async () => {
    let isServed = false;
    const port = await start(async () => {
      isServed = true;
    });
    expect((await send(port, 'GET /things/a', 'Host: b')).status).toBe(400);
    expect(isServed).toBe(false);
  });

  it.each([
    [0, '127.0.0.1'],
    [1, '203.0.113.9'],
    [2, '198.51.100.7'],
  ])('finds the client address behind %i trusted proxies', async (hops, expected) => {
    const port = await start(
      async (_request, response) => void response.end(JSON.stringify(response.locals.forwarded)),
      hops,
    );
    const { body } = await send(
      port,
      'GET /x',
      'X-Forwarded-For: 198.51.100.7, 203.0.113.9:4711',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Host: b.example',
    );
    const forwarded = hops === 0 ? { host: 'a', protocol: 'http' } : { host: 'b.example', protocol: 'https' };
    expect(JSON.parse(body)).toEqual({ address: expected, ...forwarded });
  });
});

it('a documented route is in the document with every method', () => {
  const route = documentedRoute({
    method: 'all',
    path: '/things/:thingId/*path',
    summary: 'Anything',
    guards: [anonymous],
    responses: { 200: { description: 'The response' } },
  });
  const { paths } = createOpenApi({ title: 'x', version: '1', description: 'x', routes: [route] });
  const item = paths?.['/things/{thingId}/{path}'];
  expect(Object.keys(item ?? {})).toEqual(['get', 'post', 'put', 'patch', 'delete', 'head', 'options']);
});
