// The metrics of HTTP requests. They are labelled by the pattern of the route, not by the path, which contains ids.
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

/**
 * Methods that are counted separately. All other methods count as `other`: Node.js knows 35 methods, and each would add
 * series for each route.
 */
const countedMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/**
 * Returns the index of a status in `statusClasses`. A status above 599, which an upstream may invent, counts as 5xx.
 */
const classOf = (status: number) => Math.min(Math.max(Math.trunc(status / 100), 1), 5) - 1;

/**
 * Counts requests in plain numbers, because prom-client takes microseconds to find the labels of an increment. Each
 * counted route and method has a count of 5xx responses, even if the count is 0: `rate` and `increase` ignore the first
 * value of a series, so alerts would otherwise miss the first failures. Each pair thus has at most one extra series.
 */
function createTally() {
  const routes = new Map<string, Map<string, number[]>>();
  function addCounts(route: string, method: string): number[] {
    const methods = routes.get(route) ?? new Map<string, number[]>();
    const counts = statusClasses.map(() => 0);
    routes.set(route, methods.set(method, counts));
    return counts;
  }
  return {
    add(route: string, method: string, status: number): void {
      const counts = routes.get(route)?.get(method) ?? addCounts(route, method);
      const index = classOf(status);
      counts[index] = (counts[index] ?? 0) + 1;
    },
    forEach(found: (labels: Record<'method' | 'route' | 'status', string>, count: number) => void): void {
      for (const [route, methods] of routes)
        for (const [method, counts] of methods)
          for (const [index, status] of statusClasses.entries())
            if (counts[index] || status === '5xx') found({ method, route, status }, counts[index] ?? 0);
    },
  };
}

export function createHttpMetrics({ registry }: { registry: prom.Registry }): HttpMetrics {
  const tally = createTally();
  const requests = new prom.Counter({
    name: 'formgate_http_requests_total',
    help: 'Requests by method, route pattern and class of the status. A request whose client closed the connection counts as 4xx',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
    collect() {
      requests.reset();
      tally.forEach((labels, count) => void requests.inc(labels, count));
    },
  });
  // prom-client refuses exemplars in a registry of the plain text format, although that format could simply omit them.
  const withExemplars = new prom.Registry<prom.OpenMetricsContentType>();
  withExemplars.setContentType(prom.openMetricsContentType);
  const duration = new prom.Histogram<string>({
    name: 'formgate_http_request_duration_seconds',
    help: 'Duration of requests by route pattern. For responses that may last for hours, the time until the response begins',
    labelNames: ['route'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    enableExemplars: true,
    registers: [withExemplars],
  });
  registry.registerMetric(duration);
  return {
    record({ method, route, status, seconds, traceId }) {
      tally.add(route, countedMethods.has(method) ? method : 'other', status);
      const observed = { labels: { route }, value: seconds };
      duration.observe(traceId === undefined ? observed : { ...observed, exemplarLabels: { trace_id: traceId } });
    },
  };
}
