// Puts a contender under load over HTTP.
import autocannon, { type Options } from 'autocannon';

export interface Load {
  url: string;
  requests: { method: 'PUT' | 'GET'; path: string; headers: Record<string, string>; body?: string }[];
  connections: number;
  seconds: number;
  /** Number of requests to send, regardless of `seconds`. */
  amount?: number;
}

export interface LoadResult {
  requests: number;
  perSecond: number;
  /** Percentiles of the latency, in milliseconds. */
  p50: number;
  p99: number;
}

/** Throws if a response is not 2xx, because a bench of rejected requests is meaningless. */
export async function load({ url, requests, connections, seconds, amount }: Load): Promise<LoadResult> {
  const options: Options = {
    url,
    connections,
    duration: seconds,
    requests,
    ...(amount !== undefined && { amount }),
  };
  const result = await autocannon(options);
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${result.non2xx} rejected requests, ${result.errors} errors`);
  const succeeded = result['2xx'];
  return {
    requests: succeeded,
    perSecond: succeeded / result.duration,
    p50: result.latency.p50,
    p99: result.latency.p99,
  };
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
