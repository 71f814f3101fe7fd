// Traffic that never stops during a rollout: each step of a form and each call of a session goes to the next pod. A
// failed request is recorded, and fails the test.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { call } from '../support/platform.ts';
import { createTokens, definition, signIn, type Who } from './people.ts';
import type { Product } from './products.ts';
import { site, type World } from './world.ts';

/** The pods that a Service sends requests to, because they are ready and not stopping. */
export interface Pods {
  forms: Product[];
  handlers: Product[];
}

export interface Traffic {
  requests: number;
  failures: string[];
  /** Ids of submitted forms. */
  submitted: string[];
  /** Number of sessions that were revoked at one pod and then refused by another pod. */
  revoked: number;
  stop(): Promise<void>;
}

export async function startTraffic(world: World, pods: Pods): Promise<Traffic> {
  const tokens = await createTokens(world);
  const state = { requests: 0, failures: [] as string[], submitted: [] as string[], revoked: 0 };
  let isOver = false;
  let turn = 0;
  const next = (from: Product[]): Product => {
    turn += 1;
    return from[turn % from.length] as Product;
  };

  async function expectStatus(what: string, wanted: number[], answering: Promise<{ status: number; text: string }>) {
    state.requests += 1;
    const { status, text } = await answering.catch((error: unknown) => ({ status: 0, text: String(error) }));
    if (!wanted.includes(status)) state.failures.push(`${what}: ${status} ${text.slice(0, 300)}`);
    return { status, text };
  }

  const ask = async (
    what: string,
    path: string,
    as: Who,
    { method = 'POST', body, headers = {} }: Asked,
    wanted: number[],
  ) => {
    const { url, version } = next(pods.forms);
    const called = call(`${url}/form/v1/forms${path}`, { method, token: tokens[as], body, headers });
    return expectStatus(`${what} (${version})`, wanted, called);
  };

  async function fillForm(): Promise<void> {
    const applicant = { channels: [{ channel: 'email', address: `${randomUUID()}@example.org` }] };
    const creation = { body: { definitionId: definition.id, applicant }, headers: { 'Idempotency-Key': randomUUID() } };
    const { text } = await ask('create', '', 'intake', creation, [201]);
    const { id } = JSON.parse(text) as { id?: string };
    if (id === undefined) return;
    const again = await ask('repeat the create', '', 'intake', creation, [201]);
    if (!again.text.includes(id)) state.failures.push(`the repeated create made another form: ${again.text}`);
    for (let nth = 0; nth < 3; nth += 1) {
      const name = `Kim ${nth}`;
      await ask('save', `/${id}/data`, 'intake', { method: 'PUT', body: { data: { name }, files: {} } }, [200]);
      const read = await ask('read', `/${id}/data`, 'admin', { method: 'GET' }, [200]);
      if (!read.text.includes(`"${name}"`)) state.failures.push(`a read misses the save before it: ${read.text}`);
    }
    await ask('submit', `/${id}`, 'intake', { body: { operation: 'submit' } }, [200]);
    state.submitted.push(id);
    await ask('list', '?top=5', 'admin', { method: 'GET' }, [200]);
  }

  async function useSession(): Promise<void> {
    const { url } = next(pods.handlers);
    const { browser, csrf } = await signIn(world, url);
    const cookies = browser.cookies(url).map(({ name, value }) => `${name}=${value}`);
    const headers = { Cookie: cookies.join('; '), 'X-XSRF-TOKEN': csrf, Origin: site };
    const visit = (what: string, path: string, wanted: number[], method = 'GET') => {
      const { url, version } = next(pods.handlers);
      return expectStatus(`${what} (${version})`, wanted, call(`${url}/token-handler${path}`, { method, headers }));
    };
    const own = await visit('the list of sessions', '/sessions', [200]);
    const [{ id } = { id: '' }] = JSON.parse(own.text) as { id: string }[];
    // The calls take longer than the lifetime of an access token in this test, so that both versions refresh tokens.
    for (let nth = 0; nth < 12 && !isOver; nth += 1) {
      await visit('a target', `/targets/api/${nth}`, [200], 'POST');
      await sleep(500);
    }
    await visit('a revocation', `/sessions/${id}`, [200], 'DELETE');
    for (const deadline = Date.now() + 5_000; ; await sleep(50)) {
      const seen = await Promise.all(
        pods.handlers.map(({ url }) => call(`${url}/token-handler/targets/api/after`, { method: 'POST', headers })),
      );
      if (seen.every(({ status }) => status === 401)) break;
      if (Date.now() > deadline) return void state.failures.push('a revoked session lives on at another pod');
    }
    state.revoked += 1;
  }

  const loop = async (work: () => Promise<void>) => {
    while (!isOver) await work().catch((error: unknown) => state.failures.push(String(error)));
  };
  const loops = [loop(fillForm), loop(fillForm), loop(useSession), loop(useSession)];
  return Object.assign(state, {
    async stop() {
      isOver = true;
      await Promise.all(loops);
    },
  });
}

interface Asked {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
}
