// Handles events one at a time, as the reference implementation does. For a tenant without `fromEmail`, each event
// takes about eleven seconds.
import { setTimeout as sleep } from 'node:timers/promises';
import { createEventStore } from '../events/store.ts';
import type { DeliveryJobs, DeliveryOptions } from '../notifications/delivery.ts';

/**
 * Returns `jobs` with a delay for each event of a tenant without `fromEmail`. `eventTime` is the delay in milliseconds.
 * The worker must run only one job at a time.
 */
export function createOneByOneJobs(options: DeliveryOptions, jobs: DeliveryJobs, eventTime: number): DeliveryJobs {
  return {
    ...jobs,
    async routeEvent(sequence) {
      const event = await createEventStore(options.pool).findHead(sequence);
      if (event && (await options.senderOf(event.tenant)) === undefined)
        await sleep(eventTime, undefined, { ref: false });
      return jobs.routeEvent(sequence);
    },
  };
}
