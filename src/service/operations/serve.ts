// Listens, and stops well: on a signal readiness goes off, no new connection is taken, what runs finishes, and at the
// deadline whatever is left is cut.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer } from '../http/node-http.ts';
import { limitBodies } from '../http/slow-bodies.ts';
import { isWebSocketHandshake, serveConnects, serveUpgrades } from '../http/upgrades.ts';
import { watchEventLoop } from './event-loop-watch.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import { createOperationsApp } from './operations-app.ts';
import { type Conditions, createReadiness } from './readiness.ts';

export interface ServeOptions {
  /** An Express app, or a listener that leads to one. */
  app: RequestListener;
  host: string;
  /** 0 takes a free one. */
  port: number;
  metrics: Metrics;
  metricsPort: number;
  /** When the pod gets requests, beside draining and a blocked event loop. Liveness asks none of it. */
  readiness?: Conditions;
  /** Milliseconds from the signal to the cut. */
  drainDeadline: number;
  /** Milliseconds between readiness going off and the listener closing, for load balancers to notice. */
  drainDelay?: number;
  log: Logger;
  /**
   * For a process that relays bodies of any size. Of requests for which this is true, they may take any time as long as
   * they keep coming, and these requests may switch to the WebSocket protocol.
   */
  mayUpgrade?(request: IncomingMessage): boolean;
  /** Releases what the process holds, after the last request. It has 5 s. */
  close(): Promise<void>;
}

export interface RunningService {
  url: string;
  metricsUrl: string;
  port: number;
  /** Drains and stops. Repeated calls wait for the first. */
  close(): Promise<void>;
  /** Milliseconds after which `close` has settled. */
  longestStop: number;
}

/** Milliseconds that releasing may take, so that the whole stop has an end. */
const longestRelease = 5_000;
/** Milliseconds that a relayed connection may be silent: longer than any time-out of an upstream. */
const longestSilence = 310_000;

export async function serve(options: ServeOptions): Promise<RunningService> {
  let draining = false;
  let closed: Promise<void> | undefined;
  const server = createMainServer(options);
  serveConnects(server, options.app);
  const drainConnections = prepareDrain(server);
  // Longer than what proxies keep idle connections for (60 s is usual), so that they never write into a closed one.
  server.keepAliveTimeout = 65_000;
  const eventLoop = watchEventLoop();
  const { metrics, log } = options;
  const local = { ...options.readiness?.local, event_loop: eventLoop.problem };
  const readiness = createReadiness({ ...options.readiness, local, isDraining: () => draining, metrics, log });
  const operations = createServer(createOperationsApp({ metrics, readiness }));
  await listenAll([
    [server, options.host, options.port],
    [operations, options.host, options.metricsPort],
  ]);
  const port = (server.address() as AddressInfo).port;
  const metricsPort = (operations.address() as AddressInfo).port;
  options.log.info({ port, metricsPort }, 'listening');

  async function drain(): Promise<void> {
    draining = true;
    options.log.info({ deadlineMs: options.drainDeadline }, 'stopping: finishing what runs');
    const drainDelay = options.drainDelay ?? 0;
    await delay(drainDelay);
    if (!(await drainConnections(Math.max(options.drainDeadline - drainDelay, 0))))
      options.log.warn('requests were cut at the drain deadline');
    try {
      await withDeadline(options.close(), longestRelease);
    } finally {
      eventLoop.stop();
      operations.closeAllConnections();
      await new Promise<void>((resolve) => operations.close(() => resolve()));
    }
    options.log.info('stopped');
  }

  return {
    url: `http://${shownHost(options.host)}:${port}`,
    metricsUrl: `http://${shownHost(options.host)}:${metricsPort}`,
    port,
    longestStop: Math.max(options.drainDeadline, options.drainDelay ?? 0) + longestRelease + 1_000,
    close: () => {
      closed ??= drain();
      return closed;
    },
  };
}

function createMainServer({ app, mayUpgrade }: ServeOptions): Server {
  if (!mayUpgrade) return createServer(app);
  const shouldUpgradeCallback = (request: IncomingMessage) => isWebSocketHandshake(request) && mayUpgrade(request);
  const server = createServer({ shouldUpgradeCallback }, app);
  // Node's own limit would cut a body that takes more than 5 minutes.
  server.requestTimeout = 0;
  limitBodies(server, mayUpgrade);
  server.timeout = longestSilence;
  serveUpgrades(server, app);
  return server;
}

/**
 * Answers a function that closes the listener, waits for running requests, at most `deadline` milliseconds, and resolves
 * with whether all of them finished. Node alone would wait for kept-alive connections too: each is told
 * `Connection: close` with its last answer, or closed as soon as it is idle.
 */
function prepareDrain(server: Server): (deadline: number) => Promise<boolean> {
  // By socket, not a set of responses: one that every request is put into and taken from is made anew all the time, and
  // each old table of it keeps the next alive, with all that was in it, until the old generation is collected.
  const connections = new Map<Socket, { running?: ServerResponse | undefined }>();
  let closing = false;
  const announceClose = (response: ServerResponse) => {
    if (!response.headersSent) response.setHeader('Connection', 'close');
  };
  // One for all responses: on the path of every request, a closure for each costs.
  function forget(this: ServerResponse): void {
    const connection = connections.get(this.req.socket);
    if (connection?.running === this) connection.running = undefined;
  }
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(request.socket);
    if (connection) connection.running = response;
    response.on('close', forget);
    if (closing) announceClose(response);
  });
  server.on('connection', (socket: Socket) => {
    connections.set(socket, {});
    socket.once('close', () => connections.delete(socket));
  });
  return async (deadline) => {
    const finished = new Promise<boolean>((resolve) => server.close(() => resolve(true)));
    closing = true;
    for (const { running } of connections.values()) if (running) announceClose(running);
    const sweep = setInterval(() => server.closeIdleConnections(), 50);
    const stop = new AbortController();
    const cut = delay(deadline, false, { signal: stop.signal }).catch(() => true);
    const clean = await Promise.race([finished, cut]);
    clearInterval(sweep);
    stop.abort();
    // Node closes no connection that was upgraded, but waits for it all the same.
    for (const socket of connections.keys()) socket.destroy();
    await finished;
    return clean;
  };
}

async function withDeadline(work: Promise<void>, milliseconds: number): Promise<void> {
  const stop = new AbortController();
  const late = delay(milliseconds, undefined, { signal: stop.signal }).then(() => {
    throw new Error(`what the process holds was not released in ${milliseconds} ms`);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    late.catch(() => undefined);
    stop.abort();
  }
}

/** All or none: a process that cannot have one of its ports lets go of the others. */
async function listenAll(wanted: [Server, string, number][]): Promise<void> {
  const results = await Promise.allSettled(wanted.map(([server, host, port]) => listen(server, host, port)));
  const failure = results.find((result) => result.status === 'rejected');
  if (!failure) return;
  for (const [server] of wanted) server.close();
  throw failure.reason;
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function shownHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
