// Whether this process has requests to answer, so that the relay in it can step back for them. It learns of them from
// Node's HTTP server and looks at none of them.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';

export interface Traffic {
  /** Whether a request came within the last second. */
  isServing(): boolean;
  close(): void;
}

const channel = 'http.server.request.start';
/** Milliseconds. */
const lately = 1_000;

export function createTraffic({ now }: { now(): number }): Traffic {
  let last = Number.NEGATIVE_INFINITY;
  const see = () => {
    last = now();
  };
  subscribe(channel, see);
  return {
    isServing: () => now() - last < lately,
    close: () => void unsubscribe(channel, see),
  };
}
