// Concurrent refreshes in several processes of the token handler with one Redis. The identity provider is slow, and
// each of its refresh tokens can be used once. Processes are killed, or stopped for a while, during a refresh.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { RunningService } from '../../src/service/operations/serve.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { type Person, startTargetWorld, type TargetWorld } from '../support/targets.ts';
import { startTokenDoor, type TokenDoor } from '../support/token-door.ts';
import { startTokenHandlerProcess } from '../support/token-handler-process.ts';

let platform: TestPlatform;
let door: TokenDoor;
let world: TargetWorld;
let replicas: RunningService[];
/** A replica whose clock is 40 s ahead. */
let early: RunningService;

beforeAll(async () => {
  platform = await startTestPlatform();
  door = await startTokenDoor(platform.access.url);
  world = await startTargetWorld({ store: 'redis', platform, accessUrl: door.url });
  replicas = [await world.handler.startReplica(), await world.handler.startReplica()];
  early = await world.handler.startReplica({ clock: () => new Date(Date.now() + 40_000) });
});
afterAll(async () => {
  await Promise.all([...replicas, early].map((replica) => replica.close()));
  await world.close();
  await door.close();
  await platform.close();
});

async function statusOf(as: Person, url: string): Promise<number> {
  return (await world.send({ as, url, path: '/echo' })).status;
}

describe('a session whose access token is due, and a token endpoint that takes 10 s', () => {
  it('is refreshed by one token request for 200 concurrent calls on three replicas, and no call is rejected', async () => {
    const person = await world.enter();
    const before = (await world.stored(person.handle)).tokens.accessToken;
    // A token that is valid for less than half a minute is certainly due for a refresh.
    await world.shortenToken(person.handle, 29_000);
    door.presented.length = 0;
    door.set(10_000);
    const urls = [world.site, ...replicas.map(({ url }) => url)];
    const calls = Array.from({ length: 200 }, (_, index) => statusOf(person, urls[index % 3] ?? ''));
    const responses = await Promise.all(calls);
    expect(new Set(responses)).toEqual(new Set([200]));
    await expect.poll(async () => (await world.stored(person.handle)).tokens.accessToken).not.toBe(before);
    for (const url of urls) expect(await statusOf(person, url)).toBe(200);
    expect(door.presented).toHaveLength(1);
  });
});

/** Begins a refresh in a separate process. The old access token is valid for at most 3 s more. */
async function refreshElsewhere() {
  const process = await startTokenHandlerProcess({ env: world.handler.env });
  onTestFinished(() => void process.child.kill('SIGKILL'));
  const person = await world.enter();
  expect(await statusOf(person, process.url)).toBe(200);
  await world.shortenToken(person.handle, 3_000);
  const { refreshToken = '' } = (await world.stored(person.handle)).tokens;
  // The call is not awaited, because on a slow machine the token may have expired already, and the call then waits for
  // the refresh.
  statusOf(person, process.url).catch(() => undefined);
  await expect.poll(() => presentations(refreshToken)).toBe(1);
  return { process, person, refreshToken };
}

const presentations = (refreshToken: string) => door.presented.filter((token) => token === refreshToken).length;

/**
 * Sends one call after another until a call gets a status other than 200. Then sends ten more calls, and returns the
 * status of that call and of these ten.
 */
async function callUntilExpiry(person: Person): Promise<number[]> {
  const url = (index: number) => replicas[index % 2]?.url ?? '';
  let status = 200;
  for (let index = 0; status === 200; index += 1) {
    const started = performance.now();
    status = await statusOf(person, url(index));
    // A call waits at most 5 s for a refresh; the rest is an allowance for a slow machine.
    expect(performance.now() - started).toBeLessThan(15_000);
    await delay(100);
  }
  return Promise.all([status, ...Array.from({ length: 10 }, (_, index) => statusOf(person, url(index)))]);
}

describe('a refresh at a token endpoint that takes 8 s', () => {
  beforeAll(() => door.set(8_000));

  it('whose replica is killed or stopped ends the session with its access token, and its result changes nothing', async () => {
    const killed = await refreshElsewhere();
    killed.process.child.kill('SIGKILL');
    const stopped = await refreshElsewhere();
    stopped.process.child.kill('SIGSTOP');
    const received = await Promise.all([callUntilExpiry(killed.person), callUntilExpiry(stopped.person)]);
    expect(new Set(received.flat())).toEqual(new Set([401]));
    stopped.process.child.kill('SIGCONT');
    const late = () => stopped.process.metric('formgate_token_refreshes_total{outcome="late"}').catch(() => 0);
    await expect.poll(late, { interval: 200 }).toBe(1);
    for (const url of [stopped.process.url, ...replicas.map((replica) => replica.url)])
      for (const person of [killed.person, stopped.person]) expect(await statusOf(person, url)).toBe(401);
    // Each refresh token was presented once: by the replica that was then killed or stopped.
    expect([killed, stopped].map(({ refreshToken }) => presentations(refreshToken))).toEqual([1, 1]);
    await expect(world.stored(stopped.person.handle)).rejects.toThrow();
  });

  it('whose replica is alive gives calls a 503 after 5 s, on this replica and on one whose clock is ahead', async () => {
    const person = await world.enter();
    await world.shortenToken(person.handle, 0);
    const { refreshToken = '' } = (await world.stored(person.handle)).tokens;
    const started = performance.now();
    const urls = [replicas[0]?.url ?? '', replicas[1]?.url ?? '', early.url];
    const sent = await Promise.all(urls.map((url) => world.send({ as: person, url, path: '/echo' })));
    expect(performance.now() - started).toBeGreaterThan(4_500);
    expect(sent.map(({ status, headers }) => [status, headers['retry-after']])).toEqual(Array(3).fill([503, '2']));
    const recovered = async () => new Set(await Promise.all(urls.map((url) => statusOf(person, url))));
    await expect.poll(recovered, { interval: 500 }).toEqual(new Set([200]));
    expect(presentations(refreshToken)).toBe(1);
  });
});
