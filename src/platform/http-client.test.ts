import { createServer as createTcpServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { captureLog } from '../../test/support/captured-log.ts';
import {
  answerJson,
  type FaultServer,
  hang,
  hangHalfway,
  inTurn,
  reset,
  resetHalfway,
  sendJson,
  startFaultServer,
} from '../../test/support/fault-server.ts';
import { listenOnLoopback } from '../../test/support/loopback-server.ts';
import { createMetrics, type Metrics } from '../service/operations/metrics.ts';
import { runInScope } from '../service/operations/request-scope.ts';
import { HttpAgent } from './http-agent.ts';
import { createPlatformClient, type PlatformClient, type PlatformClientOptions } from './http-client.ts';
import { PlatformError } from './platform-error.ts';
import { createPlatformMetrics, type PlatformMetrics } from './platform-metrics.ts';

const ok = z.looseObject({ ok: z.literal(true) });
const fine = answerJson({ ok: true });
const status = (code: number) => answerJson({ errorMessage: 'because' }, code);
const oversized = answerJson({ ok: true, big: 'x'.repeat(50_000) });

/**
 * A short timeout for calls that would otherwise hang. A client that applies this timeout ends a hanging call long
 * before `longest` milliseconds.
 */
const hasty = { timeoutMs: 400 };
const longest = 8_000;
const circuitResetMs = 60_000;
/** Advances the time until an open circuit sends a probe. */
let waitForProbe: () => void;

let server: FaultServer;
let agent: HttpAgent;
let base: Metrics;
let metrics: PlatformMetrics;
let captured: ReturnType<typeof captureLog>;
let client: PlatformClient;

function createClient(options: Partial<PlatformClientOptions> = {}): PlatformClient {
  return createPlatformClient({
    service: 'configuration',
    baseUrl: async () => server.url,
    agent,
    metrics,
    log: captured.log,
    retryDelayMs: 5,
    circuitResetMs,
    ...options,
  });
}

const get = (made = client) => made.request({ operation: 'read', method: 'GET', path: '/x', response: ok });
const post = (idempotent?: boolean) =>
  client.request({ operation: 'write', method: 'POST', path: '/x', body: { a: 1 }, response: ok, idempotent });
const count = async (kind: string) =>
  (await base.dependencyFailures.get()).values.find(({ labels }) => labels.kind === kind)?.value ?? 0;

beforeEach(async () => {
  let passed = 0;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + passed);
  waitForProbe = () => {
    passed += circuitResetMs;
  };
  server = await startFaultServer(fine);
  agent = new HttpAgent({ maxResponse: 10_000 });
  base = createMetrics();
  metrics = createPlatformMetrics(base);
  captured = captureLog();
  client = createClient();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await agent.destroy();
  await server.close();
});

