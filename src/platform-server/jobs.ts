// The jobs of the platform server, and the cleanup that runs every minute. A tenant may not occupy all job slots of a
// process: if it has its share, its next job is postponed, so that slow jobs of one tenant leave a slot for others.
import type { TaskList } from 'graphile-worker';
import type { Clock } from '../service/clock.ts';
import { FairQueue } from '../service/limits/fair-queue.ts';
import type { Logger } from '../service/operations/log.ts';
import { runIn, startRoot } from '../service/tracing/tracing.ts';
import type { EventStore } from './events/store.ts';
import { deliverPayload, routeEventPayload } from './job-payload.ts';
import type { DeliveryStore } from './notifications/deliveries-store.ts';
import type { DeliveryJobs } from './notifications/delivery.ts';
import type { JobQuarantine } from './notifications/job-quarantine.ts';

const hour = 3_600_000;
const day = 24 * hour;
/** Milliseconds for which idempotency keys of events are kept. */
const keyMemory = 30 * day;
const settledEventMemory = 60_000;

export interface PlatformJobs {
  tasks: TaskList;
  /**
   * Runs the cleanup. A step that fails is logged, and does not prevent the others. Stops early if `signal` is aborted.
   */
  upkeep(signal: AbortSignal): Promise<void>;
}

export function createPlatformJobs(options: {
  jobs: DeliveryJobs;
  quarantine: JobQuarantine;
  events: Pick<EventStore, 'forgetKeys' | 'forgetExcessKeys' | 'findHead' | 'postpone'>;
  deliveries: Pick<DeliveryStore, 'forgetEvents' | 'postpone'>;
  clock: Clock;
  log: Logger;
  /** Maximum number of jobs of one tenant that run at the same time. */
  perTenant: number;
}): PlatformJobs {
  const { jobs, quarantine, events, deliveries, clock, log } = options;
  const inShare = createShare(events, options.perTenant);
  let excessForgotten = Number.NEGATIVE_INFINITY;
  return {
    tasks: {
      'route-event': (payload, { job }) => {
        const { event, traceparent } = routeEventPayload.parse(payload);
        const postpone = () => events.postpone(event, job.attempts - 1);
        const routeOrPostpone = async () => {
          if (!(await jobs.routeEvent(event))) await postpone();
        };
        const run = () => quarantine.event(event, job.attempts, routeOrPostpone);
        return inTrace('route-event', traceparent, () => inShare(event, { run, postpone }));
      },
      deliver: (payload) => {
        const { traceparent, ...delivery } = deliverPayload.parse(payload);
        return inTrace('deliver', traceparent, () =>
          inShare(delivery.event, {
            run: () => quarantine.delivery(delivery, () => jobs.deliver(delivery)),
            postpone: () => deliveries.postpone(delivery),
          }),
        );
      },
    },
    async upkeep(signal) {
      const now = clock().getTime();
      const steps = {
        'event-keys': () => events.forgetKeys(new Date(now - keyMemory), signal),
        'excess-event-keys': async () => {
          if (now - excessForgotten < hour) return;
          await events.forgetExcessKeys(signal);
          excessForgotten = now;
        },
        events: () => deliveries.forgetEvents(new Date(now - settledEventMemory), signal),
        quarantine: () => quarantine.upkeep(),
      };
      for (const [step, run] of Object.entries(steps))
        await run().catch((error: unknown) => log.warn({ err: error, step }, 'job upkeep failed'));
    },
  };
}

interface SharedJob {
  run(): Promise<void>;
  postpone(): Promise<void>;
}

/**
 * Returns a function that runs a job about an event, or postpones the job if its tenant has its share of the slots. A
 * postponement does not count as a failure, because the pauses between the attempts must not grow.
 */
function createShare(events: Pick<EventStore, 'findHead'>, perTenant: number) {
  const slots = new FairQueue({
    slots: { total: Number.POSITIVE_INFINITY, perTenant, perMember: perTenant },
    waiting: { total: 0, perTenant: 0, perMember: 0 },
    ...{ waitMs: 0, detail: 'Too many jobs of this tenant are running.', retryAfterSeconds: 5 },
  });
  return async (sequence: string, job: SharedJob): Promise<void> => {
    const event = await events.findHead(sequence);
    // Deliveries are deleted with their event.
    if (!event) return;
    const release = slots.tryTake({ tenant: event.tenant, member: event.tenant });
    if (!release) return job.postpone();
    try {
      await job.run();
    } finally {
      release();
    }
  };
}

/**
 * Runs a job as part of the trace of the request that caused it. If that request was not traced, the job has no span.
 */
function inTrace(job: string, parent: string | undefined, work: () => Promise<void>): Promise<void> {
  return parent === undefined ? work() : runIn(startRoot({ name: `job ${job}`, kind: 'consumer', parent }), work);
}
