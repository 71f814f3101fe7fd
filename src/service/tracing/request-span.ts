// Names and attributes of the spans of HTTP requests, according to the semantic conventions of OpenTelemetry. Spans
// omit two attributes of these conventions: the path, because it contains ids, and the client's address (decision
// 0064).
import type { Attributes, SpanEnd, SpanOptions } from './span.ts';

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE']);

/** Replaces unknown methods, because clients can invent any number of them. */
const methodOf = (method: string | undefined) => (methods.has(method ?? '') ? (method as string) : '_OTHER');

/** Returns the facts to add when the span of a served request ends. `route` is a pattern. */
export function requestEnd(request: { method?: string | undefined }, status: number, route: string): SpanEnd {
  const method = methodOf(request.method);
  const attributes: Attributes = { 'http.request.method': method, 'http.response.status_code': status };
  if (route !== 'unmatched') attributes['http.route'] = route;
  return {
    name: route === 'unmatched' ? method : `${method} ${route}`,
    attributes,
    error: status >= 500 ? String(status) : undefined,
  };
}

/**
 * The span of a call that this process makes. `service` is the name of a dependency, such as `configuration` or
 * `upstream`.
 */
export function callSpan(service: string, method: string, operation?: string): SpanOptions {
  return {
    name: `${methodOf(method)} ${service}`,
    kind: 'client',
    attributes: {
      'http.request.method': methodOf(method),
      'service.peer.name': service,
      ...(operation !== undefined && { 'formgate.operation': operation }),
    },
  };
}

/** Returns the facts to add when the span of a call ends with a response. */
export function responseEnd(status: number): SpanEnd {
  return {
    attributes: { 'http.response.status_code': status },
    error: status >= 400 ? String(status) : undefined,
  };
}
