// Listens, and stops well: on a signal readiness goes off, no new connection is taken, what runs finishes, and at the
// deadline whatever is left is cut. The metrics port serves /metrics, /livez and /readyz.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import express, { type Express } from 'express';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

export interface ServeOptions {
  app: Express;
  host: string;
  /** 0 takes a free one. */
  port: number;
  metrics: Metrics;
  metricsPort: number;
  /** What the process needs to serve, by name. Liveness asks none of it. */
  ready: Record<string, () => Promise<boolean>>;
  /** Milliseconds from the signal to the cut. */
  drainDeadline: number;
  /** Milliseconds between readiness going off and the listener closing, for load balancers to notice. */
  drainDelay?: number;
  log: Logger;
  /** Releases what the process holds, after the last request. */
  close(): Promise<void>;
}

export interface RunningService {
  url: string;
  metricsUrl: string;
  port: number;
  /** Drains and stops. Repeated calls wait for the first. */
  close(): Promise<void>;
}

export async function serve(options: ServeOptions): Promise<RunningService> {
  let draining = false;
  let closed: Promise<void> | undefined;
  const server = createServer(options.app);
  // Slow heads and idle keep-alive connections must not outlive a proxy's patience the wrong way round.
  server.keepAliveTimeout = 65_000;
  server.headersTimeout = 66_000;
  const operations = createServer(operationsApp(options, () => draining));
  await Promise.all([listen(server, options.host, options.port), listen(operations, options.host, options.metricsPort)]);
  const port = (server.address() as AddressInfo).port;
  const metricsPort = (operations.address() as AddressInfo).port;
  options.log.info({ port, metricsPort }, 'listening');

  async function drain(): Promise<void> {
    draining = true;
    options.log.info({ deadlineMs: options.drainDeadline }, 'stopping: finishing what runs');
    await delay(options.drainDelay ?? 0);
    const finished = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    const cut = setTimeout(() => server.closeAllConnections(), options.drainDeadline);
    await finished;
    clearTimeout(cut);
    await options.close();
    operations.closeAllConnections();
    await new Promise<void>((resolve) => operations.close(() => resolve()));
    options.log.info('stopped');
  }

  const shown = options.host === '0.0.0.0' || options.host === '::' ? '127.0.0.1' : options.host;
  return {
    url: `http://${shown}:${port}`,
    metricsUrl: `http://${shown}:${metricsPort}`,
    port,
    close: () => (closed ??= drain()),
  };
}

/** Stops the process on SIGTERM and SIGINT: exit 0 after a clean drain, 1 when closing failed. */
export function stopOnSignals(running: RunningService, log: Logger): void {
  const stop = (signal: NodeJS.Signals) => {
    log.info({ signal }, 'signal received');
    running.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'stopping failed');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
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

function operationsApp(options: ServeOptions, isDraining: () => boolean): Express {
  const app = express();
  app.disable('x-powered-by');
  app.get('/livez', (_request, response) => {
    response.type('text/plain').send('ok\n');
  });
  app.get('/readyz', async (_request, response) => {
    const names = Object.keys(options.ready);
    const answers = await Promise.all(Object.values(options.ready).map((check) => check().catch(() => false)));
    const parts = Object.fromEntries(names.map((name, index) => [name, answers[index]]));
    const ready = !isDraining() && answers.every(Boolean);
    response.status(ready ? 200 : 503).json({ ready, draining: isDraining(), ...parts });
  });
  app.get('/metrics', async (_request, response) => {
    response.type(options.metrics.registry.contentType).send(await options.metrics.registry.metrics());
  });
  return app;
}
