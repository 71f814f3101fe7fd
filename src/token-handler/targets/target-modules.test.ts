// Tests that the modules for targets get the settings, and that proxied requests run through all of them, with a real
// upstream. Sessions are in memory; tenants, clients and the directory are scripted.
import { once } from 'node:events';
import { request as send } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { createHttpServer } from '../../../test/support/http-server.ts';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { createMemorySessions, type MemorySessions, type Visitor } from '../../../test/support/memory-sessions.ts';
import { startUpstream, type Upstream } from '../../../test/support/upstream.ts';
import { systemClock } from '../../service/clock.ts';
import { createPlainListener } from '../../service/http/plain-listener.ts';
import { createRateLimits } from '../../service/limits/rate-limit.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import type { Client } from '../clients/client.ts';
import type { TokenHandlerConfig } from '../config.ts';
import { csrfToken } from '../sessions/cookies.ts';
import { targetPatternOf } from './path.ts';
import { targetRoute } from './routes.ts';
import { createTargets, type Targets } from './targets.ts';

const config = {
  ...{ UPSTREAM_ALLOWED_DOMAINS: undefined, TENANT_HEADER: 'X-Tenant', TARGET_DROPPED_HEADERS: ['x-secret'] },
  ...{ METRICS_TARGETS: 'on', SESSION_STREAMS: 1, STREAMS: 4, BODY_MIN_RATE: 0, BODY_RATE_WINDOW: 60 },
  ...{ UPSTREAM_TIMEOUT: 10_000, UPSTREAM_CONNECTIONS: 100, UPSTREAM_PERSON_SHARE: 10, UPSTREAM_TENANT_SHARE: 15 },
  ...{ TARGET_WINDOW: 3_600_000, TARGET_ADDRESS_LIMIT: 1_000, TARGET_SESSION_LIMIT: 1_000 },
} as unknown as TokenHandlerConfig;

let world: MemorySessions;
let upstream: Upstream;
let metrics: Metrics;
let log: CapturedLog;
let targets: Targets;
let ana: Visitor;
beforeEach(async () => {
  [world, upstream, log] = [createMemorySessions(), await startUpstream(), captureLog()];
  ana = await world.open();
});
afterEach(() => upstream.close());

function create(changes: Record<string, unknown> = {}): Targets {
  metrics = createMetrics();
  const rateLimits = createRateLimits({ clock: systemClock, log: captureLog().log, metrics });
  onTestFinished(() => rateLimits.close());
  return createTargets({
    ...{ config: { ...config, ...changes }, sessions: world.sessions, rateLimits, log: log.log, metrics },
    tenants: { byId: async () => undefined, byName: async () => ({ id: 'urn:other', name: 'Other', realm: 'other' }) },
    catalog: { find: async () => ({ targets: [{ id: 'api', upstream: 'urn:example:api' }] }) as Client },
    directory: { resolve: async () => `${upstream.url}/base` } as never,
    urns: { prefix: 'urn:formgate' } as never,
  });
}

/** Starts the targets with these settings. Returns a function that sends a request for a target. */
async function serve(changes: Record<string, unknown> = {}) {
  targets = create(changes);
  const listener = createPlainListener(
    { log: captureLog().log, metrics, trustedProxies: 0 },
    { routeOf: targetPatternOf, serve: targets.handler },
  );
  const server = createHttpServer(listener);
  const port = await listenOnLoopback(server);
  onTestFinished(async () => {
    await targets.close();
    await closeServer(server);
  });
  return async (headers: Record<string, string> = {}, { method = 'GET', body = '', as = ana } = {}) => {
    const cookie = as.request().headers.cookie ?? '';
    const path = '/token-handler/v1/targets/api/forms?a=b';
    const request = send({ port, host: '127.0.0.1', method, path, agent: false, headers: { cookie, ...headers } });
    request.on('error', () => undefined).flushHeaders();
    if (headers['content-length'] === undefined) request.end();
    else request.write(body);
    const [response] = await once(request, 'response');
    onTestFinished(() => void request.destroy());
    const slug = /"urn:formgate:problem:([\w-]+)"/;
    if (response.statusCode >= 400)
      return { status: response.statusCode, problem: slug.exec(await text(response))?.[1] };
    return { status: response.statusCode, problem: undefined };
  };
}
/** Returns the samples of a metric whose value is not 0, with their labels. */
const samples = async (name: string) =>
  ((await metrics.registry.getSingleMetric(name)?.get())?.values ?? []).flatMap(({ labels, value }) =>
    value === 0 ? [] : [{ ...labels, value }],
  );