describe('a failing service', () => {
  it('that refuses connections is PlatformError unreachable, a 502 for our client, after two retries', async () => {
    await server.close();
    await expect(get()).rejects.toMatchObject({
      service: 'configuration',
      kind: 'unreachable',
      reason: 'ECONNREFUSED',
      slug: 'dependency-failed',
      status: 502,
    });
    expect(captured.lines()).toMatchObject([{ operation: 'read', kind: 'unreachable', attempts: 3 }]);
    expect(await count('unreachable')).toBe(1);
  });

  it('is logged with its host and the cause, but without path and query', async () => {
    await server.close();
    await get().catch(() => undefined);
    const [line] = captured.lines().filter(({ msg }) => msg === 'platform call failed');
    expect(line).toMatchObject({ host: new URL(server.url).host, reason: 'ECONNREFUSED', kind: 'unreachable' });
    expect(JSON.stringify(line)).not.toContain('/x');
  });

  it('whose name does not resolve is PlatformError unreachable', async () => {
    const lost = createClient({ baseUrl: async () => 'http://no-such-host.invalid', timeoutMs: 5_000 });
    await expect(get(lost)).rejects.toMatchObject({ kind: 'unreachable' });
  });

  it('that hangs is PlatformError timeout, a 504 for our client, within the timeout and without retries', async () => {
    server.behave(hang);
    const started = performance.now();
    await expect(get(createClient(hasty))).rejects.toMatchObject({
      kind: 'timeout',
      slug: 'dependency-timeout',
      status: 504,
    });
    expect(performance.now() - started).toBeLessThan(longest);
    expect(server.requests).toHaveLength(1);
  });

  it('that stops within a response is PlatformError timeout within the same timeout', async () => {
    server.behave(hangHalfway);
    const started = performance.now();
    await expect(get(createClient(hasty))).rejects.toMatchObject({ kind: 'timeout' });
    expect(performance.now() - started).toBeLessThan(longest);
  });

  it('that sends a response byte by byte is PlatformError timeout within the same timeout', async () => {
    server.behave((response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const timer = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(timer));
    });
    const started = performance.now();
    await expect(get(createClient(hasty))).rejects.toMatchObject({ kind: 'timeout' });
    expect(performance.now() - started).toBeLessThan(longest);
  });

  it('that resets within each response is PlatformError failed, after two retries', async () => {
    server.behave(resetHalfway);
    await expect(get()).rejects.toMatchObject({ kind: 'failed', reason: 'truncated' });
    expect(server.requests).toHaveLength(3);
  });

  it('that does not speak HTTP is PlatformError failed', async () => {
    const sockets = createTcpServer((socket) => socket.resume().end('SSH-2.0-OpenSSH_9.9\r\n'));
    const port = await listenOnLoopback(sockets);
    const wrong = createClient({ baseUrl: async () => `http://127.0.0.1:${port}` });
    await expect(get(wrong)).rejects.toMatchObject({ kind: 'failed' });
    sockets.close();
  });

  it('that sends more than the limit is PlatformError failed, and the rest is not read', async () => {
    server.behave(oversized);
    await expect(get()).rejects.toMatchObject({ kind: 'failed', reason: 'oversized' });
    expect(server.requests).toHaveLength(1);
  });

  it('whose value would take too much memory is PlatformError failed, and is not parsed', async () => {
    const wide = new HttpAgent();
    const client = createClient({ agent: wide });
    server.behave((response) => response.writeHead(200).end(`{"ok":true,"items":[${'{},'.repeat(1_000_000)}{}]}`));
    await expect(get(client)).rejects.toMatchObject({ kind: 'failed', reason: 'oversized' });
    await wide.destroy();
  });

  it.each([
    ['malformed JSON', '{"ok":tru', 'malformed JSON'],
    ['an empty body', '', 'malformed at /'],
    ['a value of another shape', '{"ok":"yes"}', 'malformed at /ok'],
    ['a compressed body that nobody asked for', gzipSync('{"ok":true}'), 'malformed JSON'],
  ])('that returns 200 with %s is PlatformError failed', async (_, body, reason) => {
    server.behave((response) => response.writeHead(200).end(body));
    await expect(get()).rejects.toMatchObject({ kind: 'failed', reason });
  });

  it('that redirects is PlatformError failed, and the token is not sent elsewhere', async () => {
    const elsewhere = await startFaultServer(fine);
    onTestFinished(() => elsewhere.close());
    const account = { token: async () => 'secret-token', renew: async () => 'secret-token' };
    server.behave((response) => response.writeHead(302, { location: `${elsewhere.url}/x` }).end());
    await expect(get(createClient({ account }))).rejects.toMatchObject({ kind: 'failed', upstreamStatus: 302 });
    expect(elsewhere.requests).toHaveLength(0);
  });
});

describe('the status of a response', () => {
  it.each([
    [400, 'rejected'],
    [401, 'denied'],
    [403, 'denied'],
    [404, 'rejected'],
    [408, 'failed'],
    [409, 'rejected'],
    [422, 'rejected'],
    [429, 'failed'],
    [500, 'failed'],
    [501, 'failed'],
  ])('%i is PlatformError %s, without retries', async (code, kind) => {
    server.behave(status(code));
    await expect(get()).rejects.toMatchObject({ kind, upstreamStatus: code });
    expect(server.requests).toHaveLength(1);
  });

  it('of a rejection comes with the reason of the service', async () => {
    server.behave(status(400));
    await expect(get()).rejects.toMatchObject({ kind: 'rejected', rejection: 'because' });
  });

  it('404 is a value and not a failure if the call says so', async () => {
    server.behave(status(404));
    const found = await client.request({
      operation: 'read',
      method: 'GET',
      path: '/x',
      response: ok.optional(),
      notFound: () => undefined,
    });
    expect(found).toBeUndefined();
    expect(captured.lines()).toEqual([]);
  });
});

