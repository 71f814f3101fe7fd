// Sends requests as people do: forms, codes, sign-ins and proxied requests. The rate is constant, whether or not the
// requests succeed.
import { createSiteBrowser, type SiteBrowser } from '../support/site-browser.ts';
import { accessTokenLifetime, type World } from './world.ts';

const client = '/token-handler/clients/demo-console';
const target = '/token-handler/targets/form-service/form/v1/forms?top=1';
/** Maximum number of requests in flight. While a fault holds back this many requests, no further requests are sent. */
const mostInFlight = 60;

/**
 * Maximum number of older sessions. One of them is used every 500 ms, so with 40 sessions, each is used every 20 s.
 * That is the lifetime of its access token, so each use requires a refresh.
 */
const mostOlder = 40;

export interface Traffic {
  stop(): Promise<void>;
}

/** Registers the client and begins the traffic. */
export async function startTraffic(world: World): Promise<Traffic> {
  await register(world);
  const token = await world.token('demo-intake');
  let bearer = token;
  const inFlight = new Set<Promise<unknown>>();
  const begin = (work: () => Promise<unknown>) => {
    if (inFlight.size >= mostInFlight) return;
    const running = work()
      .catch(() => undefined)
      .finally(() => inFlight.delete(running));
    inFlight.add(running);
  };
  let session: SiteBrowser | undefined;
  /** Sessions that are used so rarely that each use requires a refresh of their tokens. */
  const older: SiteBrowser[] = [];
  const forms = (path: string, method: string, body?: object) => call(world, path, method, bearer, body);
  const timers = [
    setInterval(() => begin(() => forms('?top=1&mine=true', 'GET')), 300),
    setInterval(() => begin(() => createAndSendCode(forms)), 1_000),
    setInterval(
      () =>
        begin(async () => {
          const browser = await signIn(world);
          session = browser ?? session;
          if (browser) older.push(browser);
          if (older.length > mostOlder) older.shift();
        }),
      1_200,
    ),
    setInterval(() => begin(async () => session?.copy().request(`${world.publicUrl}${target}`)), 300),
    setInterval(() => {
      const next = older.shift();
      if (next) older.push(next);
      begin(async () => next?.copy().request(`${world.publicUrl}${target}`));
    }, 500),
    setInterval(
      () =>
        begin(async () => {
          bearer = await world.token('demo-intake');
        }),
      (accessTokenLifetime * 1_000) / 2,
    ),
  ];
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(inFlight);
    },
  };
}

async function register(world: World): Promise<void> {
  const response = await fetch(`${world.publicUrl}${client}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${await world.token('demo-admin')}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ registrationToken: 'demo-registration-token' }),
  });
  if (!response.ok) throw new Error(`the client was not registered: ${response.status} ${await response.text()}`);
}

async function call(world: World, path: string, method: string, token: string, body?: object): Promise<Response> {
  return fetch(`${world.publicUrl}/form/v1/forms${path}`, {
    ...{ method, signal: AbortSignal.timeout(20_000) },
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
}

async function createAndSendCode(forms: (path: string, method: string, body?: object) => Promise<Response>) {
  const applicant = { addressAs: 'Ana', channels: [{ channel: 'email', address: `ana.${Math.random()}@example.org` }] };
  const created = await forms('', 'POST', { definitionId: 'business-licence', applicant });
  const { id } = (await created.json()) as { id: string };
  await forms(`/${id}`, 'POST', { operation: 'send-code' });
}

/** Signs in, and returns the browser with the session; undefined if the sign-in failed. */
async function signIn(world: World): Promise<SiteBrowser | undefined> {
  const browser = createSiteBrowser();
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${world.publicUrl}${client}/callback` });
  const page = await browser.follow(await browser.request(`${world.publicUrl}${client}/auth?${query}`));
  if (page.status !== 200) return undefined;
  const sent = await browser.submit(page, { username: 'admin@example.com', password: 'admin' });
  const landed = await browser.follow(sent);
  return landed.status < 400 ? browser : undefined;
}
