// Whether this process has people to serve, so that the relay in it can step back for them. It learns of requests from
// Node's HTTP server and looks at none of them; the few that probes and metrics make are no sign of people.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';

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
  // When the last few came, the oldest at `next`.
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