describe('a connection that leads to another server', () => {
  it('is a failure, and is not used again', async () => {
    let connections = 0;
    const foreign = createTcpServer((socket) => {
      connections += 1;
      const body = connections === 1 ? '' : '{"ok":true}';
      const head = connections === 1 ? '404 Not Found' : '200 OK';
      socket.on('error', () => undefined);
      socket.on('data', () => void socket.write(`HTTP/1.1 ${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`));
    });
    const port = await listenOnLoopback(foreign);
    const made = createClient({ baseUrl: async () => `http://127.0.0.1:${port}` });
    const read = () =>
      made.request({
        operation: 'read',
        method: 'GET',
        path: '/x',
        response: ok,
        notFound: () => ({ ok: true as const }),
      });
    const failure = { kind: 'failed', upstreamStatus: 404, reason: 'a 404 that is not the service’s' };
    await expect(read()).rejects.toMatchObject(failure);
    expect(await read()).toEqual({ ok: true });
    expect(connections).toBe(2);
    await agent.destroy();
    foreign.close();
  });
});

describe('retries', () => {
  it.each([
    ['502', status(502)],
    ['503', status(503)],
    ['504', status(504)],
    ['a reset connection', reset],
    ['an answer broken off', resetHalfway],
  ])('an idempotent call survives %s twice', async (_, fault) => {
    server.behave(inTurn(fault, fault, fine));
    await expect(get()).resolves.toEqual({ ok: true });
    expect(server.requests).toHaveLength(3);
  });

  it('stop after two: the third failure is returned', async () => {
    server.behave(inTurn(status(503), status(503), status(503), fine));
    await expect(get()).rejects.toMatchObject({ kind: 'failed', upstreamStatus: 503 });
    expect(server.requests).toHaveLength(3);
  });

  it.each([
    ['503', status(503)],
    ['a reset connection', reset],
  ])('a POST is sent once on %s', async (_, fault) => {
    server.behave(inTurn(fault, fine));
    await expect(post()).rejects.toBeInstanceOf(PlatformError);
    expect(server.requests).toHaveLength(1);
  });

  it('a POST that the caller calls idempotent is retried with the same body', async () => {
    server.behave(inTurn(status(503), fine));
    await expect(post(true)).resolves.toEqual({ ok: true });
    expect(server.requests.map(({ body }) => body)).toEqual(['{"a":1}', '{"a":1}']);
  });

  it('end at the timeout of the whole call', async () => {
    server.behave(status(503));
    const slow = createClient({ ...hasty, retryDelayMs: 10_000 });
    const started = performance.now();
    await expect(get(slow)).rejects.toMatchObject({ kind: 'timeout' });
    expect(performance.now() - started).toBeLessThan(longest);
  });
});

describe('the token', () => {
  const accountOf = (...tokens: string[]) => {
    let index = 0;
    return {
      token: async () => tokens[index] ?? '',
      renew: async () => tokens[Math.min(++index, tokens.length - 1)] ?? '',
    };
  };
  const guarded = (good: string) => (response: Parameters<typeof fine>[0], request: Parameters<typeof fine>[1]) =>
    request.headers.authorization === `Bearer ${good}` ? sendJson(response, { ok: true }) : sendJson(response, {}, 401);

  it('is replaced after a 401, and the call is repeated once, even a POST', async () => {
    server.behave(guarded('new'));
    client = createClient({ account: accountOf('old', 'new') });
    await expect(post()).resolves.toEqual({ ok: true });
    expect(server.requests).toHaveLength(2);
  });

  it('is renewed only once: a second 401 is PlatformError denied', async () => {
    server.behave(status(401));
    const made = createClient({ account: accountOf('a', 'b', 'c') });
    await expect(get(made)).rejects.toMatchObject({ kind: 'denied', upstreamStatus: 401 });
    expect(server.requests).toHaveLength(2);
  });

  it('that cannot be renewed is not sent again', async () => {
    server.behave(status(401));
    await expect(get(createClient({ account: accountOf('only') }))).rejects.toMatchObject({ kind: 'denied' });
    expect(server.requests).toHaveLength(1);
  });

  it('that cannot be fetched fails the call with the error of the identity provider, without a request', async () => {
    const account = {
      token: () => Promise.reject(new PlatformError('identity-provider', 'unreachable')),
      renew: async () => '',
    };
    await expect(get(createClient({ account }))).rejects.toMatchObject({
      service: 'identity-provider',
      kind: 'unreachable',
    });
    expect(server.requests).toHaveLength(0);
    expect(await count('unreachable')).toBe(0);
  });

  it('that does not arrive in time is a timeout of the call', async () => {
    const account = { token: () => new Promise<string>(() => undefined), renew: async () => '' };
    await expect(get(createClient({ ...hasty, account }))).rejects.toMatchObject({ kind: 'timeout' });
  });
});

