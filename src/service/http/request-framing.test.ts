// Tests requests that Node's parser accepts although HTTP/1.1 forbids them.
import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { createMetrics } from '../operations/metrics.ts';
import { type RunningService, serve } from '../operations/serve.ts';
import { anonymous, createHttpApp, route } from './http-app.ts';
import { createPlainListener } from './plain-listener.ts';

let running: RunningService;
const log = captureLog();

beforeAll(async () => {
  const metrics = createMetrics();
  const handle = (_input: unknown, _request: unknown, response: { end(text: string): void }) => response.end('served');
  const common = { summary: 'x', guards: [anonymous], responses: { 200: { description: 'Fine' } }, handle };
  const routes = [route({ ...common, method: 'get', path: '/plain' })];
  const app = createHttpApp({ log: log.log, metrics, routes, trustedProxies: 0, corsOrigins: ['*'], bodyLimit: 1_024 });
  const close = async () => undefined;
  const listening = { host: '127.0.0.1', port: 0, metricsPort: 0, ready: {}, drainDeadline: 300 };
  const plain = createPlainListener(
    { log: log.log, metrics, trustedProxies: 0 },
    { routeOf: () => '/raw/:rest', serve: async (_request, response) => void response.end('served') },
  );
  const listener: RequestListener = (request, response) =>
    request.url?.startsWith('/raw/') ? plain(request, response) : app(request, response);
  running = await serve({ app: listener, metrics, log: log.log, close, ...listening });
});
afterAll(() => running.close());

const ask = (line: string, ...lines: string[]) =>
  sendRaw(running.port, Buffer.from(`${[line, ...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`, 'latin1'));

describe('a request', () => {
  it.each(['/plain', '/raw/x'])('to %s needs one Host header with a valid host', async (path) => {
    for (const host of ['a', 'a.example:8080', 'a:', '[::1]:80', '127.0.0.1'])
      expect((await ask(`GET ${path} HTTP/1.1`, `Host: ${host}`)).body).toBe('served');
    for (const host of ['', 'a b', 'a/b', 'user@a', 'a,b', 'a:x', '[::1', '\u00e9', '<a>']) {
      const { status, headers, body } = await ask(`GET ${path} HTTP/1.1`, `Host: ${host}`);
      expect([host, status, headers.get('content-type')]).toEqual([
        host,
        400,
        'application/problem+json; charset=utf-8',
      ]);
      expect(JSON.parse(body).type).toBe('urn:formgate:problem:invalid-request');
    }
    for (const second of ['Host: a', 'HOST: b', 'host:']) {
      expect((await ask(`GET ${path} HTTP/1.1`, 'Host: a', second)).status).toBe(400);
      expect((await ask(`GET ${path} HTTP/1.0`, 'Host: a', second)).status).toBe(400);
    }
    expect((await ask(`GET ${path} HTTP/1.1`)).status).toBe(400);
    expect((await ask(`GET ${path} HTTP/1.0`)).body).toBe('served');
  });

  it.each(['/plain', '/raw/x', '/unknown'])('to %s may have one Authorization header', async (path) => {
    const one = 'Authorization: Bearer a';
    expect((await ask(`GET ${path} HTTP/1.1`, 'Host: a', one)).status).not.toBe(400);
    for (const second of [
      'Authorization: Bearer a',
      'AUTHORIZATION: Bearer b',
      'authorization: Basic YTpi',
      'authorization:',
    ])
      for (const both of [
        [one, second],
        [second, one],
        [one, 'X-Other: x', second],
      ]) {
        const { status, headers, body } = await ask(`GET ${path} HTTP/1.1`, 'Host: a', ...both);
        expect([status, headers.get('www-authenticate')]).toEqual([400, 'Bearer error="invalid_request"']);
        expect(JSON.parse(body).errors).toEqual([{ pointer: '/headers/authorization', detail: 'must be sent once' }]);
      }
  });

  it('of HTTP/1.0 with a transfer coding is rejected', async () => {
    expect((await ask('GET /plain HTTP/1.0', 'Transfer-Encoding: chunked')).status).toBe(400);
  });

  it('with the method CONNECT gets 405, an id and a log line, and the connection closes', async () => {
    for (const target of ['example.org:443', '/plain', '/raw/x', '*']) {
      const { status, headers, body } = await ask(`CONNECT ${target} HTTP/1.1`, 'Host: a');
      expect([target, status, headers.get('connection')]).toEqual([target, 405, 'close']);
      expect(JSON.parse(body)).toMatchObject({ type: 'urn:formgate:problem:method-not-allowed', instance: '/' });
      const line = log.lines().findLast(({ msg }) => msg === 'request');
      expect(line).toMatchObject({ method: 'CONNECT', status: 405, requestId: headers.get('x-request-id') });
    }
  });
});
