// Tests the spans of requests, calls and statements. A test collector decodes the spans that it receives.
import { createServer, type Socket } from 'node:net';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type Collector, openCollector } from '../../../test/support/collector.ts';
import { startApp } from '../../../test/support/listening-app.ts';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { createTestDatabase } from '../../../test/support/postgres.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { HttpAgent } from '../../platform/http-agent.ts';
import { createPlatformClient } from '../../platform/http-client.ts';
import { createPlatformMetrics } from '../../platform/platform-metrics.ts';
import { anonymous, route } from '../http/http-app.ts';
import { Problem } from '../http/problem.ts';
import { parseConfig } from '../operations/config.ts';
import { exposeMetrics } from '../operations/exposition.ts';
import { createMetrics } from '../operations/metrics.ts';
import { withTransaction } from '../postgres/postgres.ts';
import { tracePool } from './database-span.ts';
import { startTracing } from './start-tracing.ts';
import { installTracing, runIn, startRoot, storedTraceparent, type Tracing, traced } from './tracing.ts';
import { tracingFields } from './tracing-fields.ts';

let collector: Collector;
let tracing: Tracing | undefined;
const log = captureLog();
beforeEach(async () => {
  collector = await openCollector();
});
afterEach(async () => {
  await tracing?.close();
  installTracing(undefined);
  tracing = undefined;
  await collector.close();
});

async function begin(env: NodeJS.ProcessEnv = {}, captured = log): Promise<Tracing> {
  const all = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '20', ...env };
  tracing = await startTracing('test', parseConfig(z.object(tracingFields), all), captured.log);
  if (!tracing) throw new Error('no collector');
  return tracing;
}

const work = { name: 'work', kind: 'internal' } as const;
const sampled = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const unsampled = sampled.replace(/01$/, '00');

/** Starts an app that calls a service for each request. `seen` lists each `traceparent` that the service received. */
async function appWithCall() {
  const { registry, ...metrics } = createMetrics();
  const seen: (string | undefined)[] = [];
  const service = await startApp([
    route({
      ...{ method: 'get', path: '/documents/:id', summary: 'x', guards: [anonymous], responses: {} },
      handle: (_input, request, response) => {
        seen.push(request.headers.traceparent as string | undefined);
        response.status(request.params.id === 'broken' ? 404 : 200).json({});
      },
    }),
  ]);
  const agent = new HttpAgent();
  const client = createPlatformClient({
    ...{ service: 'configuration', agent, log: log.log, retryDelayMs: 1 },
    metrics: createPlatformMetrics({ registry, ...metrics }),
    baseUrl: () => Promise.resolve(service.url),
  });
  const app = await startApp([
    route({
      ...{ method: 'get', path: '/forms/:formId', summary: 'x', guards: [anonymous], responses: {} },
      async handle(_input, request, response) {
        const { formId } = request.params;
        await client.request({
          ...{ operation: 'read configuration', method: 'GET', path: `/documents/${formId}`, response: z.unknown() },
        });
        if (formId === 'refused') throw new Problem('unavailable', 'x');
        response.json({});
      },
    }),
  ]);
  onTestFinished(async () => {
    await Promise.all([app.close(), service.close(), agent.destroy()]);
  });
  return { app, seen };
}

