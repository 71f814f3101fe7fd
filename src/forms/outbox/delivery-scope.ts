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
 * Runs `work` as a span if the request that wrote the row was traced. The span begins a new trace, because a delivery
 * may take days. The span has a link to the request's span.
 */
export function inSpanOf<T>({ traceparent, kind }: ClaimedRow, work: () => Promise<T>): Promise<T> {
  if (traceparent === null) return work();
  return runIn(startRoot({ name: `deliver ${kind}`, kind: 'consumer', link: traceparent }), work);
}