describe('the circuit', () => {
  it('opens when calls fail, refuses calls with PlatformError open, and recovers', async () => {
    server.behave(status(503));
    for (let call = 0; call < 5; call += 1) await expect(get()).rejects.toMatchObject({ kind: 'failed' });
    const asked = server.requests.length;
    await expect(get()).rejects.toMatchObject({ kind: 'open', status: 502, headers: { 'Retry-After': '60' } });
    expect(server.requests).toHaveLength(asked);
    server.behave(fine);
    waitForProbe();
    await expect(get()).resolves.toEqual({ ok: true });
    await expect(get()).resolves.toEqual({ ok: true });
    expect((await metrics.circuitOpen.get()).values[0]?.value).toBe(0);
  });

  it('that is open refuses a call before it resolves token and URL', async () => {
    server.behave(status(503));
    let asked = 0;
    const made = createClient({
      baseUrl: async () => {
        asked += 1;
        return server.url;
      },
    });
    for (let call = 0; call < 10; call += 1) await get(made).catch(() => undefined);
    expect(asked).toBe(5);
  });

  it('lets one probe through when half open; a failed probe opens it again', async () => {
    server.behave(status(503));
    for (let call = 0; call < 5; call += 1) await get().catch(() => undefined);
    waitForProbe();
    const asked = server.requests.length;
    const results = await Promise.allSettled([get(), get(), get(), get()]);
    // The probe is retried, like every idempotent call.
    expect(server.requests).toHaveLength(asked + 3);
    const kinds = results.map((result) => result.status === 'rejected' && result.reason.kind);
    expect(kinds.toSorted()).toEqual(['failed', 'open', 'open', 'open']);
    await expect(get()).rejects.toMatchObject({ kind: 'open' });
  });

  it('opens on timeouts, so that callers do not wait for a service that hangs', async () => {
    server.behave(hang);
    const made = createClient(hasty);
    await Promise.allSettled(Array.from({ length: 6 }, () => get(made)));
    const asked = server.requests.length;
    await expect(get(made)).rejects.toMatchObject({ kind: 'open' });
    expect(server.requests).toHaveLength(asked);
  });

  it('opens on refused connections', async () => {
    await server.close();
    for (let call = 0; call < 5; call += 1) await get().catch(() => undefined);
    await expect(get()).rejects.toMatchObject({ kind: 'open' });
  });

  it('opens after ten consecutive failures, regardless of earlier successes', async () => {
    for (let call = 0; call < 100; call += 1) await get();
    server.behave(status(503));
    for (let call = 0; call < 10; call += 1) await expect(get()).rejects.toMatchObject({ kind: 'failed' });
    await expect(get()).rejects.toMatchObject({ kind: 'open' });
  });

  it.each([400, 401, 403, 404, 409, 429])('never opens on %i', async (code) => {
    server.behave(status(code));
    for (let call = 0; call < 30; call += 1) await get().catch(() => undefined);
    expect(server.requests).toHaveLength(30);
  });

  it('never opens on 500, so that the calls of one tenant that always fail do not stop those of other tenants', async () => {
    server.behave((response, request, nth) =>
      (request.target === '/lost' ? status(500) : fine)(response, request, nth),
    );
    const call = (path: string) => client.request({ operation: 'read', method: 'GET', path, response: ok });
    for (let round = 0; round < 30; round += 1) await expect(call('/lost')).rejects.toMatchObject({ kind: 'failed' });
    await expect(call('/x')).resolves.toEqual({ ok: true });
  });

  it('never opens on 503 busy, with which a service refuses the calls of one tenant, and does not retry them', async () => {
    const busy = answerJson({ type: 'urn:formgate:problem:busy', status: 503 }, 503);
    server.behave((response, request, nth) => (request.target === '/busy' ? busy : fine)(response, request, nth));
    const call = (path: string) => client.request({ operation: 'read', method: 'GET', path, response: ok });
    for (let round = 0; round < 30; round += 1)
      await expect(call('/busy')).rejects.toMatchObject({
        ...{ kind: 'busy', slug: 'busy', headers: { 'Retry-After': '5' }, mayHaveProcessed: false },
      });
    expect(server.requests).toHaveLength(30);
    await expect(call('/x')).resolves.toEqual({ ok: true });
  });

  it('never opens on responses that are too large', async () => {
    server.behave(oversized);
    for (let call = 0; call < 30; call += 1) await expect(get()).rejects.toMatchObject({ reason: 'oversized' });
    server.behave(fine);
    await expect(get()).resolves.toEqual({ ok: true });
  });

  it('never opens because the token cannot be fetched', async () => {
    let available = false;
    const account = {
      token: () =>
        available ? Promise.resolve('t') : Promise.reject(new PlatformError('identity-provider', 'failed')),
      renew: async () => '',
    };
    const made = createClient({ account });
    for (let call = 0; call < 20; call += 1) await get(made).catch(() => undefined);
    available = true;
    await expect(get(made)).resolves.toEqual({ ok: true });
  });

  it('closes again when a stopped service is back', async () => {
    await get();
    const { port } = server;
    await server.close();
    for (let call = 0; call < 6; call += 1) await get().catch(() => undefined);
    server = await startFaultServer(fine, port);
    waitForProbe();
    await expect(get()).resolves.toEqual({ ok: true });
  });

  it('of one service does not stop calls to another', async () => {
    const failing = await startFaultServer(status(503));
    onTestFinished(() => failing.close());
    const other = createClient({ service: 'events', baseUrl: async () => failing.url });
    for (let call = 0; call < 10; call += 1) await get(other).catch(() => undefined);
    await expect(get(other)).rejects.toMatchObject({ kind: 'open' });
    await expect(get()).resolves.toEqual({ ok: true });
  });

  it('writes one line when it opens and none for the calls that it refuses', async () => {
    server.behave(status(503));
    for (let call = 0; call < 100; call += 1) await get().catch(() => undefined);
    expect(captured.lines().filter(({ msg }) => msg === 'circuit opened')).toHaveLength(1);
    expect(captured.lines()).toHaveLength(6);
    expect(await count('open')).toBe(95);
  });
});

