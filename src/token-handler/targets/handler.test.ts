// Tests each step of the target handler separately, and the order of the steps. `routes.test.ts` tests whole requests
// over the network.
import type { IncomingMessage } from 'node:http';
import prom from 'prom-client';
import { describe, expect, it } from 'vitest';
import type { SyncGuard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import type { Client } from '../clients/client.ts';
import type { LiveSession } from '../sessions/session.ts';
import {
  checkMethod,
  checkNoServiceWorker,
  checkPath,
  createTargetHandler,
  findTarget,
  pathAt,
  type TargetHandlerOptions,
  targetAddressOf,
} from './handler.ts';
import type { Outgoing } from './proxy-options.ts';
import type { AddedHeaders } from './request-headers.ts';
import { createTargetMetrics } from './target-metrics.ts';

const slugOf = async (act: () => unknown): Promise<string> => {
  try {
    await act();
  } catch (error) {
    return (error as Problem).slug;
  }
  return 'passed';
};

const session = { handle: 'h', tenantId: 'urn:t', clientId: 'app', user: { id: 'alice' } };
const target = { id: 'api', upstream: 'urn:example:demo:api' };
const catalog = {
  find: async ({ id }: { id: string }, clientId: string) =>
    id === 'urn:t' && clientId === 'app' ? ({ targets: [target] } as Client) : undefined,
};

interface Trace {
  steps: string[];
  added: AddedHeaders[];
  outgoing: Outgoing[];
}

/** Returns options for a handler whose steps record their names. The step named `failing` rejects the request. */
function recording(failing?: string): { options: TargetHandlerOptions; trace: Trace } {
  const trace: Trace = { steps: [], added: [], outgoing: [] };
  const step = (name: string) => {
    trace.steps.push(name);
    if (name === failing) throw new Problem('forbidden', name);
  };
  const guard = (name: string): SyncGuard => ({
    name,
    check(_request, response) {
      step(name);
      const accessToken = async () => {
        step('access token');
        return 'secret';
      };
      const live = { session, accessToken, onEnd: () => () => undefined };
      if (name === 'session') response.locals.session = live as unknown as LiveSession;
    },
  });
  const options: TargetHandlerOptions = {
    guards: {
      notEmbedded: guard('embedding'),
      addressLimit: guard('address limit'),
      liveSession: guard('session'),
      sessionTenant: guard('tenant'),
      csrf: guard('csrf'),
      sessionLimit: guard('session limit'),
    },
    catalog: {
      async find(tenant, clientId) {
        step('target');
        return catalog.find(tenant, clientId);
      },
    },
    upstreams: {
      async find() {
        step('upstream');
        return { origin: 'http://upstream', basePath: '/base' };
      },
    },
    requestHeaders(_request, added) {
      trace.added.push(added);
      return ['Authorization', `Bearer ${added.accessToken}`];
    },
    async forward(_request, _response, outgoing) {
      step('forward');
      trace.outgoing.push(outgoing);
    },
    metrics: createTargetMetrics({ registry: new prom.Registry(), namesTargets: false }),
  };
  return { options, trace };
}

const requestOf = (members: Partial<IncomingMessage> = {}) =>
  ({
    method: 'GET',
    url: '/token-handler/v1/targets/api/a?b',
    headers: {},
    rawHeaders: [],
    ...members,
  }) as IncomingMessage;
const forwarded = { address: '203.0.113.9', host: 'a.example', protocol: 'https' };
const scope = { requestId: 'one', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
const responseOf = (members: Partial<HttpResponse> = {}) =>
  ({ destroyed: false, locals: { requestId: 'one', scope, started: 0, forwarded }, ...members }) as HttpResponse;

const order = [
  'embedding',
  'address limit',
  'session',
  'tenant',
  'csrf',
  'session limit',
  'target',
  'upstream',
  'access token',
];

describe('the target handler', () => {
  it('runs its steps in the order of the specification, and forwards the request', async () => {
    const { options, trace } = recording();
    await createTargetHandler(options)(requestOf(), responseOf());
    expect(trace.steps).toEqual([...order, 'forward']);
    expect(trace.outgoing).toMatchObject([
      { method: 'GET', origin: 'http://upstream', path: '/base/a?b', isUpgrade: false, isStream: false },
    ]);
    expect(trace.outgoing[0]?.headers).toEqual(['Authorization', 'Bearer secret']);
  });

  it.each(order)('runs no further step after the step that rejects the request: %s', async (name) => {
    const { options, trace } = recording(name);
    expect(await slugOf(() => createTargetHandler(options)(requestOf(), responseOf()))).toBe('forbidden');
    expect(trace.steps).toEqual(order.slice(0, order.indexOf(name) + 1));
  });

  it('checks method, service worker, length and address before it looks for the target', async () => {
    for (const request of [
      { method: 'TRACE' },
      { headers: { 'service-worker': 'script' } },
      { headers: { 'content-length': '99999999999999999999' } },
      { url: 'http://evil.example/token-handler/v1/targets/api/a' },
    ]) {
      const { options, trace } = recording();
      expect(await slugOf(() => createTargetHandler(options)(requestOf(request), responseOf()))).not.toBe('passed');
      expect(trace.steps).toEqual(order.slice(0, 6));
    }
  });

  it('checks the path before it asks the directory for the upstream', async () => {
    const { options, trace } = recording();
    const request = requestOf({ url: '/token-handler/v1/targets/api/..' });
    expect(await slugOf(() => createTargetHandler(options)(request, responseOf()))).toBe('invalid-path');
    expect(trace.steps.at(-1)).toBe('target');
  });

  it('forwards nothing once the client has closed the connection', async () => {
    const { options, trace } = recording();
    await createTargetHandler(options)(requestOf(), responseOf({ destroyed: true }));
    expect(trace.steps).toEqual(order);
  });

  it('passes the client’s trace on, and begins one otherwise', async () => {
    const { options, trace } = recording();
    const handle = createTargetHandler(options);
    const { traceparent } = scope;
    await handle(requestOf(), responseOf({ locals: { requestId: 'one', scope, started: 0, forwarded, traceparent } }));
    await handle(requestOf(), responseOf());
    const added = { accessToken: 'secret', forwarded, requestId: 'one', traceparent };
    expect(trace.added).toEqual([
      { ...added, isNewTrace: false },
      { ...added, isNewTrace: true },
    ]);
  });

  it('treats a request that accepts an event stream as a stream', async () => {
    const { options, trace } = recording();
    await createTargetHandler(options)(requestOf({ headers: { accept: 'text/event-stream' } }), responseOf());
    expect(trace.outgoing[0]).toMatchObject({ isStream: true, isUpgrade: false });
  });
});

describe('a step of the target handler', () => {
  it('rejects TRACE and no other method', async () => {
    expect(await slugOf(() => checkMethod({ method: 'TRACE' }))).toBe('method-not-allowed');
    for (const method of ['GET', 'POST', 'OPTIONS', 'QUERY'])
      expect(await slugOf(() => checkMethod({ method }))).toBe('passed');
  });

  it('rejects the script of a service worker', async () => {
    for (const headers of [{ 'service-worker': 'script' }, { 'sec-fetch-dest': 'serviceworker' }])
      expect(await slugOf(() => checkNoServiceWorker({ headers }))).toBe('forbidden');
    expect(await slugOf(() => checkNoServiceWorker({ headers: { 'sec-fetch-dest': 'script' } }))).toBe('passed');
  });

  it('reads the target’s id and path from addresses with and without a version', async () => {
    const read = { targetId: 'api', path: '/a', query: '?b' };
    for (const prefix of ['/token-handler/v1/targets', '/token-handler/targets'])
      expect(targetAddressOf({ url: `${prefix}/api/a?b` })).toEqual(read);
    expect(await slugOf(() => targetAddressOf({ url: 'http://a/token-handler/v1/targets/api' }))).toBe('invalid-path');
  });

  it('finds a target of the session’s client only', async () => {
    expect(await findTarget(catalog, session, { targetId: 'api' })).toBe(target);
    expect(await slugOf(() => findTarget(catalog, session, { targetId: 'other' }))).toBe('not-found');
    expect(await slugOf(() => findTarget(catalog, { ...session, clientId: 'b' }, { targetId: 'api' }))).toBe(
      'not-found',
    );
  });

  it('rejects a path that leaves the base path', async () => {
    expect(await slugOf(() => checkPath({ path: '/a/b' }))).toBe('passed');
    for (const path of ['/..', '/%2e%2e', '/a%2fb'])
      expect(await slugOf(() => checkPath({ path }))).toBe('invalid-path');
  });

  it('appends the path to the upstream’s base path', async () => {
    const address = { targetId: 'api', path: '//x', query: '' };
    expect(pathAt({ basePath: '/base' }, address)).toBe('/base//x');
    expect(await slugOf(() => pathAt({ basePath: '' }, address))).toBe('invalid-path');
  });
});
