// Puts a contender under load over HTTP.
import autocannon, { type Options } from 'autocannon';

export interface Load {
  url: string;
  requests: { method: 'PUT' | 'GET'; path: string; headers: Record<string, string>; body?: string }[];
  connections: number;
  seconds: number;
  /** So many requests, however long they take. */
  amount?: number;
}

export interface LoadResult {
  requests: number;
  perSecond: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
}

/** Throws when any answer is not 2xx: a bench of refusals measures nothing. */
export async function load({ url, requests, connections, seconds, amount }: Load): Promise<LoadResult> {
  const options: Options = {
    url,
    connections,
    duration: seconds,
    requests,
    ...(amount !== undefined && { amount }),
  };
  const result = await autocannon(options);
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} refusals, ${result.errors} errors`);
  const answered = result['2xx'];
  return {
    requests: answered,
    perSecond: answered / result.duration,
    p50: result.latency.p50,
    p99: result.latency.p99,
  };
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
