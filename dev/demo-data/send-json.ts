// Sends a request that writes demo data. Repeats the request while the service is overloaded or a service behind it
// fails: all services of `npm start` start together, and on a slow machine their first responses may be late.
import { setTimeout as sleep } from 'node:timers/promises';
import { retryDelay } from '../../src/service/retry.ts';

export interface JsonRequest {
  method: string;
  url: string;
  token: string;
  /** The value that is sent as JSON. */
  body?: object | undefined;
}

const attempts = 6;
const repeatable = new Set([502, 503, 504]);

/**
 * Returns the status and the text of the response, after at most six attempts. The waits between them take at most 16 s
 * in all. The request must be one that may be repeated after it was carried out in part. Throws if no connection is
 * possible.
 */
export async function sendJson({ method, url, token, body }: JsonRequest): Promise<{ status: number; text: string }> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  for (let attempt = 1; ; attempt += 1) {
    const response = await fetch(url, init);
    const text = await response.text();
    if (!repeatable.has(response.status) || attempt === attempts) return { status: response.status, text };
    await sleep(retryDelay(attempt, { first: 500, cap: 8_000 }));
  }
}
