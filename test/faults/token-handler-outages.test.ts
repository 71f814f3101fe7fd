// The token handler under load while Redis hangs and then refuses connections, while Postgres is down, and while the
// identity provider is down. No one loses a session. OUTAGE_SECONDS is the length of the outage of Redis. No timeout of
// the token handler's Redis client is longer than 5 s, so a longer outage than the default shows nothing new.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { RunningService } from '../../src/service/operations/serve.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { createSiteBrowser } from '../support/site-browser.ts';
import { sizeOf } from '../support/sizes.ts';
import { startStopwatch } from '../support/stopwatch.ts';
import { type Person, startTargetWorld, type TargetWorld } from '../support/targets.ts';
import { startTcpGate, type TcpGate } from '../support/tcp-gate.ts';

const outage = sizeOf('OUTAGE_SECONDS') * 1_000;

let platform: TestPlatform;
let redisGate: TcpGate;
let accessGate: TcpGate;
let world: TargetWorld;
/** The replicas reach Redis and the identity provider through TCP proxies. */
let replicas: RunningService[];
let people: Person[];
beforeAll(async () => {
  platform = await startTestPlatform();
  accessGate = await startTcpGate(Number(new URL(platform.access.url).port));
  const accessUrl = `http://127.0.0.1:${accessGate.port}/auth`;
  world = await startTargetWorld({ store: 'redis', platform, accessUrl });
  redisGate = await startTcpGate(world.redis?.port ?? 0);
  const env = { REDIS_URL: `redis://127.0.0.1:${redisGate.port}` };
  replicas = [await world.replica(env), await world.replica(env)];
  people = [];
  for (let count = 0; count < 10; count += 1) people.push(await world.enter());
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  await world.close();
  await Promise.all([redisGate.close(), accessGate.close(), platform.close()]);
});

interface TimedResponse {
  status: number;
  setCookies: string[];
  /** The time at which the request was sent, in milliseconds. */
  sentAt: number;
}

/** Sends the requests of one person's frontend, and returns the responses. */
async function sendAs(as: Person, nth: number): Promise<TimedResponse[]> {
  const url = replicas[nth % replicas.length]?.url ?? '';
  const sentAt = performance.now();
  const results = await Promise.all([
    world.send({ as, url }),
    world.send({ as, url, method: 'POST', body: 'x' }),
    world.send({ as, url, target: '/token-handler/v1/sessions' }),
  ]);
  return results.map(({ status, headers }) => ({ status, setCookies: headers['set-cookie'] ?? [], sentAt }));
}

/** Sends requests of all people for some milliseconds. Each person alternates between the replicas. */
async function load(milliseconds: number): Promise<TimedResponse[]> {
  const end = performance.now() + milliseconds;
  const each = people.map(async (person, index) => {
    const responses: TimedResponse[] = [];
    for (let nth = index; performance.now() < end; nth += 1) {
      responses.push(...(await sendAs(person, nth)));
      await delay(50);
    }
    return responses;
  });
  return (await Promise.all(each)).flat();
}

function atReplica(address: string): string {
  const { pathname, search } = new URL(address);
  return `${replicas[0]?.url}${pathname}${search}`;
}

const statuses = (responses: TimedResponse[]) => [...new Set(responses.map(({ status }) => status))];

async function untilAll(status: number): Promise<void> {
  const ask = async () => statuses((await Promise.all(people.map(sendAs))).flat());
  await expect.poll(ask, { interval: 100 }).toEqual([status]);
}

describe('an outage of Redis under load', () => {
  it('causes 503 without clearing cookies, and everyone is still signed in afterwards', {
    timeout: 60_000 + 2 * outage,
  }, async () => {
    await untilAll(200);
    const browser = createSiteBrowser();
    const callback = await world.toCallback(browser);
    const cookie = browser.cookies(callback).map(({ name, value }) => `${name}=${value}`);
    const finish = () =>
      fetch(atReplica(callback.href), { headers: { Cookie: cookie.join('; ') }, redirect: 'manual' });
    const started = performance.now();
    // First Redis hangs, then its connections break and new ones are refused.
    redisGate.freeze();
    const responses = await load(outage / 2);
    await redisGate.shut();
    responses.push(...(await load(outage / 2)));
    const begin = await createSiteBrowser().request(atReplica(world.authUrl()));
    const unfinished = await finish();
    const logout = await fetch(atReplica(world.clientUrl('logout')), {
      headers: { Cookie: people[0]?.cookie ?? '' },
      redirect: 'manual',
    });
    await redisGate.open();

    const late = responses.filter(({ sentAt }) => sentAt - started > 6_000);
    expect(late.length).toBeGreaterThan(people.length);
    expect(statuses(late)).toEqual([503]);
    // Until the token handler notices the outage, it uses cached sessions.
    expect(statuses(responses).toSorted()).toEqual([200, 503]);
    expect(responses.flatMap(({ setCookies }) => setCookies)).toEqual([]);
    // The start of a sign-in needs no store. A callback and a logout that get 503 change no cookies, so the browser can
    // load them again.
    expect(begin.status).toBe(302);
    expect([unfinished.status, unfinished.headers.getSetCookie()]).toEqual([503, []]);
    expect([logout.status, logout.headers.getSetCookie()]).toEqual([503, []]);

    const back = performance.now();
    await untilAll(200);
    expect((await finish()).status).toBe(302);
    process.stdout.write(
      `Redis away for ${outage / 1_000} s: ${responses.length} responses, ${late.length} of them 503 after 6 s; all ${people.length} signed in ${Math.round(performance.now() - back)} ms after its return\n`,
    );
  });
});

