// The metrics of HTTP requests. The path is not a label, because it contains ids; the pattern of the route is.
import prom from 'prom-client';

/** One finished request. */
export interface FinishedRequest {
  method: string;
  /** The pattern of the route, or `unmatched`. */
  route: string;
  status: number;
  seconds: number;
  /** Id of the request's trace if the trace is recorded. It becomes the exemplar of the duration. */
  traceId?: string | undefined;
}

export interface HttpMetrics {
  record(request: FinishedRequest): void;
}

/** Every other method counts as `other`: Node.js knows 35 methods, and each would add series for each route. */
const countedMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

const statusClasses = ['1xx', '1xx', '2xx', '3xx', '4xx', '5xx'];

export function createHttpMetrics({ registry }: { registry: prom.Registry }): HttpMetrics {
  const requests = new prom.Counter({
    name: 'formgate_http_requests_total',
    help: 'Requests by method, route pattern and class of the status; a client that went away counts as 4xx',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  });
  // prom-client refuses exemplars in a registry of the plain text format, although it leaves them out there.
  const withExemplars = new prom.Registry<prom.OpenMetricsContentType>();
  withExemplars.setContentType(prom.openMetricsContentType);
  const duration = new prom.Histogram<string>({
    name: 'formgate_http_request_duration_seconds',
    help: 'Duration of requests by route pattern; of a response that may last for hours, the time until it begins',
    labelNames: ['route'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    enableExemplars: true,
    registers: [withExemplars],
  });
  registry.registerMetric(duration);
  return {
    record({ method, route, status, seconds, traceId }) {
      requests.inc({
        method: countedMethods.has(method) ? method : 'other',
        route,
        // An upstream may invent statuses above 599.
        status: statusClasses[Math.trunc(status / 100)] ?? '5xx',
      });
      const observed = { labels: { route }, value: seconds };
      duration.observe(traceId === undefined ? observed : { ...observed, exemplarLabels: { trace_id: traceId } });
    },
  };
}
