// Tests listening and stopping with real connections.
import { once } from 'node:events';
import { Agent, get, type IncomingMessage, type RequestListener } from 'node:http';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay, setImmediate as endOfPoll } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { findFreePort } from '../../../dev/ports.ts';
import { captureLog } from '../../../test/support/captured-log.ts';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { anonymous, createHttpApp, route } from '../http/http-app.ts';
import { createMetrics } from './metrics.ts';
import { type RunningService, type ServeOptions, serve } from './serve.ts';

const { log, lines } = captureLog();
let running: RunningService | undefined;
let finish: () => void = () => undefined;
/** Resolves when `/slow` has received a request. */
let begun: Promise<void>;
/** What the service did, in order. */
let events: string[] = [];
afterEach(async () => {
  finish();
  await running?.close();
  running = undefined;
});

/** Starts a service. `/slow` responds when `finish` is called, and `/quick` responds immediately. */
async function start(overrides: Partial<ServeOptions> = {}): Promise<RunningService> {
  events = [];
  const metrics = createMetrics();
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let begin: () => void = () => undefined;
  begun = new Promise((resolve) => {
    begin = resolve;
  });
  const responses = { 200: { description: 'Fine' } };
  const routes = [
    route({
      method: 'get',
      path: '/slow',
      summary: 'Slow',
      guards: [anonymous],
      responses,
      async handle(_input, _request, response) {
        response.once('finish', () => events.push('answered'));
        begin();
        await finished;
        response.json('finished');
      },
    }),
    route({
      method: 'get',
      path: '/quick',
      summary: 'Quick',
      guards: [anonymous],
      responses,
      handle: (_input, _request, response) => void response.json('quick'),
    }),
  ];
  const app = createHttpApp({ log, metrics, routes, trustedProxies: 0, corsOrigins: [], bodyLimit: 1_024 });
  const options = { app, metrics, log, host: '127.0.0.1', port: 0, metricsPort: 0, drainDeadline: 5_000 };
  running = await serve({ ...options, close: async () => undefined, ...overrides });
  return running;
}

it('closes the connection of a client that does not read the response', async () => {
  const closed = Promise.withResolvers<boolean>();
  const app: RequestListener = (_request, response) => {
    response.once('close', () => closed.resolve(response.writableFinished));
    // More than the buffers of both sockets hold.
    response.end(Buffer.alloc(64 * 1_048_576));
  };
  const { port } = await start({ app, longestSilence: 300 });
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(await closed.promise).toBe(false);
  socket.destroy();
});

const status = async (url: string) => (await fetch(url, { headers: { Connection: 'close' } })).status;

async function request(url: string, agent: Agent): Promise<{ status: number; connection: string; text: string }> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  const text = (await response.toArray()).join('');
  return { status: response.statusCode ?? 0, connection: response.headers.connection ?? '', text };
}

