// One proxied request between a scripted client and a scripted upstream, without sockets. A test calls the events that
// undici would call, and reads what the proxy did with the connection, the session and the bodies.
import { EventEmitter } from 'node:events';
import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { Problem } from '../../src/service/http/problem.ts';
import type { HttpResponse } from '../../src/service/http/request-context.ts';
import { serveUpgrades } from '../../src/service/http/upgrades.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import type { LiveSession } from '../../src/token-handler/sessions/session.ts';
import { createReadAhead } from '../../src/token-handler/targets/body-memory.ts';
import type { Lease } from '../../src/token-handler/targets/connections.ts';
import { createProxy } from '../../src/token-handler/targets/proxied-request.ts';
import type { ProxyOptions } from '../../src/token-handler/targets/proxy-options.ts';
import { createTargetMetrics } from '../../src/token-handler/targets/target-metrics.ts';

/** The client's connection. While `reads` is false, the client takes nothing. */
class ClientConnection extends Duplex {
  reads = true;
  received = '';
  isReset = false;
  keepAlive: unknown[] = [];
  timeouts: number[] = [];
  #blocked: (() => void) | undefined;

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.received += chunk.toString('latin1');
    if (this.reads) done();
    else this.#blocked = done;
  }

  readAll(): void {
    this.reads = true;
    this.#blocked?.();
  }

  resetAndDestroy(): void {
    this.isReset = true;
    this.destroy();
  }

  setTimeout(milliseconds: number): void {
    this.timeouts.push(milliseconds);
  }

  setKeepAlive(...given: unknown[]): void {
    this.keepAlive.push(given);
  }
}

export interface ExchangeOptions {
  method?: string;
  headers?: Record<string, string>;
  isUpgrade?: boolean;
  isStream?: boolean;
  firstByte?: number;
  /** Returns the lease; by default, it is granted at once. */
  lease?(granted: Lease): Promise<Lease>;
}

export type Exchange = Awaited<ReturnType<typeof startExchange>>;

/** Starts a request. Waits until it was passed to the upstream, unless its lease takes longer. */
export async function startExchange(options: ExchangeOptions = {}) {
  const { method = 'GET', headers = {}, isUpgrade = false, isStream = isUpgrade, firstByte = 60_000 } = options;
  const client = new ClientConnection();
  const aborted: Error[] = [];
  /** Each watch of the session or of a body that has not been stopped. */
  const watching = { session: new Set<() => void>(), bodies: new Set<() => void>() };
  const watch = (set: Set<() => void>, end: () => void) => {
    set.add(end);
    return () => void set.delete(end);
  };
  const exchange = {
    ...{ client, aborted, watching, released: 0, suspected: 0, outcome: undefined as unknown },
    dispatched: [] as Dispatcher.DispatchOptions[],
    handler: undefined as unknown as Required<Dispatcher.DispatchHandler>,
    controller: {
      abort: (error: Error) => void aborted.push(error),
      pause: () => undefined,
      resume: () => undefined,
    } as unknown as Dispatcher.DispatchController,
    /** Returns the sum of the measured durations of the upstream, in milliseconds. */
    upstreamTime: async () => 0,
    request: undefined as unknown as IncomingMessage,
    response: undefined as unknown as ServerResponse,
  };
  const granted = {
    suspect() {
      exchange.suspected += 1;
    },
    release() {
      exchange.released += 1;
    },
    dispatcher: {
      dispatch(request: Dispatcher.DispatchOptions, handler: Required<Dispatcher.DispatchHandler>) {
        exchange.dispatched.push(request);
        exchange.handler = handler;
        return true;
      },
    },
  } as unknown as Lease;
  const metrics = createMetrics();
  exchange.upstreamTime = async () => {
    const text = (await metrics.registry.getSingleMetricAsString('formgate_upstream_duration_seconds')) ?? '';
    return Number(/_sum (\S+)/.exec(text)?.[1]) * 1_000;
  };
  const proxyOptions = {
    connections: { share: async () => (options.lease ?? (async (one: Lease) => one))(granted), own: () => granted },
    streams: {
      open: (_session: LiveSession, _kind: string, end: () => void) => watch(watching.session, end),
      watch: (_session: LiveSession, end: () => void) => watch(watching.session, end),
    },
    rate: { watch: (_body: unknown, end: () => void) => watch(watching.bodies, end) },
    bodies: { buffers: { note: () => undefined }, readAhead: createReadAhead() },
    metrics: { ...createTargetMetrics({ registry: metrics.registry, namesTargets: false }), ...metrics },
    firstByte,
  } as unknown as ProxyOptions;
  const session = {
    session: { handle: 'h', tenantId: 'town', user: { id: 'ada' } },
    onEnd: (end: () => void) => watch(watching.session, end),
  } as unknown as LiveSession;

  const end = (outcome: unknown) => {
    exchange.outcome = outcome;
  };
  const listen = (request: IncomingMessage, response: ServerResponse) => {
    Object.assign(exchange, { request, response });
    Object.assign(response, { locals: { requestId: 'id' } });
    const outgoing = { method, origin: 'http://up.example', path: '/a', headers: [], isUpgrade, isStream, session };
    createProxy(proxyOptions)(request, response as unknown as HttpResponse, outgoing).then(
      () => end('done'),
      (error: unknown) => end(error instanceof Problem ? error.slug : error),
    );
  };
  const request = new IncomingMessage(client as never);
  Object.assign(request, { method, headers, httpVersionMajor: 1, httpVersionMinor: 1, httpVersion: '1.1' });
  if (isUpgrade) {
    const server = new EventEmitter() as Server;
    serveUpgrades(server, listen as never);
    server.emit('upgrade', request, client, Buffer.alloc(0));
  } else {
    const response = new ServerResponse(request);
    response.assignSocket(client as never);
    listen(request, response);
  }
  await turn();
  if (exchange.handler) exchange.handler.onRequestStart(exchange.controller, {});
  return exchange;
}