describe('a replica that loses Redis', () => {
  it.each(['freeze', 'strand', 'shut'] as const)(
    'ends its open streams within 4 s of a revocation elsewhere, after %s',
    async (lose) => {
      const replica = await world.replica({ REDIS_URL: `redis://127.0.0.1:${redisGate.port}` });
      onTestFinished(() => replica.close());
      onTestFinished(() => redisGate.open());
      const person = await world.enter();
      const { answer: usual } = world.upstream;
      onTestFinished(() => {
        world.upstream.answer = usual;
      });
      world.upstream.answer = (_request, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        const timer = setInterval(() => response.write('data: tick\n\n'), 100);
        response.once('close', () => clearInterval(timer));
      };
      const streams = ['text/event-stream', '*/*'].map((Accept) =>
        world.start({ as: person, url: replica.url, headers: { Accept } }),
      );
      let open = streams.length;
      for (const { request, answer } of streams) {
        request.end();
        const incoming = await answer;
        expect(incoming.statusCode).toBe(200);
        incoming.on('error', () => undefined).once('close', () => (open -= 1));
        incoming.resume();
      }
      await redisGate[lose]();
      const logOut = await fetch(`${world.site}/token-handler/v1/clients/web/logout`, {
        headers: { Cookie: person.cookie },
        redirect: 'manual',
      });
      expect(logOut.status).toBe(302);
      const stopwatch = startStopwatch();
      await expect.poll(() => open, { timeout: 70_000 }).toBe(0);
      // The product's limit is 4 s; the rest is an allowance for a slow machine.
      expect(stopwatch.stop()).toBeLessThan(6_000);
    },
  );
});

describe('an outage of Postgres under load', () => {
  it('affects no live session and no readiness; sign-in gets 503', async () => {
    const url = new URL(world.handler.databaseUrl);
    const gate = await startTcpGate(Number(url.port));
    onTestFinished(() => gate.close());
    url.host = `127.0.0.1:${gate.port}`;
    const replica = await world.replica({
      REDIS_URL: `redis://127.0.0.1:${redisGate.port}`,
      DATABASE_URL: url.href,
    });
    onTestFinished(() => replica.close());
    await gate.shut();
    const sentAt: number[] = [];
    for (let nth = 0; nth < 20; nth += 1) {
      const [as] = people as [Person];
      sentAt.push((await world.send({ as, url: replica.url, method: nth % 2 ? 'GET' : 'POST' })).status);
      expect((await fetch(`${replica.metricsUrl}/readyz`)).status).toBe(200);
      await delay(100);
    }
    expect([...new Set(sentAt)]).toEqual([200]);
    const begin = new URL(world.authUrl());
    const signIn = await createSiteBrowser().request(`${replica.url}${begin.pathname}${begin.search}`);
    expect(signIn.status).toBe(503);
  });
});

describe('an outage of the identity provider under load', () => {
  it('affects no session whose access token is valid; tokens that are due are refreshed afterwards', async () => {
    const [due] = people as [Person];
    await world.shortenToken(due.handle, 25_000);
    const before = (await world.stored(due.handle)).tokens.accessToken;
    await accessGate.shut();
    expect(statuses(await load(3_000))).toEqual([200]);
    const begin = await createSiteBrowser().request(atReplica(world.authUrl()));
    expect([302, 502, 503]).toContain(begin.status);
    expect((await world.stored(due.handle)).tokens.accessToken).toBe(before);
    await accessGate.open();
    await expect
      .poll(
        async () => {
          await load(100);
          return (await world.stored(due.handle)).tokens.accessToken;
        },
        { interval: 200 },
      )
      .not.toBe(before);
    expect(statuses(await load(300))).toEqual([200]);
  });
});
