// Runs the token handler's proxy in this process, between a real client and an upstream whose responses a test sets.
// Guards, directory and sessions are left out. All requests belong to one session, which a test can end.
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
  request as send,
} from 'node:http';
import { createPlainListener } from '../../src/service/http/plain-listener.ts';
import { readRestOfBodies } from '../../src/service/http/slow-bodies.ts';
import { serveUpgrades, upgradeOf } from '../../src/service/http/upgrades.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import type { LiveSession } from '../../src/token-handler/sessions/session.ts';
import { createPassingBuffers, createReadAhead } from '../../src/token-handler/targets/body-memory.ts';
import { createConnections } from '../../src/token-handler/targets/connections.ts';
import { createProxy } from '../../src/token-handler/targets/proxied-request.ts';
import { createRequestHeaders } from '../../src/token-handler/targets/request-headers.ts';
import { createStreams } from '../../src/token-handler/targets/streams.ts';
import { createTargetMetrics } from '../../src/token-handler/targets/target-metrics.ts';
import { createTransferRate } from '../../src/token-handler/targets/transfer-rate.ts';
import { captureLog } from './captured-log.ts';
import { listenOnLoopback } from './loopback-server.ts';
import { startUpstream } from './upstream.ts';

export interface ProxyOfTest {
  /** Milliseconds that the upstream may take to begin its response. */
  firstByte?: number;
  /** Minimum rate of bodies in bytes per second, measured over 60 ms. */
  least?: number;
  perSession?: number;
  /** Milliseconds after which the server closes the connection of an idle client. By default, it never does. */
  idle?: number;
}

export type RunningProxy = Awaited<ReturnType<typeof startProxy>>;

export async function startProxy({ firstByte = 5_000, least = 0, perSession = 9, idle = 0 }: ProxyOfTest = {}) {
  const upstream = await startUpstream();
  const metrics = createMetrics();
  const targetMetrics = createTargetMetrics({ registry: metrics.registry, namesTargets: false });
  const connections = createConnections({
    perUpstream: 8,
    personShare: 100,
    tenantShare: 100,
    onRefused: () => undefined,
  });
  const streams = createStreams({ perSession, total: 100, metrics: targetMetrics });
  const rate = createTransferRate({ least, window: 60 });
  const listeners = new Set<() => void>();
  const onEnd = (listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const session = {
    ...{ session: { handle: 'h', tenantId: 'town', user: { id: 'ada' } }, onEnd },
    accessToken: async () => 'token',
  } as unknown as LiveSession;
  let noted = 0;
  let running = 0;
  let latest: ServerResponse | undefined;
  const passing = createPassingBuffers();
  const buffers = {
    note(bytes: number) {
      noted += bytes;
      passing.note(bytes);
    },
  };
  const forward = createProxy({
    ...{ connections, rate, firstByte, metrics: { ...targetMetrics, dependencyFailures: metrics.dependencyFailures } },
    // Watches the session from the start of a request; the product begins to watch it after a second.
    streams: { ...streams, watch: (of, end) => of.onEnd(end) },
    bodies: { buffers, readAhead: createReadAhead() },
  });
  const headersOf = createRequestHeaders({ tenantHeader: 'X-Tenant', alsoDropped: [] });
  const { log, lines } = captureLog();
  const listener = createPlainListener(
    { log, metrics, trustedProxies: 0 },
    {
      routeOf: () => '/',
      serve(request, response) {
        const { forwarded, requestId } = response.locals;
        const added = { accessToken: 'token', forwarded, requestId, traceparent: 'trace', isNewTrace: false };
        const isUpgrade = upgradeOf(request) !== undefined;
        const isStream = isUpgrade || request.headers.accept === 'text/event-stream';
        const { method = 'GET', url = '/' } = request;
        const headers = headersOf(request, added);
        const { url: origin } = upstream;
        running += 1;
        latest = response;
        return forward(request, response, { method, path: url, origin, headers, isUpgrade, isStream, session }).finally(
          () => {
            running -= 1;
          },
        );
      },
    },
  );
  const server = createServer(listener);
  readRestOfBodies(server);
  server.setTimeout(idle);
  serveUpgrades(server, listener);
  const port = await listenOnLoopback(server);

  return {
    ...{ upstream, port, lines, held: () => connections.count().held },
    /** Returns the number of requests that watch the session. */
    watching: () => listeners.size,
    /** The number of requests that the proxy has not reported as done. */
    running: () => running,
    /** The number of bytes of the latest response that the client has not taken yet. */
    unread: () => latest?.writableLength ?? 0,
    /** True if the connection of the latest request's client is closed. */
    isClosed: () => latest?.closed ?? false,
    /** The number of bytes that were reported to `PassingBuffers`. */
    noted: () => noted,
    endSession() {
      for (const listen of [...listeners]) listen();
    },
    /** Begins a request, and returns it with its response. The test writes the body. */
    start(method = 'GET', headers: OutgoingHttpHeaders = {}) {
      const request = send({ port, host: '127.0.0.1', method, headers, path: '/base/a?b', agent: false });
      const answer = once(request, 'response').then(([incoming]) => incoming as IncomingMessage);
      // A test that aborts its request does not wait for the response.
      answer.catch(() => undefined);
      request.on('error', () => undefined);
      return { request, answer };
    },
    /** Returns the samples of a metric that are not 0, keyed by their labels. */
    async counts(name: string) {
      const text = await metrics.registry.metrics();
      const samples = [...text.matchAll(new RegExp(`^${name}\\{(.*)\\} ([1-9].*)$`, 'gm'))];
      return Object.fromEntries(samples.map(([, labels = '', value]) => [labels.replaceAll('"', ''), Number(value)]));
    },
    /** The value of a metric without labels. */
    async total(name: string) {
      return Number(new RegExp(`^${name} (.*)$`, 'm').exec(await metrics.registry.metrics())?.[1]);
    },
    async close() {
      streams.close();
      rate.close();
      await connections.close();
      server.close().closeAllConnections();
      await upstream.close();
    },
  };
}
