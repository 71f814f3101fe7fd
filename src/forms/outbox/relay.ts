// The relay: in every pod of the form service it brings the outbox to the platform, at least once, in order per form. It
// is woken by a look at the table in short intervals, and at once after a write of its own process. A row leaves only by
// being accepted; one that its service keeps refusing is quarantined, so that the later rows of its form go on.
import { performance } from 'node:perf_hooks';
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Deliver } from './delivery.ts';
import { createFailureReport } from './failure.ts';
import { createGate } from './gate.ts';
import { type Lane, type LaneName, type LanePace, lanes, startLane } from './lane.ts';
import type { OutboxMetrics } from './metrics.ts';
import type { OutboxStore } from './store.ts';
import { createThrottle } from './throttle.ts';
import { createTraffic, type Traffic } from './traffic.ts';

export interface Relay {
  /** Looks at the outbox at once; call it after a commit that wrote to it. */
  nudge(): void;
  /** Claims no more, and resolves when what is under way is recorded. */
  stop(): Promise<void>;
}

export interface RelayOptions {
  store: OutboxStore;
  deliver: Deliver;
  metrics: OutboxMetrics;
  clock: Clock;
  log: Logger;
  /** Milliseconds in which a call of the platform's clients ends (PLATFORM_TIMEOUT). */
  callTimeout: number;
  /** Whom to step back for; the requests of this process unless told. */
  traffic?: Traffic | undefined;
  pace?: Partial<RelayPace> | undefined;
}

export interface RelayPace extends LanePace {
  /** Milliseconds between probes while a service is down. */
  outage: { first: number; cap: number };
  /** Deliveries that start in a second, at most, of all lanes together. */
  rate: number;
}

/**
 * Of the rate, while requests come, and deliveries that start at once: nobody waits behind the relay. What a busy moment
 * held up is not made good then, so where processes wait for a CPU the relay steps back still further.
 */
const serving = { share: 1 / 10, burst: 4 };
/** Deliveries that start at once after a pause, where there are no requests. */
const idleBurst = 150;

// The lag after an outage is at most the two caps of `outage` and `retry.service`.
const defaultPace = {
  capacity: 64,
  ahead: 64,
  rate: 1_500,
  poll: { min: 50, max: 1_000 },
  retry: { service: { first: 1_000, cap: 30_000 }, row: { first: 5_000, cap: 300_000 } },
  outage: { first: 1_000, cap: 30_000 },
  // With the waits of `retry.row`, a quarter of an hour.
  refusals: 10,
};

export function startRelay(options: RelayOptions): Relay {
  const { clock, log } = options;
  // A delivery makes two calls at most (a definition, the event), but for files.
  const limits = { deadline: options.callTimeout * 3, lease: options.callTimeout * 6 };
  const pace: RelayPace = { ...defaultPace, ...limits, ...options.pace };
  const report = createFailureReport({ log, clock });
  const now = () => performance.now();
  const { traffic = createTraffic({ now }) } = options;
  const idle = { rate: pace.rate, burst: idleBurst };
  const polite = { rate: pace.rate * serving.share, burst: serving.burst };
  const throttle = createThrottle({ allowance: () => (traffic.isServing() ? polite : idle), now });
  const running: Lane[] = [];
  const nudge = () => {
    for (const lane of running) lane.nudge();
  };
  const start = (name: LaneName) =>
    startLane({
      ...options,
      name,
      pace,
      report,
      throttle,
      gate: createGate({ clock, backoff: pace.outage }),
      // Events of a form wait for its subscriber; nothing in another lane falls due at once when an event is accepted.
      onAccepted: name === 'notifications' ? nudge : () => undefined,
    });
  running.push(...lanes.map(start));
  return {
    nudge,
    async stop() {
      await Promise.all(running.map((lane) => lane.stop()));
      traffic.close();
    },
  };
}