/** Makes the upstream send the head of an event stream that never ends. */
const openStreams = () => {
  upstream.answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  };
};

describe('a request for a target', () => {
  it('reaches the upstream with the token of the session, and without headers that the operator drops', async () => {
    const ask = await serve();
    expect(await ask({ 'x-secret': '1', 'x-other': '2', 'x-tenant': ana.session.tenantId })).toMatchObject({
      status: 200,
    });
    const { target, headers } = upstream.last();
    expect(target).toBe('/base/forms?a=b');
    expect(headers).toMatchObject({ authorization: 'Bearer access 1', 'x-other': '2' });
    expect(Object.keys(headers).filter((name) => ['x-secret', 'x-tenant', 'cookie'].includes(name))).toEqual([]);
    expect(await samples('formgate_proxied_requests_total')).toMatchObject([{ target: 'api', value: 1 }]);
    expect(await samples('formgate_upstream_connections')).toEqual([]);
  });

  it('is counted under the name of its target only if the operator wants that', async () => {
    const ask = await serve({ METRICS_TARGETS: 'off' });
    await ask();
    expect(await samples('formgate_proxied_requests_total')).toEqual([{ target: '', outcome: 'succeeded', value: 1 }]);
  });

  it.each<[string, number, Record<string, string>, string]>([
    ['without a session', 401, { cookie: '' }, 'GET'],
    ['on the domain of another tenant', 401, { 'x-tenant': 'other' }, 'GET'],
    ['without the CSRF token', 403, {}, 'DELETE'],
  ])('%s gets %i', async (_what, status, headers, method) => {
    const ask = await serve();
    expect(await ask(headers, { method })).toMatchObject({ status });
    expect(upstream.seen).toEqual([]);
  });

  it('with the CSRF token may change something', async () => {
    const ask = await serve();
    expect(await ask({ 'x-xsrf-token': csrfToken(ana.session) }, { method: 'DELETE' })).toMatchObject({ status: 200 });
  });

  it('is counted by address and by session', async () => {
    const ben = await world.open({ session: { user: { id: 'ben', name: 'Ben', roles: [] } } });
    const ask = await serve({ TARGET_SESSION_LIMIT: 1, TARGET_ADDRESS_LIMIT: 3 });
    const statuses: (number | undefined)[] = [];
    for (const as of [ana, ana, ben, ben]) statuses.push((await ask({}, { as })).status);
    expect(statuses).toEqual([200, 429, 200, 429]);
    expect(await samples('formgate_rate_limited_requests_total')).toEqual([
      { limit: 'targets-session', value: 1 },
      { limit: 'targets-address', value: 1 },
    ]);
  });

  it('is refused if the operator does not allow the host of the upstream; else the log warns at the start', async () => {
    const ask = await serve({ UPSTREAM_ALLOWED_DOMAINS: [] });
    expect(await ask()).toEqual({ status: 403, problem: 'upstream-not-allowed' });
    expect(log.lines()).toEqual([]);
    await create().close();
    expect(log.lines()).toMatchObject([{ level: 'warn', msg: expect.stringContaining('UPSTREAM_ALLOWED_DOMAINS') }]);
  });

  it('gets 504 if the upstream does not begin to respond in time', async () => {
    upstream.answer = () => undefined;
    const ask = await serve({ UPSTREAM_TIMEOUT: 50 });
    expect(await ask()).toEqual({ status: 504, problem: 'dependency-timeout' });
    expect(await samples('formgate_dependency_failures_total')).toMatchObject([{ value: 1 }]);
  });

  it('gets 408 if its body arrives too slowly', async () => {
    const ask = await serve({ BODY_MIN_RATE: 1_000_000 });
    const headers = { 'content-length': '1000', 'x-xsrf-token': csrfToken(ana.session) };
    expect(await ask(headers, { method: 'PUT', body: 'x' })).toEqual({ status: 408, problem: 'request-timeout' });
  });
});

