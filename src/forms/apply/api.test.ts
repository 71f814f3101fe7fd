// Tests which failed calls to the form service may nevertheless have taken effect.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import type { Problem } from '../../service/http/problem.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { CallOutcomeUnknown, createFormApi, type FormApi } from './api.ts';

let server: Server;
let api: FormApi;
afterEach(async () => {
  await api.close();
  server.close();
});

/** A timeout that a response meets even on a busy machine. */
const patient = 30_000;

/** Calls a form service that responds with `respond`. Returns the error of the call. */
async function failureOf(respond: RequestListener, timeoutMs = 300): Promise<unknown> {
  return callAt(await listen(respond), timeoutMs);
}

async function listen(respond: RequestListener): Promise<number> {
  server = createServer(respond);
  return listenOnLoopback(server);
}

const contextOf = (address: string) => ({ locals: { forwarded: { address }, scope: {} } }) as unknown as HttpResponse;

async function callAt(port: number, timeoutMs = patient): Promise<unknown> {
  openApi(port, timeoutMs);
  const context = contextOf('unknown');
  return api.call({ method: 'POST', path: '/forms', tenantId: 'urn:example', body: '{}', context }).then(
    () => undefined,
    (error: unknown) => error,
  );
}

function openApi(port: number, timeoutMs = patient): void {
  api = createFormApi({
    ownUrl: () => `http://127.0.0.1:${port}`,
    account: { token: async () => 'token', renew: async (token) => token },
    log: captureLog().log,
    metrics: createMetrics(),
    timeoutMs,
  });
}

const problem =
  (status: number, slug: string): RequestListener =>
  (_request, response) =>
    response
      .writeHead(status, { 'content-type': 'application/problem+json' })
      .end(JSON.stringify({ type: `urn:formgate:problem:${slug}`, detail: 'Failed.' }));

it.each<[string, RequestListener]>([
  ['does not respond in time', () => undefined],
  ['breaks the connection', (request) => request.socket.destroy()],
  ['sends half a response', (_request, response) => response.writeHead(201, { 'content-length': 9 }).write('{}')],
  ['is hidden by a failing gateway', (_request, response) => response.writeHead(502).end('Bad gateway')],
  ['is hidden by a redirect', (_request, response) => response.writeHead(302, { location: '/login' }).end()],
  [
    'is hidden by a page of a proxy',
    (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Maintenance</p>'),
  ],
  ['fails itself', problem(500, 'internal')],
])('a call may have had its effect if the form service %s', async (_how, respond) => {
  expect(await failureOf(respond)).toBeInstanceOf(CallOutcomeUnknown);
});

it('slow calls from one address leave connections to the calls of others', async () => {
  const held: (() => void)[] = [];
  const port = await listen((request, response) => {
    const answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    if (request.url?.includes('/slow')) held.push(answer);
    else answer();
  });
  openApi(port);
  const call = (address: string, tenantId: string, path: string) =>
    api.call({ method: 'GET', path, tenantId, context: contextOf(address) });
  const slow = ['203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.4', '203.0.113.5'].flatMap((address) =>
    Array.from({ length: 20 }, () => call(address, 'urn:hostile', '/slow')),
  );
  await expect.poll(() => held.length).toBe(32);
  expect((await call('203.0.113.9', 'urn:honest', '/forms')).status).toBe(200);
  const one = Array.from({ length: 88 }, () => call('203.0.113.10', 'urn:honest', '/slow'));
  await expect.poll(() => held.length).toBe(40);
  await expect(call('203.0.113.10', 'urn:honest', '/forms')).rejects.toMatchObject({ slug: 'busy', status: 503 });
  expect((await call('203.0.113.9', 'urn:honest', '/forms')).status).toBe(200);
  const release = setInterval(() => {
    for (const answer of held.splice(0)) answer();
  }, 5);
  await Promise.all([...slow, ...one]);
  clearInterval(release);
});

it.each<[string, RequestListener]>([
  ['rejects the call', problem(409, 'intake-closed')],
  ['is busy', problem(503, 'busy')],
  ['misses another service', problem(502, 'dependency-failed')],
  ['rejects the account', problem(401, 'unauthorized')],
])('a call has had no effect if the form service %s', async (_how, respond) => {
  expect(await failureOf(respond, patient)).not.toBeInstanceOf(CallOutcomeUnknown);
});

it('a call has had no effect if no connection was made', async () => {
  await failureOf(() => undefined);
  const { port } = server.address() as AddressInfo;
  await api.close();
  await closeServer(server);
  expect(await callAt(port)).toMatchObject({ slug: 'dependency-failed' });
  expect(await callAt(port)).not.toBeInstanceOf(CallOutcomeUnknown);
});

it('an applicant learns when a closed form opens, because the dates of the window are passed on', async () => {
  const window = { opens: '2026-09-01T06:00:00.000Z', closes: null };
  const body = { type: 'urn:formgate:problem:intake-closed', detail: 'Closed.', ...window, formId: 'hidden' };
  const failure = await failureOf(
    (_request, response) =>
      response.writeHead(409, { 'content-type': 'application/problem+json' }).end(JSON.stringify(body)),
    patient,
  );
  expect(failure).toMatchObject({ slug: 'intake-closed' });
  expect((failure as Problem).members).toEqual(window);
});
