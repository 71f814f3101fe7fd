// The jobs of the platform server, and its minutely cleanup.
import type { TaskList } from 'graphile-worker';
import { z } from 'zod';
import type { Clock } from '../service/clock.ts';
import type { EventStore } from './events/store.ts';
import type { DeliveryStore } from './notifications/deliveries-store.ts';
import type { DeliveryJobs } from './notifications/delivery.ts';
import type { JobQuarantine } from './notifications/job-quarantine.ts';

const day = 86_400_000;
/** Milliseconds for which a repeated event is recognised. */
const keyMemory = 30 * day;
const settledEventMemory = 60_000;

const routeEventPayload = z.object({ event: z.string() });
const deliverPayload = z.object({ event: z.string(), typeId: z.string(), subscriberId: z.string() });

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
        const { event } = routeEventPayload.parse(payload);
        return quarantine.event(event, job.attempts, () => jobs.routeEvent(event));
      },
      deliver: (payload) => {
        const delivery = deliverPayload.parse(payload);
        return quarantine.delivery(delivery, () => jobs.deliver(delivery));
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
