// Load by wrk, and what it found.
import { run } from './commands.ts';

export interface LoadOptions {
  url: string;
  /** Sent in place of the URL's own host, which no DNS knows. */
  host: string;
  headers?: Record<string, string>;
  seconds: number;
}

export interface LoadResult {
  requests: number;
  /** Answers other than 2xx and 3xx. */
  refused: number;
  /** Connections that broke, and requests that nobody answered. */
  broken: number;
}

/** Few connections, as the machine does everything else as well. */
export async function load({ url, host, headers = {}, seconds }: LoadOptions): Promise<LoadResult> {
  const sent = Object.entries({ Host: host, ...headers }).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const args = ['-t1', '-c6', `-d${seconds}s`, '--timeout', '20s', ...sent, url];
  return parseResult(await run('wrk', args, { timeout: (seconds + 60) * 1_000 }));
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