describe('a service that stops', () => {
  it('ends readiness immediately, stays alive, and serves requests during the delay for load balancers', async () => {
    const { url, metricsUrl, close } = await start({ drainDelay: 5_000 });
    expect(await status(`${metricsUrl}/readyz`)).toBe(200);
    const closed = close();
    expect(await status(`${metricsUrl}/readyz`)).toBe(503);
    expect(await status(`${metricsUrl}/livez`)).toBe(200);
    expect(await status(`${url}/quick`)).toBe(200);
    await closed;
  });

  it('ends kept-alive connections with a response during the delay, so that none is cut when its client sends a request', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const { url, close } = await start({ drainDelay: 5_000 });
    expect((await request(`${url}/quick`, agent)).connection).toBe('keep-alive');
    const closed = close();
    expect(await request(`${url}/quick`, agent)).toEqual({ status: 200, connection: 'close', text: '"quick"' });
    expect(await request(`${url}/quick`, agent)).toEqual({ status: 200, connection: 'close', text: '"quick"' });
    await closed;
    agent.destroy();
  });

  it('serves a request that arrived while the process was too busy to read it, even if the delay ended meanwhile', async () => {
    const { port, close } = await start({ drainDelay: 100 });
    const client = connect(port, '127.0.0.1');
    const received = text(client);
    client.write('GET /quick HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(client, 'readable');
    const closed = close();
    // After this call, the event loop runs its timers before it polls for input again.
    await endOfPoll();
    client.write('GET /quick HTTP/1.1\r\nHost: a\r\n\r\n');
    for (const end = performance.now() + 200; performance.now() < end; );
    expect((await received).match(/HTTP\/1.1 200/g)).toHaveLength(2);
    await closed;
  });

  it('finishes running requests and refuses new connections', async () => {
    const { url, close } = await start();
    const slow = fetch(`${url}/slow`);
    await begun;
    const closed = close();
    const isServed = () =>
      fetch(`${url}/quick`).then(
        () => true,
        () => false,
      );
    await expect.poll(isServed).toBe(false);
    finish();
    expect(await (await slow).json()).toBe('finished');
    await closed;
  });

  it('closes kept-alive connections with their last response', async () => {
    const agent = new Agent({ keepAlive: true });
    const { url, close } = await start({ drainDeadline: 60_000 });
    expect((await request(`${url}/quick`, agent)).connection).toBe('keep-alive');
    const slow = request(`${url}/slow`, agent);
    await begun;
    const started = performance.now();
    const closed = close();
    await delay(50);
    finish();
    expect(await slow).toEqual({ status: 200, connection: 'close', text: '"finished"' });
    await closed;
    // The server has not kept an idle connection open until the deadline.
    expect(performance.now() - started).toBeLessThan(30_000);
    agent.destroy();
  });

  it('closes the connections of running requests at the deadline, and logs that', async () => {
    const { url, close } = await start({ drainDeadline: 200 });
    const slow = fetch(`${url}/slow`).then(
      () => 'answered',
      () => 'cut',
    );
    await begun;
    await close();
    expect(await slow).toBe('cut');
    expect(lines().map(({ msg }) => msg)).toContain('requests were cut at the drain deadline');
  });

  it('releases resources once, after the last request', async () => {
    const { url, close } = await start({ close: async () => void events.push('released') });
    const slow = fetch(`${url}/slow`);
    await begun;
    const closed = Promise.all([close(), close()]);
    finish();
    await Promise.all([slow, closed]);
    await close();
    expect(events).toEqual(['answered', 'released']);
  });

  it('fails if the release fails, but closes its ports', async () => {
    const { metricsUrl, close } = await start({ close: () => Promise.reject(new Error('the pool does not end')) });
    running = undefined;
    await expect(close()).rejects.toThrow('the pool does not end');
    await expect(fetch(`${metricsUrl}/livez`)).rejects.toThrow();
  });
});

describe('the metrics port', () => {
  it('returns 503 with the unmet conditions for /readyz, and 200 for /livez', async () => {
    const readiness = {
      first: { store: () => undefined, identity_provider: async () => 'the credentials were rejected' },
      local: { pool: () => 'the pool fails' },
    };
    const { metricsUrl } = await start({ readiness });
    const response = await fetch(`${metricsUrl}/readyz`);
    const waitingFor = { identity_provider: 'the credentials were rejected', pool: 'the pool fails' };
    expect([response.status, await response.json()]).toEqual([503, { ready: false, draining: false, waitingFor }]);
    expect(await status(`${metricsUrl}/livez`)).toBe(200);
  });

  it('serves /metrics in the format of Prometheus, with metrics of the process', async () => {
    const { url, metricsUrl } = await start();
    await fetch(`${url}/quick`);
    const response = await fetch(`${metricsUrl}/metrics`);
    const text = await response.text();
    expect(response.headers.get('content-type')).toContain('text/plain');
    expect(text).toContain('process_cpu_seconds_total');
    expect(text).toContain('formgate_http_request_duration_seconds_bucket{le="0.005",route="/quick"}');
  });

  it('serves /metrics as OpenMetrics to a Prometheus that asks for it', async () => {
    const { metricsUrl } = await start();
    const accept =
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2';
    const response = await fetch(`${metricsUrl}/metrics`, { headers: { accept } });
    expect(response.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    expect(await response.text()).toMatch(/\n# EOF\n$/);
  });

  it('is not served on the main port', async () => {
    const { url } = await start();
    for (const path of ['/metrics', '/livez', '/readyz']) expect(await status(url + path)).toBe(404);
  });

  it('that is in use prevents the start, and the main port is released', async () => {
    const taken = createServer();
    const metricsPort = await listenOnLoopback(taken);
    const port = await findFreePort();
    await expect(start({ port, metricsPort })).rejects.toThrow('EADDRINUSE');
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
    taken.close();
  });
});
