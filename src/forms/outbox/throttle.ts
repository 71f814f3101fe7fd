// Limits the number of deliveries that start per second, so that they do not delay the requests of the same process.
// While the process serves requests, the limit is lower. Unused capacity accumulates only up to a small burst.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { performance } from 'node:perf_hooks';

export interface Throttle {
  /** Returns true and counts a delivery if it may start now. */
  take(): boolean;
  /** Returns the milliseconds until a delivery may start. */
  waitMs(): number;
}

/** Maximum numbers of deliveries that start per second. */
export interface DeliveryRates {
  idle: number;
  /** The rate while the process serves requests. */
  serving: number;
}

export interface ThrottleOptions {
  rates: DeliveryRates;
  traffic: Pick<Traffic, 'isServing'>;
  /** Returns the current time in milliseconds. */
  now?: () => number;
}

/** Number of deliveries that may start together after a pause. */
const bursts: DeliveryRates = { idle: 150, serving: 4 };

export function createThrottle({ rates, traffic, now = () => performance.now() }: ThrottleOptions): Throttle {
  let left = bursts.idle;
  let at = now();
  /** Adds the deliveries that are allowed for the time since the last call. Returns the current rate per second. */
  const refill = (): number => {
    const state = traffic.isServing() ? 'serving' : 'idle';
    const allowed = rates[state];
    const time = now();
    left = Math.min(bursts[state], left + ((time - at) * allowed) / 1_000);
    at = time;
    return allowed;
  };
  return {
    take() {
      refill();
      if (left < 1) return false;
      left -= 1;
      return true;
    },
    waitMs() {
      const allowed = refill();
      return Math.max(((1 - left) * 1_000) / allowed, 0);
    },
  };
}

/** Observes whether this process serves requests, by counting the requests of Node's HTTP servers. */
export interface Traffic {
  /** True if more requests came in during the last second than health probes and metrics scrapes send. */
  isServing(): boolean;
  close(): void;
}

const channel = 'http.server.request.start';
const probesPerSecond = 4;

export function watchTraffic(now = () => performance.now()): Traffic {
  // A ring buffer with the times of the last few requests. The oldest time is at the index `next`.
  const times = Array.from({ length: probesPerSecond + 1 }, () => Number.NEGATIVE_INFINITY);
  let next = 0;
  const count = () => {
    times[next] = now();
    next = (next + 1) % times.length;
  };
  subscribe(channel, count);
  return {
    isServing: () => now() - (times[next] ?? 0) < 1_000,
    close: () => void unsubscribe(channel, count),
  };
}
