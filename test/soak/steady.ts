// A steady load in addition to the honest users: it alternates between saves of drafts and proxied requests, at a rate
// that does not depend on the response times.
import { setTimeout as delay } from 'node:timers/promises';
import type { Recorder } from '../adversary/honest/recorder.ts';
import { createSender } from '../adversary/honest/requests.ts';
import { definitionId } from '../adversary/world/preparation.ts';
import { type Person, signIn } from '../adversary/world/sign-in.ts';
import type { World } from '../adversary/world/world.ts';

/** Sends one request, and records it. Rejects if the request fails. */
export type SendOne = (index: number) => Promise<unknown>;

const drafts = 100;
const sessionsOfPerson = 4;
/**
 * Maximum number of requests in flight. Without this limit, the requests that wait during a fault would become a flood
 * when the fault ends.
 */
const mostOpen = 100;

export async function prepareSteadyLoad(world: World, recorder: Recorder): Promise<SendOne> {
  const { fronts, tokens } = world.addresses;
  const intake = createSender({ authorization: `Bearer ${tokens.intake}`, 'x-forwarded-for': '10.7.0.1' });
  const base = `${fronts.forms}/form/v1/forms`;
  const ids: string[] = [];
  for (let index = 0; index < drafts; index += 1) {
    const applicant = { channels: [{ channel: 'email', address: `steady-${index}@example.org` }] };
    const { json } = await intake.send(base, { method: 'POST', body: { definitionId, applicant }, expect: 201 });
    ids.push((json as { id: string }).id);
  }
  const people: Person[] = [];
  // Not erin: the canaries sign her in again and again, and a sign-in beyond 100 sessions ends her oldest session.
  for (const name of ['bob', 'carol', 'frank'])
    for (let session = 0; session < sessionsOfPerson; session += 1)
      people.push(await signIn(fronts['token-handler'], `${name}@example.com`));
  const browsers = people.map(({ cookie, csrf }, index) =>
    createSender({ cookie, 'x-xsrf-token': csrf, 'x-forwarded-for': `10.7.1.${index}` }),
  );
  const text = 'a canary and a word '.repeat(100);
  const save = (index: number) =>
    intake.send(`${base}/${ids[index % drafts]}/data`, {
      method: 'PUT',
      body: { data: { name: 'a canary', note: `${text}${index}` }, files: {} },
    });
  const get = (index: number) =>
    browsers[index % browsers.length]?.send(
      `${fronts['token-handler']}/token-handler/v1/targets/api/whoami?${index}`,
    ) ?? Promise.reject(new Error('nobody is signed in'));
  return (index) => {
    const turn = Math.floor(index / 2);
    return index % 2 === 0
      ? recorder.measure('save', () => save(turn))
      : recorder.measure('target GET', () => get(turn));
  };
}

/**
 * Returns the requests per second of `senders` concurrent loops. Each loop sends its next request when its previous
 * request has ended.
 */
export async function measureCapacity(send: SendOne, senders: number, milliseconds: number): Promise<number> {
  const end = performance.now() + milliseconds;
  let sent = 0;
  const keepSending = async () => {
    while (performance.now() < end) {
      sent += 1;
      await send(sent);
    }
  };
  await Promise.all(Array.from({ length: senders }, keepSending));
  return sent / (milliseconds / 1_000);
}

export interface SteadyLoad {
  sent: number;
  /** Number of requests that were not sent, because too many earlier requests had no response yet. */
  leftOut: number;
}

/** Sends `rate` requests per second until the signal is aborted. */
export async function keepSteady(send: SendOne, rate: number, signal: AbortSignal): Promise<SteadyLoad> {
  const open = new Set<Promise<unknown>>();
  const load = { sent: 0, leftOut: 0 };
  const started = performance.now();
  while (!signal.aborted) {
    const due = ((performance.now() - started) * rate) / 1_000;
    while (load.sent + load.leftOut < due) {
      if (open.size >= mostOpen) load.leftOut += 1;
      else {
        load.sent += 1;
        const sending: Promise<unknown> = send(load.sent)
          .catch(() => undefined)
          .finally(() => open.delete(sending));
        open.add(sending);
      }
    }
    await delay(5);
  }
  await Promise.all(open);
  return load;
}
