// Creates the spans of calls to an identity provider. The calls carry neither `traceparent` nor `X-Request-Id`: an
// identity provider may belong to another organisation, and its response may be cached for many requests (decision
// 0075).
import { callSpan } from './request-span.ts';
import { currentSpan, traced } from './tracing.ts';

export type ProviderOperation = 'discovery' | 'keys' | 'token' | 'registration' | 'check client';

/** Runs a call in a span, which holds the method, the operation and the status, but no URL, parameter or body. */
export function tracedProviderCall<R extends { status: number }>(
  method: string,
  operation: ProviderOperation,
  call: () => Promise<R>,
): Promise<R> {
  return traced(callSpan('identity-provider', method, operation), async () => {
    const response = await call();
    currentSpan()?.set({ 'http.response.status_code': response.status });
    return response;
  });
}
