// Serves requests until the process stops. A stop first ends readiness, and then closes the listener. Running requests
// can finish until the deadline, when their connections are closed.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as endOfPoll, setTimeout as sleep } from 'node:timers/promises';
import { createServer } from '../http/node-http.ts';
import { ignoreAfterClose, limitBodies, readRestOfBodies } from '../http/slow-bodies.ts';
import { serveUnreadable } from '../http/unreadable-requests.ts';
import { isWebSocketHandshake, serveConnects, serveUpgrades } from '../http/upgrades.ts';
import { limitPipelining } from '../limits/pipelined-requests.ts';
import { within } from '../time-limit.ts';
import { watchEventLoop } from './event-loop-watch.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import { createOperationsApp } from './operations-app.ts';
import { type Conditions, createReadiness } from './readiness.ts';

export interface ServeOptions {
  /** An Express app, or a listener that calls an Express app. */
  app: RequestListener;
  host: string;
  /** Port to listen on; 0 chooses a free port. */
  port: number;
  metrics: Metrics;
  metricsPort: number;
  /** Conditions of readiness in addition to draining and a blocked event loop. */
  readiness?: Conditions;
  /** Milliseconds from the signal to stop until all connections are closed. */
  drainDeadline: number;
  /**
   * Milliseconds between the end of readiness and the closing of the listener. Load balancers need this time to notice
   * that the pod is not ready.
   */
  drainDelay?: number;
  /** Milliseconds after which a connection without traffic is closed while it has a request. By default 310 s. */
  longestSilence?: number;
  log: Logger;
  /**
   * Set only in a process that proxies bodies of any size. Returns true if the request may upload without a time limit
   * and switch to the WebSocket protocol.
   */
  mayUpgrade?(request: IncomingMessage): boolean;
  /** Releases resources after the last request, within 5 s. */
  close(): Promise<void>;
}

export interface RunningService {
  url: string;
  metricsUrl: string;
  port: number;
  /** Drains and stops the service. Repeated calls wait for the first. */
  close(): Promise<void>;
  /** Maximum time in milliseconds until `close` settles. */
  longestStop: number;
}

/** Timeout in milliseconds for the release of resources. */
const longestRelease = 5_000;
/**
 * Milliseconds that a connection with a request may be silent: longer than any timeout of an upstream. Also ends
 * connections whose client does not read the response, which would otherwise stay in memory.
 */
const usualSilence = 310_000;

export async function serve(options: ServeOptions): Promise<RunningService> {
  let draining = false;
  let closed: Promise<void> | undefined;
  const server = createMainServer(options);
  serveConnects(server, options.app);
  // An expectation that Node does not know. The app refuses it (request-framing.ts).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  const connections = prepareDrain(server);
  const { metrics, log } = options;
  serveUnreadable(server, { log, metrics, runningOn: connections.runningOn });
  // This timeout is longer than the time for which proxies keep idle connections, usually 60 s. A proxy therefore never
  // sends a request over a connection that this server has closed.
  server.keepAliveTimeout = 65_000;
  const eventLoop = watchEventLoop();
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
    options.log.info({ deadlineMs: options.drainDeadline }, 'stopping');
    const drainDelay = options.drainDelay ?? 0;
    connections.announceClose();
    await sleep(drainDelay);
    if (!(await connections.drain(Math.max(options.drainDeadline - drainDelay, 0))))
      options.log.warn('requests were cut at the drain deadline');
    try {
      const late = new Error(`resources were not released in ${longestRelease} ms`);
      await within(options.close(), longestRelease, late);
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

function createMainServer(options: ServeOptions): Server {
  const app = ignoreAfterClose(options.app);
  const server = options.mayUpgrade ? createProxyServer(app, options.mayUpgrade) : createServer(app);
  readRestOfBodies(server);
  limitPipelining(server);
  server.timeout = options.longestSilence ?? usualSilence;
  return server;
}

function createProxyServer(app: RequestListener, mayUpgrade: (request: IncomingMessage) => boolean): Server {
  const shouldUpgradeCallback = (request: IncomingMessage) => isWebSocketHandshake(request) && mayUpgrade(request);
  const server = createServer({ shouldUpgradeCallback }, app);
  // Node's own limit would cut a body that takes more than 5 minutes.
  server.requestTimeout = 0;
  limitBodies(server, mayUpgrade);
  serveUpgrades(server, app);
  return server;
}

interface Connections {
  /** Returns the newest response of the connection that has not been sent completely. */
  runningOn(socket: Socket): ServerResponse | undefined;
  /**
   * From now on, each response ends its connection (`Connection: close`). Otherwise, the connection would become idle,
   * and `drain` could close it while the client sends the next request. That request would fail.
   */
  announceClose(): void;
  /**
   * Closes the listener and idle connections, and waits at most `deadline` milliseconds for running requests. Resolves
   * to true if all of them finished. Node's own `close` would also wait for connections that are kept alive.
   */
  drain(deadline: number): Promise<boolean>;
}

/** Tracks the connections of a server, so that a stop lets running requests finish. */
export function prepareDrain(server: Server): Connections {
  // Responses are stored by socket. A set of responses would often reallocate its table, and old tables would keep
  // responses in memory until V8 collects its old generation.
  const connections = new Map<Socket, { running?: ServerResponse | undefined }>();
  let closing = false;
  const closeAfter = (response: ServerResponse) => {
    if (!response.headersSent) response.setHeader('Connection', 'close');
  };
  // One function for all responses: a closure for each request costs memory.
  function forget(this: ServerResponse): void {
    const connection = connections.get(this.req.socket);
    if (connection?.running === this) connection.running = undefined;
  }
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(request.socket);
    if (connection) connection.running = response;
    response.on('close', forget);
    if (closing) closeAfter(response);
  });
  server.on('connection', (socket: Socket) => {
    connections.set(socket, {});
    socket.once('close', () => connections.delete(socket));
  });
  const announceClose = () => {
    closing = true;
    for (const { running } of connections.values()) if (running) closeAfter(running);
  };
  const drain = async (deadline: number) => {
    // Closes idle connections only after the event loop has polled. Timers run before the poll. If a timer closed the
    // connections on a busy machine, a connection could seem idle although its next request has already arrived.
    await endOfPoll();
    const finished = new Promise<boolean>((resolve) => server.close(() => resolve(true)));
    const sweep = setInterval(() => setImmediate(() => server.closeIdleConnections()), 50);
    const clean = await within(finished, deadline, false);
    clearInterval(sweep);
    // Node waits for upgraded connections but does not close them.
    for (const socket of connections.keys()) socket.destroy();
    await finished;
    return clean;
  };
  return { runningOn: (socket) => connections.get(socket)?.running, announceClose, drain };
}

/** Listens on all ports. If one port fails, closes the others. */
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
