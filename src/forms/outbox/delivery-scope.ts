// Connects the delivery of an outbox row with the request that wrote the row. The delivery has the request's id and a
// link to the request's span.
import { newTraceparent, runInScope } from '../../service/operations/request-scope.ts';
import { runIn, startRoot } from '../../service/tracing/tracing.ts';
import type { ClaimedRow } from './store.ts';

/** Runs `work` so that its calls and log lines have the id of the request that wrote the row. */
export function inRequestOf<T>({ requestId }: Pick<ClaimedRow, 'requestId'>, work: () => Promise<T>): Promise<T> {
  if (requestId === null) return work();
  return runInScope({ requestId, traceparent: newTraceparent(requestId) }, work);
}

/**
 * Runs `work` in a span with a link to the span of the request that wrote the row, if that request was traced. The span
 * is the root of a new trace, because a delivery may happen days after the request.
 */
export function inSpanOf<T>({ traceparent, kind }: ClaimedRow, work: () => Promise<T>): Promise<T> {
  if (traceparent === null) return work();
  return runIn(startRoot({ name: `deliver ${kind}`, kind: 'consumer', link: traceparent }), work);
}
