// Generates load with wrk, and returns its results.
import { run } from './commands.ts';

interface LoadOptions {
  url: string;
  /** The Host header. The host name is not in the DNS. */
  host: string;
  headers?: Record<string, string>;
  seconds: number;
}

interface LoadResult {
  requests: number;
  /** Number of responses other than 2xx and 3xx. */
  refused: number;
  /** Number of broken connections, and of requests without a response. */
  broken: number;
}

/** Generates load over few connections, because wrk and the cluster share one machine. */
async function load({ url, host, headers = {}, seconds }: LoadOptions): Promise<LoadResult> {
  const sent = Object.entries({ Host: host, ...headers }).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const args = ['-t1', '-c6', `-d${seconds}s`, '--timeout', '20s', ...sent, url];
  return parseResult(await run('wrk', args, { timeout: (seconds + 60) * 1_000 }));
}

/** Generates load in periods of ten seconds until `isOver` returns true. Returns the sum of the periods' results. */
export async function loadUntil(isOver: () => boolean, options: Omit<LoadOptions, 'seconds'>): Promise<LoadResult> {
  const sum: LoadResult = { requests: 0, refused: 0, broken: 0 };
  do {
    const { requests, refused, broken } = await load({ ...options, seconds: 10 });
    sum.requests += requests;
    sum.refused += refused;
    sum.broken += broken;
  } while (!isOver());
  return sum;
}

function parseResult(said: string): LoadResult {
  const number = (pattern: RegExp) => Number(pattern.exec(said)?.[1] ?? 0);
  const [, ...errors] = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(said) ?? [];
  return {
    requests: number(/(\d+) requests in/),
    refused: number(/Non-2xx or 3xx responses: (\d+)/),
    broken: errors.reduce((sum, count) => sum + Number(count), 0),
  };
}
