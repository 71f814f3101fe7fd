// The jobs of the platform server, and the cleanup that runs every minute.
import type { TaskList } from 'graphile-worker';
import type { Clock } from '../service/clock.ts';
import { runIn, startRoot } from '../service/tracing/tracing.ts';
import type { EventStore } from './events/store.ts';
import { deliverPayload, routeEventPayload } from './job-payload.ts';
import type { DeliveryStore } from './notifications/deliveries-store.ts';
import type { DeliveryJobs } from './notifications/delivery.ts';
import type { JobQuarantine } from './notifications/job-quarantine.ts';

const day = 86_400_000;
/** Milliseconds for which idempotency keys of events are kept. */
const keyMemory = 30 * day;
const settledEventMemory = 60_000;

export interface PlatformJobs {
  tasks: TaskList;
  upkeep(): Promise<void>;
}

export function createPlatformJobs(options: {
  jobs: DeliveryJobs;
  quarantine: JobQuarantine;
  events: Pick<EventStore, 'forgetKeys'>;
  deliveries: Pick<DeliveryStore, 'forgetEvents'>;
  clock: Clock;
}): PlatformJobs {
  const { jobs, quarantine, events, deliveries, clock } = options;
  return {
    tasks: {
      'route-event': (payload, { job }) => {
        const { event, traceparent } = routeEventPayload.parse(payload);
        return inTrace('route-event', traceparent, () =>
          quarantine.event(event, job.attempts, () => jobs.routeEvent(event)),
        );
      },
      deliver: (payload) => {
        const { traceparent, ...delivery } = deliverPayload.parse(payload);
        return inTrace('deliver', traceparent, () => quarantine.delivery(delivery, () => jobs.deliver(delivery)));
      },
    },
    async upkeep() {
      const now = clock().getTime();
      await events.forgetKeys(new Date(now - keyMemory));
      await deliveries.forgetEvents(new Date(now - settledEventMemory));
      await quarantine.upkeep();
    },
  };
}

/**
 * Runs a job as part of the trace of the request that caused it. If that request was not traced, the job has no span.
 */
function inTrace(job: string, parent: string | undefined, work: () => Promise<void>): Promise<void> {
  return parent === undefined ? work() : runIn(startRoot({ name: `job ${job}`, kind: 'consumer', parent }), work);
}