describe('traces', () => {
  it('have a span for a request and one for each call, which continue the trace of the client', async () => {
    await begin();
    const { app, seen } = await appWithCall();
    await fetch(`${app.url}/forms/0198?code=canary-code`, { headers: { traceparent: sampled } });
    await collector.until((spans) => spans.length === 3);
    const [callee, call, request] = ['GET /documents/:id', 'GET configuration', 'GET /forms/:formId'].map((name) =>
      collector.spans.find((span) => span.name === name),
    );
    const traceId = sampled.slice(3, 35);
    expect(request).toMatchObject({ traceId, parentId: sampled.slice(36, 52), kind: 2, isError: false });
    expect(request?.attributes).toEqual({
      ...{ 'http.request.method': 'GET', 'http.response.status_code': 200, 'http.route': '/forms/:formId' },
    });
    expect(call).toMatchObject({ traceId, parentId: request?.spanId, kind: 3 });
    expect(call?.attributes).toEqual({
      ...{ 'http.request.method': 'GET', 'http.response.status_code': 200, 'service.peer.name': 'configuration' },
      'formgate.operation': 'read configuration',
    });
    expect(callee).toMatchObject({ traceId, parentId: call?.spanId });
    expect(seen).toEqual([`00-${traceId}-${call?.spanId}-01`]);
    expect(collector.raw()).not.toMatch(/canary|0198|127\.0\.0\.1/);
    expect(collector.requests[0]?.path).toBe('/v1/traces');
    const [line] = await app.requestLines(1);
    expect(line).toMatchObject({ traceId });
  });

  it('lead from a duration in the metrics to a trace, if it is recorded', async () => {
    await begin();
    const { app } = await appWithCall();
    const exemplars = async () => {
      const { text } = await exposeMetrics(app.metrics.registry, ['application/openmetrics-text']);
      return [...text.matchAll(/formgate_http_request_duration_seconds_bucket.* # \{trace_id="(\w+)"\}/g)].map(
        ([, id]) => id,
      );
    };
    await fetch(`${app.url}/forms/1`, { headers: { traceparent: unsampled } });
    await app.requestLines(1);
    expect(await exemplars()).toEqual([]);
    await fetch(`${app.url}/forms/1`, { headers: { traceparent: sampled } });
    await app.requestLines(2);
    expect(new Set(await exemplars())).toEqual(new Set([sampled.slice(3, 35)]));
  });

  it('mark failures with their kind', async () => {
    await begin();
    const { app } = await appWithCall();
    await fetch(`${app.url}/forms/broken`);
    await fetch(`${app.url}/forms/refused`);
    await collector.until((spans) => spans.length === 6);
    const of = (name: string) => collector.spans.filter((span) => span.name === name);
    expect(of('GET configuration')[0]).toMatchObject({ isError: true, attributes: { 'error.type': 'rejected' } });
    expect(of('GET /forms/:formId').map(({ attributes }) => attributes['error.type'])).toEqual(['502', '503']);
    expect(of('GET /forms/:formId').every(({ isError, parentId }) => isError && parentId === '')).toBe(true);
  });

  it('do not mix up concurrent requests', async () => {
    await begin();
    const { app } = await appWithCall();
    const ids = Array.from({ length: 20 }, (_, index) => index.toString(16).padStart(32, 'a'));
    const headersOf = (id: string) => ({ traceparent: `00-${id}-b7ad6b7169203331-01` });
    await Promise.all(ids.map((id) => fetch(`${app.url}/forms/1`, { headers: headersOf(id) })));
    await collector.until((spans) => spans.length === 60);
    for (const id of ids) {
      const own = collector.spans.filter(({ traceId }) => traceId === id);
      const spans = new Set(own.map(({ spanId }) => spanId));
      expect(own.map(({ name }) => name).sort()).toEqual([
        'GET /documents/:id',
        'GET /forms/:formId',
        'GET configuration',
      ]);
      expect(own.filter(({ parentId }) => spans.has(parentId))).toHaveLength(2);
    }
  });

  it('name statements by their kind, and never hold their text', async () => {
    await begin();
    const database = await createTestDatabase();
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    onTestFinished(async () => {
      await pool.end();
      await database.drop();
    });
    await pool.query('CREATE TABLE forms (name text UNIQUE)');
    tracePool(pool);
    await runIn(startRoot(work), async () => {
      await pool.query("SELECT 'canary'", []);
      await pool.query("WITH form AS (UPDATE forms SET name = 'canary') SELECT 1", []);
      await expect(
        withTransaction(pool, (client) => client.query("INSERT INTO forms VALUES ('canary'), ('canary')")),
      ).rejects.toThrow();
    });
    await pool.query('SELECT 1');
    await collector.until((spans) => spans.length >= 4);
    expect(collector.spans.map(({ name }) => name)).toEqual(['SELECT', 'UPDATE', 'transaction', 'work']);
    expect(collector.spans[1]?.attributes).toEqual({ 'db.system.name': 'postgresql', 'db.operation.name': 'UPDATE' });
    expect(collector.spans[2]).toMatchObject({ isError: true, attributes: { 'error.type': '23505' } });
    expect(collector.raw()).not.toContain('canary');
  });

  it('follow the client’s flag by default, and pass it on', async () => {
    await begin();
    const { app, seen } = await appWithCall();
    await fetch(`${app.url}/forms/1`, { headers: { traceparent: unsampled } });
    expect(seen[0]).toMatch(new RegExp(`^00-${unsampled.slice(3, 35)}-[\\da-f]{16}-00$`));
    await tracing?.close();
    expect(collector.spans).toEqual([]);
  });

  it.each([
    ['always_off', undefined, 0],
    ['parentbased_always_off', undefined, 0],
    ['traceidratio', '0', 0],
    ['parentbased_traceidratio', '1', 100],
    ['always_on', undefined, 100],
  ])('of %s with %s are %i of 100', async (sampler, share, expected) => {
    await begin({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: share });
    for (let count = 0; count < 100; count += 1) await runIn(startRoot(work), () => Promise.resolve());
    await tracing?.close();
    expect(collector.spans).toHaveLength(expected);
  });

  it('of a share are about that many, and later work follows the decision', async () => {
    await begin({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' });
    const stored: string[] = [];
    for (let count = 0; count < 500; count += 1)
      await runIn(startRoot(work), () =>
        traced({ name: 'write', kind: 'client' }, () => {
          const traceparent = storedTraceparent();
          if (traceparent !== undefined) stored.push(traceparent);
          return Promise.resolve();
        }),
      );
    expect(stored.length).toBeGreaterThan(20);
    expect(stored.length).toBeLessThan(90);
    for (const link of stored)
      await runIn(startRoot({ name: 'later', kind: 'consumer', link }), () => Promise.resolve());
    await tracing?.close();
    const later = collector.spans.filter(({ name }) => name === 'later');
    expect(later.map(({ links: [link] }) => `00-${link?.traceId}-${link?.spanId}-01`)).toEqual(stored);
    expect(later.every(({ traceId, links: [link], parentId }) => parentId === '' && traceId !== link?.traceId)).toBe(
      true,
    );
  });

  it('name the process, and send the headers of the collector', async () => {
    await begin({
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20secret,x-scope=a%2Cb',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=other',
      OTEL_SERVICE_NAME: 'forms-of-a-town',
    });
    await runIn(startRoot(work), () => Promise.resolve());
    const [span] = await collector.until((spans) => spans.length === 1);
    expect(span?.service).toBe('forms-of-a-town');
    expect(span?.resource).toMatchObject({ 'deployment.environment.name': 'test' });
    expect(collector.requests[0]?.headers).toMatchObject({ authorization: 'Bearer secret', 'x-scope': 'a,b' });
  });
});

describe('a collector that fails', () => {
  const exporting = async (count: number) => {
    for (let index = 0; index < count; index += 1) await runIn(startRoot(work), () => Promise.resolve());
  };

  it('is logged once, counted, and logged when it is back', async () => {
    const captured = captureLog();
    collector.status = 500;
    const running = await begin({ OTEL_EXPORTER_OTLP_HEADERS: 'authorization=canary' }, captured);
    const metrics = createMetrics();
    for (let count = 1; count <= 3; count += 1) {
      await exporting(1);
      await expect.poll(running.failures).toBe(count);
    }
    expect(await metrics.registry.getSingleMetricAsString('formgate_trace_export_failures_total')).toMatch(/_total 3$/);
    collector.status = 200;
    await exporting(1);
    await collector.until((spans) => spans.length === 1);
    await expect.poll(() => captured.lines().length).toBe(2);
    expect(captured.lines()).toMatchObject([
      { level: 'warn', msg: 'trace export failed', reason: 500 },
      { level: 'info', msg: 'trace exports work again' },
    ]);
    expect(captured.text()).not.toContain('canary');
  });

  it('neither fails requests nor keeps the process from ending if it cannot be reached', async () => {
    const captured = captureLog();
    await collector.close();
    const running = await begin({ OTEL_EXPORTER_OTLP_TIMEOUT: '300' }, captured);
    await exporting(5_000);
    await expect.poll(running.failures).toBeGreaterThan(0);
    expect(captured.lines()[0]).toMatchObject({ msg: 'trace export failed', reason: 'ECONNREFUSED' });
    const stopwatch = startStopwatch();
    await running.close();
    expect(stopwatch.stop()).toBeLessThan(2_500);
    collector = await openCollector();
  });

  it('does not keep the process from ending if it never responds', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket));
    onTestFinished(() => {
      silent.close();
      for (const socket of sockets) socket.destroy();
    });
    const running = await begin({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await listenOnLoopback(silent)}` });
    await exporting(3_000);
    const stopwatch = startStopwatch();
    await running.close();
    expect(stopwatch.stop()).toBeLessThan(2_500);
  });
});

describe('without a collector', () => {
  it('there are no spans', async () => {
    expect(await startTracing('test', parseConfig(z.object(tracingFields), {}), log.log)).toBeUndefined();
    expect(startRoot(work)).toBeUndefined();
    const { app, seen } = await appWithCall();
    await fetch(`${app.url}/forms/1`, { headers: { traceparent: sampled } });
    expect(seen).toEqual([sampled]);
    expect(await createMetrics().registry.metrics()).toContain('formgate_trace_export_failures_total 0');
  });
});
