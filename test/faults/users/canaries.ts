// Canaries: requests that use every store and service. After a fault, each canary must succeed again.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { definitionId } from '../../adversary/world/preparation.ts';
import { signIn } from '../../adversary/world/sign-in.ts';
import type { World } from '../../adversary/world/world.ts';
import { createSiteBrowser } from '../../support/site-browser.ts';
import { attempt } from './persistence.ts';

export interface Canary {
  name: string;
  /** Sends the requests of the canary, and returns true if they succeeded. */
  run(): Promise<boolean>;
}

/**
 * Returns canaries for each replica of the form service and of the token handler, because each has its own circuit
 * breakers and connections. Sign-ins use the front, to which the identity provider redirects.
 */
export function createCanaries({ addresses, mailbox }: World): Canary[] {
  const { fronts, replicas } = addresses;
  const site = fronts['token-handler'];
  return [
    ...replicas.forms.flatMap(({ url }, index) => formCanaries(url, `forms-${index}`, { addresses, mailbox })),
    ...replicas['token-handler'].flatMap(({ url }, index) => sessionCanaries(url, `token-handler-${index}`, addresses)),
    {
      name: 'sign-in',
      run: () =>
        Promise.race([
          signIn(site, 'erin@example.com', 'demo', undefined, createSiteBrowser([], { keepsConnections: false })).then(
            () => true,
            () => false,
          ),
          delay(5_000, false, { ref: false }),
        ]),
    },
  ];
}

const get = (url: string, headers: Record<string, string>) => async () =>
  (await attempt({ method: 'GET', url, headers }))?.status === 200;

function formCanaries(url: string, replica: string, { addresses, mailbox }: Pick<World, 'addresses' | 'mailbox'>) {
  const base = `${url}/form/v1`;
  const intake = { authorization: `Bearer ${addresses.tokens.intake}` };
  const administrator = { authorization: `Bearer ${addresses.tokens.administrator}` };
  const draft = async (address: string) => {
    const body = { definitionId, applicant: { channels: [{ channel: 'email', address }] } };
    const outcome = await attempt({ method: 'POST', url: `${base}/forms`, headers: intake, body });
    return outcome?.status === 201 ? (outcome.json as { id: string }).id : undefined;
  };
  return [
    { name: `list of forms (${replica})`, run: get(`${base}/forms?top=1`, administrator) },
    { name: `list of registers (${replica})`, run: get(`${base}/registers`, administrator) },
    {
      name: `save (${replica})`,
      async run() {
        const id = await draft(`${randomUUID()}@example.org`);
        if (id === undefined) return false;
        const body = { data: { name: 'Ana' }, files: {} };
        return (
          (await attempt({ method: 'PUT', url: `${base}/forms/${id}/data`, headers: intake, body }))?.status === 200
        );
      },
    },
    {
      name: `code by mail (${replica})`,
      async run() {
        const address = `${randomUUID()}@example.org`;
        const id = await draft(address);
        if (id === undefined) return false;
        const body = { operation: 'send-code' };
        const sent = await attempt({ method: 'POST', url: `${base}/forms/${id}`, headers: intake, body });
        if (sent?.status !== 202) return false;
        return mailbox
          .waitFor(({ to, text }) => to === address && /^\s*[A-Z0-9]{6,}\s*$/m.test(text), 5_000)
          .then(
            () => true,
            () => false,
          );
      },
    },
  ];
}

function sessionCanaries(url: string, replica: string, { fronts, mallory }: World['addresses']): Canary[] {
  const [person] = mallory as [(typeof mallory)[number]];
  const own = {
    host: new URL(fronts['token-handler']).host,
    ...{ cookie: person.cookie, 'x-xsrf-token': person.csrf, 'x-forwarded-for': '10.6.0.2' },
  };
  return [
    { name: `session (${replica})`, run: get(`${url}/token-handler/v1/sessions`, own) },
    { name: `proxied request (${replica})`, run: get(`${url}/token-handler/v1/targets/api/whoami`, own) },
  ];
}

export interface Recovery {
  /** Milliseconds until every canary had succeeded. */
  milliseconds: number;
  /** Names of the canaries that did not succeed in time. */
  failing: string[];
}

/**
 * Number of times that a canary must succeed in a row. One success is not enough, because the calls of a service
 * alternate between two replicas of the platform server.
 */
const successesInRow = 3;

/**
 * Repeats each canary until it succeeds three times in a row, all canaries concurrently, for at most `limit`
 * milliseconds.
 */
export async function measureRecovery(canaries: Canary[], limit: number): Promise<Recovery> {
  const started = performance.now();
  const left = () => limit - (performance.now() - started);
  const failing: string[] = [];
  await Promise.all(
    canaries.map(async ({ name, run }) => {
      for (let successes = 0; left() > 0; ) {
        successes = (await run().catch(() => false)) ? successes + 1 : 0;
        // A canary that starts in time may succeed after the limit. It then counts as failing.
        if (successes === successesInRow && left() > 0) return;
        if (successes === 0) await delay(100);
      }
      failing.push(name);
    }),
  );
  return { milliseconds: performance.now() - started, failing };
}
