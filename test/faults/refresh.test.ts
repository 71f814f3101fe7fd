// Concurrent refreshes in several processes of the token handler with one Redis. The identity provider is slow, and
// each of its refresh tokens can be used once. One of the processes is killed during a refresh.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningService } from '../../src/service/operations/serve.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { type Person, startTargetWorld, type TargetWorld } from '../support/targets.ts';
import { startTokenDoor, type TokenDoor } from '../support/token-door.ts';
import { startTokenHandlerProcess } from '../support/token-handler-process.ts';

let platform: TestPlatform;
let door: TokenDoor;
let world: TargetWorld;
let replicas: RunningService[];
/** Milliseconds by which the clocks of the replicas are ahead of this machine's. */
let ahead = 0;

beforeAll(async () => {
  platform = await startTestPlatform();
  door = await startTokenDoor(platform.access.url);
  world = await startTargetWorld({ store: 'redis', platform, accessUrl: door.url });
  const clock = () => new Date(Date.now() + ahead);
  replicas = [await world.handler.startReplica({ clock }), await world.handler.startReplica({ clock })];
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  await world.close();
  await door.close();
  await platform.close();
});

async function statusOf(as: Person, url: string): Promise<number> {
  return (await world.send({ as, url, path: '/echo' })).status;
}

describe('a session whose access token is due, and a token endpoint that takes 10 s', { timeout: 90_000 }, () => {
  it('on three replicas and in 200 parallel calls costs one token request, and no call is refused', async () => {
    const person = await world.enter();
    await world.shortenToken(person.handle, 40_000);
    door.presented.length = 0;
    door.set(10_000);
    const urls = [world.site, ...replicas.map(({ url }) => url)];
    const calls = Array.from({ length: 200 }, (_, index) => statusOf(person, urls[index % 3] ?? ''));
    const responses = await Promise.all(calls);
    expect(new Set(responses)).toEqual(new Set([200]));
    const before = (await world.stored(person.handle)).tokens.accessToken;
    await expect
      .poll(async () => (await world.stored(person.handle)).tokens.accessToken, { timeout: 30_000 })
      .not.toBe(before);
    for (const url of urls) expect(await statusOf(person, url)).toBe(200);
    expect(door.presented).toHaveLength(1);
  });

  it('whose replica is killed during the refresh uses its refresh token once, and works until its access token expires', async () => {
    const dying = await startTokenHandlerProcess({ env: world.handler.env });
    const person = await world.enter();
    expect(await statusOf(person, dying.url)).toBe(200);
    await world.shortenToken(person.handle, 30_000);
    door.presented.length = 0;
    door.set(10_000);
    expect(await statusOf(person, dying.url)).toBe(200);
    await expect.poll(() => door.presented.length, { timeout: 10_000 }).toBe(1);
    dying.child.kill('SIGKILL');
    const urls = replicas.map((replica) => replica.url);
    for (let round = 0; round < 4; round += 1) {
      const calls = Array.from({ length: 40 }, (_, index) => statusOf(person, urls[index % 2] ?? ''));
      expect(new Set(await Promise.all(calls))).toEqual(new Set([200]));
      await delay(500);
    }
    // The access token has expired, and more time has passed than the longest refresh attempt can take.
    ahead = 75_000;
    expect(await statusOf(person, urls[0] ?? '')).toBe(401);
    expect(await statusOf(person, urls[1] ?? '')).toBe(401);
    expect(door.presented).toHaveLength(1);
  });
});
