// The outbox dispatcher, which runs in every pod of the form service. It delivers outbox rows to the platform at least
// once, and in order per form. Each service has a separate queue, so that an outage of one service does not stop the
// others. All queues share one throttle. A row is retried until its service accepts it, or until repeated refusals
// quarantine it.
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';
import { deliveryServices } from './claim-statements.ts';
import type { Deliver } from './delivery.ts';
import { createFailureLog } from './failure-log.ts';
import type { OutboxMetrics } from './metrics.ts';
import { createQueue, type Queue, type QueuePace } from './queue.ts';
import type { DispatchedStore } from './store.ts';
import { createThrottle, type DeliveryRates, type Traffic, watchTraffic } from './throttle.ts';

/** `nudge` and `stop` apply to the queues of all services. */
export type Dispatcher = Queue;

export interface DispatcherOptions {
  store: DispatchedStore;
  deliver: Deliver;
  metrics: OutboxMetrics;
  clock: Clock;
  log: Logger;
  /** Milliseconds after which a call of a platform client fails (PLATFORM_TIMEOUT). */
  callTimeout: number;
  /** The HTTP traffic that slows down deliveries. Defaults to the requests that this process serves. */
  traffic?: Traffic | undefined;
  pace?: Partial<DispatcherPace> | undefined;
}

export interface DispatcherPace extends QueuePace {
  /** Maximum numbers of deliveries that start per second, for all services together. */
  rates: DeliveryRates;
}

// After an outage ends, deliveries resume at the latest after the sum of the caps of `outage` and `retry.service`.
const defaultPace = {
  capacity: 64,
  ahead: 64,
  rates: { idle: 5_000, serving: 150 },
  poll: { min: 50, max: 1_000 },
  retry: { service: { first: 1_000, cap: 30_000 }, row: { first: 5_000, cap: 300_000 } },
  outage: { first: 1_000, cap: 30_000 },
  // A row is quarantined after this number of refusals. With the backoff of `retry.row`, ten refusals take about 15
  // minutes.
  refusals: 10,
};

export function startDispatcher(options: DispatcherOptions): Dispatcher {
  const { callTimeout, traffic = watchTraffic() } = options;
  // The delivery of an event makes at most two calls: one for the definition and one for the event. The removal of a
  // subscriber makes four. Removals of duplicate subscribers make more. A removal of files makes two calls for each
  // file, and ends after the first file that exceeds the time of one call.
  const limits = { deadline: callTimeout * 3, lease: callTimeout * 6 };
  const pace: DispatcherPace = { ...defaultPace, ...limits, ...options.pace };
  const throttle = createThrottle({ rates: pace.rates, traffic });
  const failures = createFailureLog(options);
  const queues: Queue[] = [];
  const nudge = () => {
    for (const queue of queues) queue.nudge();
  };
  for (const service of deliveryServices) {
    // The events of a form wait for its `subscribe` row. When the notification service accepts a row, all queues are
    // nudged, because rows of the other queues may have become due.
    const onAccepted = service === 'notifications' ? nudge : undefined;
    queues.push(createQueue({ ...options, service, pace, throttle, failures, onAccepted }));
  }
  return {
    nudge,
    async stop() {
      await Promise.all(queues.map((queue) => queue.stop()));
      traffic.close();
    },
  };
}
