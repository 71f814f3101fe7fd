// The outbox dispatcher: every pod of the form service delivers the outbox to the platform, at least once and in order per
// form. It polls the table, and scans at once after a write of its own process. A row stays until it is accepted; a row that
// its service keeps refusing is quarantined, so that later rows of its form are delivered.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
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

export interface Relay {
  /** Scans the outbox at once. Call it after a commit that wrote to the outbox. */
  nudge(): void;
  /** Stops claiming, and resolves when running deliveries are recorded. */
  stop(): Promise<void>;
}

export interface RelayOptions {
  store: OutboxStore;
  deliver: Deliver;
  metrics: OutboxMetrics;
  clock: Clock;
  log: Logger;
  /** Milliseconds after which a call of the platform's clients fails (PLATFORM_TIMEOUT). */
  callTimeout: number;
  /** The traffic that deliveries yield to; by default the requests of this process. */
  traffic?: Traffic | undefined;
  pace?: Partial<RelayPace> | undefined;
}

export interface RelayPace extends LanePace {
  /** Milliseconds between probes while a service is down. */
  outage: { first: number; cap: number };
  /** Maximum number of deliveries that start per second, in all lanes together. */
  rate: number;
}

/**
 * The share of the rate, and the burst, while requests come, so that deliveries do not delay them. Unused rate is not made up
 * for, so deliveries yield even more when processes wait for a CPU.
 */
const serving = { share: 1 / 10, burst: 4 };
/** Deliveries that may start at once after a pause, without requests. */
const idleBurst = 150;

// The lag after an outage is at most the sum of the caps of `outage` and `retry.service`.
const defaultPace = {
  capacity: 64,
  ahead: 64,
  rate: 1_500,
  poll: { min: 50, max: 1_000 },
  retry: { service: { first: 1_000, cap: 30_000 }, row: { first: 5_000, cap: 300_000 } },
  outage: { first: 1_000, cap: 30_000 },
  // With the backoff of `retry.row`, a quarter of an hour.
  refusals: 10,
};

export function startRelay(options: RelayOptions): Relay {
  const { clock, log } = options;
  // A delivery makes at most two calls (the definition, the event), except for files.
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
      // Events of a form wait for its subscriber. An accepted event makes nothing in another lane due at once.
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

/**
 * Whether this process serves requests, so that deliveries can yield to them. Counts the requests of Node's HTTP server; the
 * few of probes and metrics do not count.
 */
export interface Traffic {
  /** Whether more requests came within the last second than probes make. */
  isServing(): boolean;
  close(): void;
}

const channel = 'http.server.request.start';
/** Milliseconds. */
const lately = 1_000;
const ofProbes = 4;

export function createTraffic({ now }: { now(): number }): Traffic {
  // Times of the last few requests, the oldest at `next`.
  const times = Array.from({ length: ofProbes + 1 }, () => Number.NEGATIVE_INFINITY);
  let next = 0;
  const see = () => {
    times[next] = now();
    next = (next + 1) % times.length;
  };
  subscribe(channel, see);
  return {
    isServing: () => now() - (times[next] ?? 0) < lately,
    close: () => void unsubscribe(channel, see),
  };
}
