// Tests both formats of /metrics, and that writing one format does not change the other.
import { expect, it } from 'vitest';
import { exposeMetrics } from './exposition.ts';
import { createMetrics } from './metrics.ts';

const openMetrics = ['application/openmetrics-text', 'text/plain'];

function recorded(traceId?: string) {
  const metrics = createMetrics('form-service');
  metrics.http.record({ method: 'GET', route: '/things/:id', status: 201, seconds: 0.003, traceId });
  return metrics.registry;
}

it('is plain text by default, with the version of the process', async () => {
  const { contentType, text } = await exposeMetrics(recorded('0af7651916cd43dd8448eb211c80319c'), ['*/*']);
  expect(contentType).toContain('text/plain; version=0.0.4');
  expect(text).toContain('# TYPE formgate_http_requests_total counter');
  expect(text).toContain('formgate_http_requests_total{method="GET",route="/things/:id",status="2xx"} 1');
  expect(text).toMatch(/^formgate_build_info\{service="form-service",version="\d+\.\d+\.\d+",node="\d+\.[\d.]+"\} 1$/m);
  expect(text).not.toContain('0af7651916cd43dd8448eb211c80319c');
});

it('is OpenMetrics with the trace of a request where that is preferred', async () => {
  const { contentType, text } = await exposeMetrics(recorded('0af7651916cd43dd8448eb211c80319c'), openMetrics);
  expect(contentType).toContain('application/openmetrics-text; version=1.0.0');
  expect(text).toContain('# TYPE formgate_http_requests counter');
  expect(text).toContain('formgate_http_requests_total{method="GET",route="/things/:id",status="2xx"} 1\n');
  const bucket = 'formgate_http_request_duration_seconds_bucket{le="0.005",route="/things/:id"} 1';
  expect(text).toContain(`${bucket} # {trace_id="0af7651916cd43dd8448eb211c80319c"} 0.003 `);
  expect(text.endsWith('# EOF\n')).toBe(true);
});

it('prefers what the client prefers', async () => {
  expect((await exposeMetrics(recorded(), ['text/plain', 'application/openmetrics-text'])).text).not.toContain('# EOF');
});

it('gives the same samples in plain text before and after OpenMetrics', async () => {
  const registry = recorded();
  const samples = async () => {
    const { text } = await exposeMetrics(registry, []);
    return text.split('\n').filter((line) => line.includes('formgate_'));
  };
  const before = await samples();
  await exposeMetrics(registry, openMetrics);
  expect(await samples()).toEqual(before);
});

it('counts unusual methods together, and statuses that HTTP does not define by class', async () => {
  const { http, registry } = createMetrics();
  for (const method of ['PROPFIND', 'MKCOL', 'TRACE'])
    http.record({ method, route: 'unmatched', status: 499, seconds: 0 });
  http.record({ method: 'GET', route: 'unmatched', status: 799, seconds: 0 });
  const { text } = await exposeMetrics(registry, []);
  expect(text.match(/^formgate_http_requests_total.*$/gm)).toEqual([
    'formgate_http_requests_total{method="other",route="unmatched",status="4xx"} 3',
    'formgate_http_requests_total{method="other",route="unmatched",status="5xx"} 0',
    'formgate_http_requests_total{method="GET",route="unmatched",status="5xx"} 1',
  ]);
});
