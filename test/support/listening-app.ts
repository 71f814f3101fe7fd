// Starts an app of src/service on its own port, and gives access to its log and metrics.
import { createHttpApp, type HttpAppOptions, type Route } from '../../src/service/http/http-app.ts';
import { createMetrics, type Metrics } from '../../src/service/operations/metrics.ts';
import { type CapturedLog, captureLog } from './captured-log.ts';
import { createHttpServer } from './http-server.ts';
import { closeServer, listenOnLoopback } from './loopback-server.ts';

export interface ListeningApp extends CapturedLog {
  url: string;
  port: number;
  metrics: Metrics;
  /** Returns the request log lines so far; waits until there are `count` of them. */
  requestLines(count: number): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

export async function startApp(routes: Route[], overrides: Partial<HttpAppOptions> = {}): Promise<ListeningApp> {
  const captured = captureLog();
  const metrics = createMetrics();
  const app = createHttpApp({
    log: captured.log,
    metrics,
    routes,
    trustedProxies: 0,
    corsOrigins: [],
    bodyLimit: 1_048_576,
    ...overrides,
  });
  const server = createHttpServer(app);
  const port = await listenOnLoopback(server);
  return {
    ...captured,
    metrics,
    port,
    url: `http://127.0.0.1:${port}`,
    async requestLines(count) {
      const lines = () => captured.lines().filter(({ msg }) => String(msg).startsWith('request'));
      for (let waited = 0; lines().length < count && waited < 60_000; waited += 10)
        await new Promise((resolve) => setTimeout(resolve, 10));
      return lines();
    },
    close: () => closeServer(server),
  };
}
