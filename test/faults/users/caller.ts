// A signed-in person who sends requests with an effect through the token handler, and does not repeat them.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Person } from '../../adversary/world/sign-in.ts';
import { attempt } from './persistence.ts';

export interface Call {
  id: string;
  /** Undefined if there was no response. */
  status: number | undefined;
}

export interface Caller {
  site: string;
  person: Person;
  signal: AbortSignal;
  calls: Call[];
}

export async function keepCalling({ site, person, signal, calls }: Caller): Promise<void> {
  while (!signal.aborted) {
    const id = randomUUID();
    const url = `${site}/token-handler/v1/targets/api/effects/${id}`;
    const headers = { cookie: person.cookie, 'x-xsrf-token': person.csrf, 'x-forwarded-for': '10.6.0.1' };
    const outcome = await attempt({ method: 'POST', url, headers, body: {} });
    calls.push({ id, status: outcome?.status });
    await delay(80);
  }
}
