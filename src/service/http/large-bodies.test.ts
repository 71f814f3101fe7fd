// Tests over real connections how many large bodies of a person, of a tenant and in total are in memory at once.
import { once } from 'node:events';
import { type ClientRequest, createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { captureLog } from '../../../test/support/captured-log.ts';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { createMetrics, type Metrics } from '../operations/metrics.ts';
import { smallBody } from './body-bytes.ts';
import { anonymous, createHttpApp, route } from './http-app.ts';
import { ownCallHeaders } from './own-calls.ts';
import { Problem } from './problem.ts';

/** With this limit, 8 large bodies are permitted: 4 of a tenant, and 2 of a person. */
const bodyLimit = 4 * 1_048_576;
const large = 'x'.repeat(smallBody);
let server: Server;
let metrics: Metrics;
/** Names of the requests whose handlers run, and what ends each of them. */
let handled: string[];
let answers: Map<string, () => void>;
const open: ClientRequest[] = [];

beforeEach(async () => {
  [handled, answers, metrics] = [[], new Map(), createMetrics()];
  const hold = route({
    method: 'post',
    path: '/hold',
    summary: 'Responds when the test says so',
    guards: [
      {
        ...anonymous,
        check({ headers }) {
          if (headers['x-refused']) throw new Problem('forbidden', 'The caller is not allowed.');
        },
      },
    ],
    body: z.object({ name: z.string(), text: z.string() }),
    responses: { 200: { description: 'Fine' } },
    async handle({ body: { name } }, _request, response) {
      handled.push(name);
      await new Promise<void>((resolve) => answers.set(name, resolve));
      response.json(name.startsWith('unread') ? 'x'.repeat(12 * 1_048_576) : name);
    },
  });
  const routes = [hold, { ...hold, path: '/short', bodyLimit: smallBody }];
  const { log } = captureLog();
  server = createServer(createHttpApp({ log, metrics, routes, trustedProxies: 1, corsOrigins: [], bodyLimit }));
  await listenOnLoopback(server);
});
afterEach(async () => {
  for (const one of open.splice(0)) one.destroy();
  await closeServer(server);
});

interface Sent {
  client: ClientRequest;
  status: Promise<number>;
}

/**
 * Sends a request from an address. If the name begins with `unread`, the response is large, and is not read. If it
 * begins with `short`, the route accepts only small bodies. `announced` bytes are announced, but only the given text is
 * sent.
 */
function send(
  name: string,
  address: string,
  text = large,
  headers: Record<string, string> = {},
  announced?: number,
): Sent {
  const body = JSON.stringify({ name, text });
  const length = { 'content-length': String(announced ?? Buffer.byteLength(body)) };
  const client = request({
    ...{ port: (server.address() as AddressInfo).port, host: '127.0.0.1', method: 'POST' },
    path: name.startsWith('short') ? '/short' : '/hold',
    headers: {
      ...{ 'content-type': 'application/json', 'x-forwarded-for': address },
      ...(headers['transfer-encoding'] === undefined && length),
      ...headers,
    },
  });
  open.push(client);
  client.on('error', () => undefined);
  const status = once(client, 'response').then(
    ([response]) => (name.startsWith('unread') ? response : response.resume()).statusCode as number,
    () => 0,
  );
  if (announced === undefined) client.end(body);
  else client.write(body);
  return { client, status };
}

const isHandled = (...names: string[]) => expect.poll(() => handled.toSorted()).toEqual(names.toSorted());
const [ana, ben, cleo] = ['203.0.113.1', '203.0.113.2', '203.0.113.3'];

it('a third large body of a person waits for one of the first two; small bodies and other people do not wait', async () => {
  const first = send('a1', ana);
  send('a2', ana);
  await isHandled('a1', 'a2');
  send('a3', ana);
  send('small', ana, '');
  send('b1', ben);
  await isHandled('a1', 'a2', 'b1', 'small');
  answers.get('a1')?.();
  expect(await first.status).toBe(200);
  await isHandled('a1', 'a2', 'a3', 'b1', 'small');
});

it('a person who leaves gives the slot to the next request once the body is no longer needed', async () => {
  const cut = send('cut', ana, '', {}, 100_000);
  const first = send('a1', ana);
  cut.client.destroy();
  send('a2', ana);
  await isHandled('a1', 'a2');
  send('a3', ana);
  first.client.destroy();
  answers.get('a1')?.();
  await isHandled('a1', 'a2', 'a3');
});

it.each([
  ['is chunked', { 'transfer-encoding': 'chunked' }],
  ['is compressed, so its size is unknown', { 'content-encoding': 'identity' }],
])('a body that %s counts as large', async (_what, headers: Record<string, string>) => {
  send('a1', ana);
  send('a2', ana);
  await isHandled('a1', 'a2');
  const unknown = send('a3', ana, '', headers);
  send('small', ana, '');
  await isHandled('a1', 'a2', 'small');
  unknown.client.destroy();
});

it.each([
  ['chunked', { 'transfer-encoding': 'chunked' }],
  ['compressed', { 'content-encoding': 'identity' }],
])('a %s body does not wait if its route accepts only small ones', async (_what, headers: Record<string, string>) => {
  send('a1', ana);
  send('a2', ana);
  await isHandled('a1', 'a2');
  send('short', ana, '', headers);
  await isHandled('a1', 'a2', 'short');
});

it('a request that a guard refuses, and a call of the process to itself, need no slot', async () => {
  send('a1', ana);
  send('a2', ana);
  await isHandled('a1', 'a2');
  expect(await send('a3', ana, large, { 'x-refused': 'yes' }).status).toBe(403);
  send('own', ana, large, ownCallHeaders);
  await isHandled('a1', 'a2', 'own');
});

it('beyond 320 waiting bodies of a person, further ones get 503, and a metric counts them', async () => {
  const statuses = Array.from({ length: 323 }, (_, nth) => send(`a${nth}`, ana).status);
  expect(await Promise.race(statuses)).toBe(503);
  expect(await metrics.registry.metrics()).toContain(
    'formgate_queue_refused_total{queue="large-bodies",reason="full"} 1',
  );
});

it('a response that its client does not read holds no slot', async () => {
  for (const name of ['unread1', 'unread2', 'a1', 'a2']) {
    const { status } = send(name, ana);
    await isHandled(...handled, name);
    answers.get(name)?.();
    expect(await status).toBe(200);
  }
});

it('a slow body is refused if somebody else waits for its slot', async () => {
  const slow = [send('a1', ana, '', {}, 100_000), send('a2', ana, '', {}, 100_000)];
  send('b1', ben);
  send('b2', ben);
  await isHandled('b1', 'b2');
  send('c1', cleo);
  expect(await Promise.race(slow.map(({ status }) => status))).toBe(408);
  await isHandled('b1', 'b2', 'c1');
});
