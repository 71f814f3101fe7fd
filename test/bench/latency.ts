// Measures latencies at a steady rate in short slices, and reports the median of the slices, so that a busy moment of
// the machine affects only a few slices.
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { type Load, median } from './load.ts';

export interface SteadyLoad {
  url: string;
  /** Requests to send, in rotation. */
  requests: Load['requests'];
  connections: number;
  /** Requests per second. */
  rate: number;
}

export interface SteadyContender {
  /** Sends requests for `milliseconds`, and returns the latency of each request in milliseconds. */
  slice(milliseconds: number): Promise<number[]>;
  close(): Promise<void>;
}

export function steadyLoad({ url, requests, connections, rate }: SteadyLoad): SteadyContender {
  const pool = new Pool(url, { connections, pipelining: 1 });
  async function one(index: number): Promise<number> {
    const request = requests[index % requests.length];
    if (!request) throw new Error('no request to send');
    const started = performance.now();
    const response = await pool.request(request);
    await response.body.dump();
    if (response.statusCode !== 200) throw new Error(`${url} returned ${response.statusCode}`);
    return performance.now() - started;
  }
  return {
    async slice(milliseconds) {
      const sent: Promise<number>[] = [];
      const started = performance.now();
      for (let passed = 0; passed < milliseconds; passed = performance.now() - started) {
        while (sent.length < (passed * rate) / 1_000) sent.push(one(sent.length));
        await delay(1);
      }
      return Promise.all(sent);
    },
    close: () => pool.close(),
  };
}

/** Returns the quantile of the values; `share` is from 0 to 1. */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}

interface Latency {
  p50: number;
  p99: number;
}

export interface SteadyLatency extends Latency {
  /** The values behind the medians, in the order of the rounds. */
  slices: Latency[];
}

/**
 * Returns the medians of each contender's slices. The contenders take turns, and the first slice of each is a warm-up.
 */
export async function compareSteady(
  contenders: SteadyContender[],
  { slices, milliseconds }: { slices: number; milliseconds: number },
): Promise<SteadyLatency[]> {
  const taken = contenders.map(() => [] as Latency[]);
  for (let slice = -1; slice < slices; slice += 1)
    for (const [index, contender] of contenders.entries()) {
      const values = await contender.slice(milliseconds);
      if (slice >= 0) taken[index]?.push({ p50: quantile(values, 0.5), p99: quantile(values, 0.99) });
    }
  return taken.map((list) => ({
    p50: median(list.map(({ p50 }) => p50)),
    p99: median(list.map(({ p99 }) => p99)),
    slices: list,
  }));
}
