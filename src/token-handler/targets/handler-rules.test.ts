// Tests how the target handler counts and traces requests, and the boundary cases of individual steps.
// `handler.test.ts` tests the order of the steps.
import { createServer, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import prom from 'prom-client';
import { describe, expect, it } from 'vitest';
import { Problem } from '../../service/http/problem.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { serveUpgrades } from '../../service/http/upgrades.ts';
import type { Span, SpanEnd, SpanOptions } from '../../service/tracing/span.ts';
import type { Client } from '../clients/client.ts';
import { Rejection } from '../rejection.ts';
import type { LiveSession } from '../sessions/session.ts';
import { checkMethod, checkNoServiceWorker, checkPath, createTargetHandler, findTarget } from './handler.ts';
import type { Forward, Outgoing } from './proxy-options.ts';
import type { AddedHeaders } from './request-headers.ts';
import { createTargetMetrics } from './target-metrics.ts';

const session = { handle: 'h', tenantId: 'urn:t', clientId: 'app', user: { id: 'alice' } };
const targets = [
  { id: 'other', upstream: 'urn:example:demo:other' },
  { id: 'api', upstream: 'urn:example:demo:api' },
];

/** Returns a target handler that calls `forward`, the counts of its metrics, and what its steps have received. */
function handling({ forward = async () => undefined, fails }: { forward?: Forward; fails?: unknown } = {}) {
  const registry = new prom.Registry();
  const forwarded: Outgoing[] = [];
  const added: AddedHeaders[] = [];
  const found: string[] = [];
  const pass = { name: 'guard', check: () => undefined };
  const live = { session, accessToken: async () => 'secret', onEnd: () => () => undefined } as unknown as LiveSession;
  const handle = createTargetHandler({
    guards: {
      ...{ notEmbedded: pass, addressLimit: pass, sessionTenant: pass, csrf: pass, sessionLimit: pass },
      liveSession: {
        name: 'session',
        check(_request, response) {
          response.locals.session = live;
        },
      },
    },
    catalog: { find: async () => ({ targets }) as unknown as Client },
    upstreams: {
      async find(urn) {
        if (fails) throw fails;
        found.push(urn);
        return { origin: 'http://upstream', basePath: '/base' };
      },
    },
    requestHeaders(_request, headers) {
      added.push(headers);
      return ['Accept', '*/*'];
    },
    forward(request, response, outgoing) {
      forwarded.push(outgoing);
      return forward(request, response, outgoing);
    },
    metrics: createTargetMetrics({ registry, namesTargets: true }),
  });
  const counts = async () =>
    (await registry.metrics()).split('\n').flatMap((line) => {
      const [, metric, labels] = /^formgate_(proxied|rejected)_requests_total\{(.*)\} 1$/.exec(line) ?? [];
      return metric === undefined ? [] : `${metric} ${labels?.replaceAll('"', '')}`;
    });
  return { handle, counts, forwarded, added, found };
}

const url = '/token-handler/v1/targets/api/a?b';
const requestOf = (members: Partial<IncomingMessage> = {}) =>
  ({ method: 'GET', url, headers: {}, rawHeaders: [], ...members }) as IncomingMessage;
const forwarded = { address: '203.0.113.9', host: 'a.example', protocol: 'https' };
const scope = { requestId: 'one', traceparent: 'trace of the request' };
const responseOf = (members: object = {}, locals: object = {}) =>
  ({
    ...{ destroyed: false, statusCode: 200, writableEnded: true },
    locals: { requestId: 'one', scope, started: 0, forwarded, ...locals },
    ...members,
  }) as unknown as HttpResponse;
const errorOf = (handled: Promise<void>) =>
  handled.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a request that was forwarded', () => {
  it.each([
    [200, 'succeeded'],
    [404, 'client-error'],
    [500, 'server-error'],
  ])('with status %i counts once, as %s of its target', async (statusCode, outcome) => {
    const { handle, counts, found } = handling();
    await handle(requestOf(), responseOf({ statusCode }));
    expect([await counts(), found]).toEqual([[`proxied outcome=${outcome},target=api`], ['urn:example:demo:api']]);
  });

  it('counts as unreachable or refused if forwarding it fails, and never as rejected by a check', async () => {
    for (const [error, outcome] of [
      [new Error('broken'), 'unreachable'],
      [new Problem('busy'), 'refused'],
      [new Rejection('host', 'upstream-not-allowed', 'x'), 'refused'],
    ] as const) {
      const { handle, counts } = handling({ forward: () => Promise.reject(error) });
      expect(await errorOf(handle(requestOf(), responseOf()))).toBe(error);
      expect(await counts()).toEqual([`proxied outcome=${outcome},target=api`]);
    }
  });
});