describe('every call', () => {
  it('carries the request id and the trace of the request for which it is made, and none otherwise', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const call = () => client.request({ operation: 'read', method: 'GET', path: '/x', response: ok });
    await runInScope({ requestId: 'request-1', traceparent }, call);
    await runInScope({ traceparent }, call);
    await call();
    const [one, background, other] = server.requests.map(({ headers }) => headers);
    expect(one).toMatchObject({ 'x-request-id': 'request-1', traceparent });
    expect(background).toMatchObject({ traceparent });
    expect(background).not.toHaveProperty('x-request-id');
    expect(other).not.toHaveProperty('traceparent');
  });

  it('keeps unknown fields of a response', async () => {
    server.behave(answerJson({ ok: true, later: [1] }));
    await expect(get()).resolves.toEqual({ ok: true, later: [1] });
  });

  it('is measured by service and outcome', async () => {
    await get();
    server.behave(status(500));
    await get().catch(() => undefined);
    const text = await base.registry.metrics();
    expect(text).toContain('formgate_dependency_calls_total{dependency="configuration",outcome="ok"} 1');
    expect(text).toContain('formgate_dependency_calls_total{dependency="configuration",outcome="failed"} 1');
  });

  it('reuses connections', async () => {
    const ports = new Set<number | undefined>();
    server.behave((response) => {
      ports.add(response.socket?.remotePort);
      sendJson(response, { ok: true });
    });
    for (let call = 0; call < 20; call += 1) await get();
    expect(ports.size).toBeLessThan(5);
  });

  it('that fails logs the host, but no token, body, query, path or rejection', async () => {
    const account = { token: async () => 'canary-token', renew: async () => 'canary-token-2' };
    const faults = [status(400), status(401), status(404), status(500), reset, resetHalfway, hang];
    const canary = (response: Parameters<typeof fine>[0]) => sendJson(response, { errorMessage: 'canary-answer' }, 400);
    for (const fault of [...faults, canary]) {
      server.behave(fault);
      const error = await createClient({ ...(fault === hang && hasty), account, service: 'notifications' })
        .request({
          operation: 'check code',
          method: 'POST',
          path: '/canary-path',
          query: { tenantId: 'canary-query' },
          body: { address: 'canary@example.org', code: 'canary-code' },
          response: ok,
        })
        .catch((caught: PlatformError) => caught);
      expect(error).toBeInstanceOf(PlatformError);
      captured.log.error({ err: error }, 'request failed');
    }
    expect(captured.lines().length).toBeGreaterThan(2 * faults.length);
    expect(captured.text()).not.toMatch(/canary|http:\/\//);
  });
});
