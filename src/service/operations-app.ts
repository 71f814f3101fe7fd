// What the metrics port serves: /metrics, /livez and /readyz. Liveness asks nothing outside the process: a restart
// cures none of what it depends on.
import express, { type Express } from 'express';
import type { Metrics } from './metrics.ts';

export interface OperationsOptions {
  metrics: Metrics;
  /** What the process needs to serve, by name. */
  ready: Record<string, () => Promise<boolean>>;
}

/** Milliseconds after which a check that has not answered counts as failed; shorter than a probe's usual patience. */
const checkLimit = 2_000;

export function createOperationsApp(options: OperationsOptions, isDraining: () => boolean): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.get('/livez', (_request, response) => {
    response.type('text/plain').send('ok\n');
  });
  app.get('/readyz', async (_request, response) => {
    const checks = await Promise.all(
      Object.entries(options.ready).map(async ([name, check]) => [name, await passes(check)] as const),
    );
    const ready = !isDraining() && checks.every(([, passed]) => passed);
    response.status(ready ? 200 : 503).json({ ready, draining: isDraining(), ...Object.fromEntries(checks) });
  });
  app.get('/metrics', async (_request, response) => {
    response.type(options.metrics.registry.contentType).send(await options.metrics.registry.metrics());
  });
  return app;
}

/** Whether a check answers true in time. */
export async function passes(check: () => Promise<boolean>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), checkLimit);
  try {
    return await Promise.race([check(), late]);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