describe('a request that was not forwarded', () => {
  it('counts as aborted if the client has left', async () => {
    const { handle, counts, forwarded: sent } = handling();
    await handle(requestOf(), responseOf({ destroyed: true }));
    expect([await counts(), sent]).toEqual([['proxied outcome=aborted,target=api'], []]);
  });

  it('counts by the reason for which a check rejected it', async () => {
    const fails = new Rejection('host', 'upstream-not-allowed', 'x');
    const { handle, counts } = handling({ fails });
    expect(await errorOf(handle(requestOf(), responseOf()))).toBe(fails);
    expect(await counts()).toEqual(['proxied outcome=refused,target=api', 'rejected reason=host']);
  });

  it('counts as failed, and not as rejected, if another service failed', async () => {
    const fails = new Problem('dependency-failed');
    const { handle, counts } = handling({ fails });
    expect(await errorOf(handle(requestOf(), responseOf()))).toBe(fails);
    expect(await counts()).toEqual(['proxied outcome=failed,target=api']);
  });

  it('counts without a target label if it names no target of the client', async () => {
    const { handle, counts } = handling();
    await errorOf(handle(requestOf({ url: '/token-handler/v1/targets/invented/a' }), responseOf()));
    expect(await counts()).toEqual(['proxied outcome=refused,target=', 'rejected reason=target']);
  });
});

describe('the trace of a request', () => {
  /** Returns a span, and the list in which its children and its end are recorded. */
  function spanOf() {
    const events: unknown[] = [];
    const child = (options: SpanOptions) => {
      events.push(options.name);
      const end = (result?: SpanEnd) => void events.push(result);
      return { traceparent: 'trace of the call', end } as Span;
    };
    return { events, span: { child } as unknown as Span };
  }
  const traced = (span: Span, members: object = {}) => responseOf(members, { scope: { ...scope, span } });

  it('has a span for the call of the upstream, which the upstream continues', async () => {
    const { events, span } = spanOf();
    const { handle, added, forwarded: sent } = handling();
    await handle(requestOf({ method: 'POST' }), traced(span, { statusCode: 201 }));
    expect(events).toEqual(['POST upstream', { attributes: { 'http.response.status_code': 201 }, error: undefined }]);
    expect(added[0]?.traceparent).toBe('trace of the call');
    expect(sent[0]).not.toHaveProperty('span');
  });

  it('records how the call failed', async () => {
    const { events, span } = spanOf();
    const error = new Problem('dependency-timeout');
    const { handle } = handling({ forward: () => Promise.reject(error) });
    expect(await errorOf(handle(requestOf(), traced(span)))).toBe(error);
    expect(events).toEqual(['GET upstream', { error: 'dependency-timeout' }]);
  });

  it('has no span for a call if the client has left', async () => {
    const { events, span } = spanOf();
    await handling().handle(requestOf(), traced(span, { destroyed: true }));
    expect(events).toEqual([]);
  });

  it('is passed on as it is if this process records no spans', async () => {
    const { handle, added } = handling();
    await handle(requestOf(), responseOf());
    expect(added).toEqual([
      { accessToken: 'secret', forwarded, requestId: 'one', traceparent: 'trace of the request', isNewTrace: true },
    ]);
  });
});

describe('a request', () => {
  it('without a method is forwarded as GET', async () => {
    const { handle, forwarded: sent } = handling();
    const { method: _method, ...rest } = requestOf();
    await handle(rest as IncomingMessage, responseOf());
    expect(sent).toMatchObject([{ method: 'GET', origin: 'http://upstream', path: '/base/a?b' }]);
  });

  it.each<[string | undefined, boolean]>([
    [undefined, false],
    ['text/html', false],
    ['text/event-stream', true],
    ['text/html, text/event-stream;q=0.5', true],
  ])('that accepts %s is a stream: %j', async (accept, isStream) => {
    const { handle, forwarded: sent } = handling();
    await handle(requestOf({ headers: accept === undefined ? {} : { accept } }), responseOf());
    expect(sent).toMatchObject([{ isStream, isUpgrade: false }]);
  });

  it('to switch to WebSocket is a stream and an upgrade', async () => {
    const request = new IncomingMessage(new Socket());
    const server = createServer();
    serveUpgrades(server, () => undefined);
    server.emit('upgrade', request, request.socket, Buffer.alloc(0));
    const { handle, forwarded: sent } = handling();
    await handle(Object.assign(request, { url, method: 'GET' }), responseOf());
    expect(sent).toMatchObject([{ isStream: true, isUpgrade: true }]);
  });

  it.each([
    ['0', true],
    ['999999999999999', true],
    ['9007199254740991', true],
    ['9007199254740992', false],
    ['10000000000000000', false],
  ])(
    'with a Content-Length of %s is forwarded: %j, because undici would round larger numbers',
    async (length, isForwarded) => {
      const { handle, forwarded: sent } = handling();
      const error = await errorOf(handle(requestOf({ headers: { 'content-length': length } }), responseOf()));
      expect([sent.length === 1, (error as Problem | undefined)?.slug]).toEqual([
        isForwarded,
        isForwarded ? undefined : 'body-too-large',
      ]);
    },
  );

  it('is rejected for one reason, which the metrics count', async () => {
    const reasonOf = async (act: () => unknown) => {
      try {
        await act();
      } catch (error) {
        return [(error as Rejection).reason, (error as Rejection).headers];
      }
      return [];
    };
    expect(await reasonOf(() => checkMethod({ method: 'TRACE' }))).toEqual([
      'method',
      { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' },
    ]);
    expect(await reasonOf(() => checkNoServiceWorker({ headers: { 'service-worker': 'script' } }))).toEqual([
      ...['service-worker', {}],
    ]);
    expect(await reasonOf(() => checkPath({ path: '/..' }))).toEqual(['path', {}]);
    const noClient = { find: async () => undefined };
    expect(await reasonOf(() => findTarget(noClient, session, { targetId: 'api' }))).toEqual(['target', {}]);
  });
});