describe('requests of the same time', () => {
  it('of a session may have as many event streams as the operator allows', async () => {
    openStreams();
    const ask = await serve();
    expect(await ask({ accept: 'text/event-stream' })).toMatchObject({ status: 200 });
    expect(await ask({ accept: 'text/event-stream' })).toEqual({ status: 429, problem: 'too-many-requests' });
    expect(await samples('formgate_open_streams')).toEqual([{ kind: 'event-stream', value: 1 }]);
  });

  it('of a tenant may have half of all event streams', async () => {
    openStreams();
    const people = await Promise.all([1, 2, 3].map((nth) => world.open({ session: { user: person(nth) } })));
    const ask = await serve();
    const statuses: (number | undefined)[] = [];
    for (const as of people) statuses.push((await ask({ accept: 'text/event-stream' }, { as })).status);
    expect(statuses).toEqual([200, 200, 503]);
  });

  it('of a person and of a tenant hold only a share of the connections; those beyond the queue get 503', async () => {
    upstream.answer = () => undefined;
    const ask = await serve();
    const outcomes: unknown[] = [];
    const askMany = (count: number, as: Visitor) => {
      for (let nth = 0; nth < count; nth += 1)
        void ask({}, { as }).then(
          (outcome) => outcomes.push(outcome),
          () => undefined,
        );
    };
    askMany(51, ana);
    await expect.poll(() => outcomes).toEqual([{ status: 503, problem: 'busy' }]);
    expect(upstream.seen).toHaveLength(10);
    expect(await samples('formgate_upstream_refusals_total')).toEqual([{ reason: 'queue-full', value: 1 }]);
    askMany(6, await world.open({ session: { user: person(1) } }));
    await expect
      .poll(() => samples('formgate_upstream_connections'))
      .toEqual([
        { state: 'held', value: 15 },
        { state: 'waiting', value: 41 },
      ]);
  });
});

const person = (nth: number) => ({ id: `person ${nth}`, name: 'A Person', roles: [] });

it('a process that ends closes its connections to upstreams, and leaves no timer', async () => {
  const ask = await serve();
  await ask();
  expect(upstream.connections()).toBe(1);
  await targets.close();
  await expect.poll(() => upstream.connections()).toBe(0);
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const others = vi.getTimerCount();
  const again = create();
  expect(vi.getTimerCount()).toBeGreaterThan(others);
  await again.close();
  expect(vi.getTimerCount()).toBe(others);
});

it('the API documentation shows one operation for all methods, with the checks in the order in which they run', () => {
  const { method, path, operationId, guards, audit, handle } = targetRoute(create().guards);
  expect({ method, path, operationId, handle }).toEqual({
    ...{ method: 'all', path: '/token-handler/v1/targets/:targetId/*path', operationId: 'proxy', handle: undefined },
  });
  expect(guards.map(({ name }) => name)).toEqual([
    ...['notEmbedded', 'addressLimit(targets-address)', 'liveSession', 'sessionTenant', 'csrf'],
    'rateLimit(targets-session)',
  ]);
  expect(audit).toEqual({ unaudited: expect.stringMatching(/./) });
});
