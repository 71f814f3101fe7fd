// Accepts events, and refuses those of a tenant that has too many waiting events and notices (decision 0092).
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { NewEvent } from './event.ts';
import type { EventStore } from './store.ts';

/**
 * Stores an event. Throws Problem `busy` if its tenant has too many waiting events and notices. An event with
 * `isReserved` may use a reserve, so that the backlog of a tenant does not stop what causes the event.
 */
export type AcceptEvent = (
  store: Pick<EventStore, 'accept'>,
  event: NewEvent,
  options?: { isReserved: boolean },
) => Promise<void>;

export function createAcceptance(options: { clock: Clock; metrics: Pick<Metrics, 'queueRefusals'> }): AcceptEvent {
  return async (store, event, { isReserved } = { isReserved: false }) => {
    if ((await store.accept(event, options.clock(), isReserved)) !== 'full') return;
    options.metrics.queueRefusals.inc({ queue: 'events', reason: 'full' });
    throw new Problem('busy', 'Too many events and notices of this tenant are waiting. Try again later.', {
      headers: { 'Retry-After': '60' },
    });
  };
}
