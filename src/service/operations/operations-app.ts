// Serves /metrics, /livez and /readyz on the metrics port. Liveness depends on nothing outside the process, because a
// restart of the process cannot repair anything outside it.
import express, { type Express } from 'express';
import { exposeMetrics } from './exposition.ts';
import type { Metrics } from './metrics.ts';
import type { ReadinessReport } from './readiness.ts';

export interface OperationsOptions {
  metrics: Metrics;
  readiness(): Promise<ReadinessReport>;
}

export function createOperationsApp({ metrics, readiness }: OperationsOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.get('/livez', (_request, response) => {
    response.type('text/plain').send('ok\n');
  });
  app.get('/readyz', async (_request, response) => {
    const report = await readiness();
    response.status(report.ready ? 200 : 503).json(report);
  });
  app.get('/metrics', async (request, response) => {
    const { contentType, text } = await exposeMetrics(metrics.registry, request.accepts());
    response.type(contentType).send(text);
  });
  return app;
}
