// Sends requests like a client that does not know whether a failed attempt had an effect: it repeats each request until
// the request succeeds.
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { jsonOrUndefined } from '../../../src/service/json-value.ts';

export interface Asked {
  method: string;
  url: string;
  headers: Record<string, string>;
  /** Sent as JSON. */
  body?: unknown;
}

export interface Outcome {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  json: unknown;
}

/** Milliseconds after which a client gives up waiting. */
const patience = 5_000;
const pause = 150;

/** Sends the request once. Returns undefined if there was no response in time, so that the outcome is unknown. */
export async function attempt({ method, url, headers, body }: Asked): Promise<Outcome | undefined> {
  try {
    const response = await request(url, {
      ...{ method, signal: AbortSignal.timeout(patience), reset: true },
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.body.text();
    return { status: response.statusCode, headers: response.headers, json: jsonOrUndefined(text) };
  } catch {
    return undefined;
  }
}

/** The statuses that tell a client to try again. */
const isTransient = (status: number) => status === 502 || status === 503 || status === 504;

/**
 * Repeats the request until its outcome is known. Returns undefined if the signal was aborted before that. Throws for a
 * status that is neither expected nor transient.
 */
export async function insist(asked: Asked, expected: number[], signal: AbortSignal): Promise<Outcome | undefined> {
  while (!signal.aborted) {
    const outcome = await attempt(asked);
    if (outcome && expected.includes(outcome.status)) return outcome;
    if (outcome && !isTransient(outcome.status)) {
      const { status, json } = outcome;
      const path = new URL(asked.url).pathname.replace(/[0-9a-f-]{36}/, ':id');
      throw new Error(`${asked.method} ${path} got ${status} ${JSON.stringify(json)?.slice(0, 200)}`);
    }
    await delay(pause);
  }
  return undefined;
}
