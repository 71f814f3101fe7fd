// A refresh among whole replicas of the token handler: their processes, one Redis, target requests, an access service
// that takes its time and whose refresh tokens are good for one use. One of the replicas dies in the middle.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningService } from '../../src/service/serve.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { freePort } from '../support/redis.ts';
import { type Person, startTargetWorld, type TargetWorld } from '../support/targets.ts';
import { startTokenDoor, type TokenDoor } from '../support/token-door.ts';

let platform: TestPlatform;
let door: TokenDoor;
let world: TargetWorld;
let replicas: RunningService[];
let children: ChildProcess[];

beforeAll(async () => {
  platform = await startTestPlatform();
  door = await startTokenDoor(platform.access.url);
  world = await startTargetWorld({ store: 'redis', platform, accessUrl: door.url });
  replicas = [await world.replica(), await world.replica()];
  children = [];
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(replicas.map((replica) => replica.close()));
  await world.close();
  await door.close();
  await platform.close();
});

/** Another replica, in a process of its own. */
async function startProcess(): Promise<{ url: string; child: ChildProcess }> {
  const [port, metricsPort] = [await freePort(), await freePort()];
  const env = { ...world.handler.env, PORT: String(port), METRICS_PORT: String(metricsPort) };
  const main = join(import.meta.dirname, '../../src/token-handler/main.ts');
  const child = spawn(process.execPath, [main], { env: { ...process.env, ...env }, stdio: 'ignore' });
  children.push(child);
  const isReady = () =>
    fetch(`http://127.0.0.1:${metricsPort}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  for (let waited = 0; !(await isReady()); waited += 100) {
    if (waited > 20_000) throw new Error('the process is not ready');
    await delay(100);
  }
  return { url: `http://127.0.0.1:${port}`, child };
}

async function statusOf(as: Person, url: string): Promise<number> {
  return (await world.send({ as, url, path: '/echo' })).status;
}

describe('a session whose access token is due, and a token endpoint that takes 10 s', { timeout: 60_000 }, () => {
  it('on three replicas and in 200 parallel calls costs one token request, and no call is refused', async () => {
    const person = await world.enter();
    await world.shortenToken(person.handle, 40_000);
    door.presented.length = 0;
    door.set(10_000);
    const urls = [world.site, ...replicas.map(({ url }) => url)];
    const calls = Array.from({ length: 200 }, (_, index) => statusOf(person, urls[index % 3] ?? ''));
    const answers = await Promise.all(calls);
    expect(new Set(answers)).toEqual(new Set([200]));
    const before = (await world.stored(person.handle)).tokens.accessToken;
    await expect
      .poll(async () => (await world.stored(person.handle)).tokens.accessToken, { timeout: 15_000 })
      .not.toBe(before);
    for (const url of urls) expect(await statusOf(person, url)).toBe(200);
    expect(door.presented).toHaveLength(1);
  });

  it('whose replica is killed midway presents its refresh token once, and no call is refused until its access token ends', async () => {
    const { url, child } = await startProcess();
    const person = await world.enter();
    expect(await statusOf(person, url)).toBe(200);
    const ends = performance.now() + 15_000;
    await world.shortenToken(person.handle, 15_000);
    door.presented.length = 0;
    door.set(10_000);
    expect(await statusOf(person, url)).toBe(200);
    await expect.poll(() => door.presented.length).toBe(1);
    child.kill('SIGKILL');
    const urls = replicas.map((replica) => replica.url);
    while (performance.now() < ends - 2_500) {
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, index) => statusOf(person, urls[index % 2] ?? '')),
      );
      expect(new Set(answers)).toEqual(new Set([200]));
      await delay(500);
    }
    // The intent has no attempt behind it any more; that is sure only after the longest attempt there can be.
    await delay(ends - performance.now() + 30_000);
    expect(await statusOf(person, urls[0] ?? '')).toBe(401);
    expect(await statusOf(person, urls[1] ?? '')).toBe(401);
    expect(door.presented).toHaveLength(1);
  });
});
