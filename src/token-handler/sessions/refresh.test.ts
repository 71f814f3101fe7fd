// Tests token refresh on one replica and on several, with a real Redis and a real identity provider whose refresh
// tokens can be used only once. A proxy in front of the identity provider makes refreshes fail. Only the clock is
// simulated.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import {
  addReplicaClient,
  type SessionReplica,
  type SessionReplicaOptions,
  startSessionReplica,
} from '../../../test/support/session-replica.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { startTokenDoor, type TokenDoor } from '../../../test/support/token-door.ts';
import { until as untilTrue } from '../../../test/support/until.ts';

let access: TestAccess;
let redis: TestRedis;
let door: TokenDoor;
let offset: number;
let replicas: SessionReplica[];
const clock = () => new Date(Date.now() + offset);

beforeAll(async () => {
  [access, redis] = await Promise.all([startTestAccess(), startTestRedis()]);
  await addReplicaClient(access);
});
afterAll(() => Promise.all([access.close(), redis.close()]));
beforeEach(async () => {
  offset = 0;
  replicas = [];
  door = await startTokenDoor(access.url);
});
afterEach(async () => {
  await Promise.all([...replicas.map((replica) => replica.close()), door.close()]);
});

async function start({ inMemory = false, ...options }: Partial<SessionReplicaOptions> & { inMemory?: boolean } = {}) {
  const place = inMemory ? {} : { redisUrl: redis.url };
  const replica = await startSessionReplica({ access, accessUrl: door.url, clock, ...place, ...options });
  replicas.push(replica);
  return replica;
}

/** Advances the clock. Access tokens are valid for 300 s. */
const pass = (seconds: number) => {
  offset += seconds * 1_000;
};
const until = (holds: () => boolean | Promise<boolean>) => untilTrue(`${holds}`, holds, { interval: 10 });

describe.each(['redis', 'memory'] as const)('with sessions in %s', (store) => {
  const one = () => start(store === 'memory' ? { inMemory: true } : {});

  it('sends an access token with more than a minute left without a refresh', async () => {
    const replica = await one();
    const { cookie, tokens } = await replica.open();
    pass(235);
    expect(await replica.call(cookie)).toBe(tokens.accessToken);
    await delay(100);
    expect(door.presented).toEqual([]);
  });

  it('refreshes a token with less than a minute left in the background, and still sends it', async () => {
    const replica = await one();
    const { cookie, tokens } = await replica.open();
    pass(275);
    door.set(2_000);
    const stopwatch = startStopwatch();
    expect(await replica.call(cookie)).toBe(tokens.accessToken);
    expect(stopwatch.stop()).toBeLessThan(2_000);
    await until(async () => (await replica.call(cookie)) !== tokens.accessToken);
    expect(door.presented).toEqual([tokens.refreshToken]);
    expect(await replica.call(cookie)).not.toBe('refused');
  });

  it('refreshes a short-lived token when a quarter of its lifetime is left', async () => {
    const replica = await one();
    const { cookie } = await replica.open({
      tokens: { accessIssued: clock().getTime(), accessExpiry: clock().getTime() + 40_000 },
    });
    pass(29);
    await replica.call(cookie);
    await delay(100);
    expect(door.presented).toHaveLength(0);
    pass(6.1);
    await replica.call(cookie);
    await until(() => door.presented.length === 1);
  });

  it('lets requests wait for the new token if the old one has expired', async () => {
    const replica = await one();
    const { cookie, tokens } = await replica.open();
    pass(301);
    door.set(300);
    const received = await Promise.all(Array.from({ length: 50 }, () => replica.call(cookie)));
    expect(new Set(received).size).toBe(1);
    expect(received[0]).not.toBe(tokens.accessToken);
    expect(received[0]).not.toBe('refused');
    expect(door.presented).toEqual([tokens.refreshToken]);
  });

  it('presents the latest refresh token in each refresh', async () => {
    const replica = await one();
    const { cookie } = await replica.open();
    for (let round = 0; round < 4; round += 1) {
      pass(301);
      expect(await replica.call(cookie)).not.toBe('refused');
    }
    expect(new Set(door.presented).size).toBe(4);
  });

  it('ends the session with 401 if the refresh is rejected (invalid_grant)', async () => {
    const replica = await one();
    const { cookie } = await replica.open({ tokens: { refreshToken: 'not one of the access service' } });
    pass(301);
    expect(await replica.call(cookie)).toBe('refused');
    expect(await replica.read(cookie)).toBeUndefined();
  });

  it('ends the session if a background refresh is rejected, although the access token is valid', async () => {
    const replica = await one();
    const { cookie } = await replica.open({ tokens: { refreshToken: 'not one of the access service' } });
    pass(275);
    await replica.call(cookie);
    await until(async () => (await replica.call(cookie)) === 'refused');
  });

  it('keeps the session while the identity provider is unreachable', async () => {
    const replica = await one();
    const { cookie, tokens } = await replica.open();
    await replica.call(cookie);
    await door.close();
    pass(275);
    expect(await replica.call(cookie)).toBe(tokens.accessToken);
    pass(30);
    await expect(replica.call(cookie)).rejects.toMatchObject({ status: 503 });
    expect(await replica.read(cookie)).toBeDefined();
  });

  it('does not limit the session if refresh_expires_in is 0', async () => {
    const replica = await one();
    const { cookie, session } = await replica.open({ answer: { refresh_expires_in: 0 } });
    const found = await replica.sessions.read(session.handle);
    expect(found?.state.limit).toBe(session.absoluteExpiry);
    pass(50 * 60);
    expect(await replica.call(cookie)).not.toBe('refused');
  });

  it('ends the session with its refresh token, whose expiry each refresh postpones', async () => {
    const replica = await one();
    const { cookie, session } = await replica.open({ tokens: { refreshExpiry: clock().getTime() + 600_000 } });
    pass(301);
    expect(await replica.call(cookie)).not.toBe('refused');
    const found = await replica.sessions.read(session.handle);
    // Refresh tokens of the embedded identity provider are valid for 1800 s.
    expect(found?.state.limit).toBeGreaterThan(clock().getTime() + 1_700_000);
    pass(1_795);
    expect(await replica.read(cookie)).toBeDefined();
    pass(10);
    expect(await replica.read(cookie)).toBeUndefined();
  });
});

describe('on several replicas', () => {
  it('200 concurrent requests to three replicas cause one token request, and none is rejected', async () => {
    const all = await Promise.all([start(), start(), start()]);
    const { cookie, tokens } = await (all[0] as SessionReplica).open();
    pass(275);
    door.set(2_000);
    const calls = Array.from({ length: 200 }, (_, index) => (all[index % 3] as SessionReplica).call(cookie));
    expect(new Set(await Promise.all(calls))).toEqual(new Set([tokens.accessToken]));
    await until(async () => (await all[1]?.call(cookie)) !== tokens.accessToken);
    for (const replica of all) await until(async () => (await replica.call(cookie)) !== tokens.accessToken);
    expect(door.presented).toEqual([tokens.refreshToken]);
  });

  it('200 concurrent requests with an expired token wait for one token request', async () => {
    const all = await Promise.all([start(), start(), start()]);
    const { cookie } = await (all[0] as SessionReplica).open();
    pass(301);
    door.set(2_000);
    const calls = Array.from({ length: 200 }, (_, index) => (all[index % 3] as SessionReplica).call(cookie));
    const received = new Set(await Promise.all(calls));
    expect(received.size).toBe(1);
    expect(received.has('refused')).toBe(false);
    expect(door.presented).toHaveLength(1);
  });

  it('a refresh is not repeated if its replica dies, and the session ends with its access token', async () => {
    const never = () => new Promise<never>(() => undefined);
    const dying = await start({
      refresh:
        (real) =>
        async (...args) => {
          await real(...args);
          return never();
        },
    });
    const other = await start();
    const { cookie, tokens, session } = await dying.open();
    pass(275);
    await dying.call(cookie);
    await until(() => door.presented.length === 1);
    for (let round = 0; round < 20; round += 1) expect(await other.call(cookie)).toBe(tokens.accessToken);
    pass(20);
    expect(await other.call(cookie)).toBe(tokens.accessToken);
    // Simulates the death of the replica `dying`: its attempt never ends, and its heartbeats no longer reach Redis.
    dying.redis?.close();
    pass(10);
    await until(async () => (await other.see(cookie)) === undefined);
    expect(await other.call(cookie)).toBe('refused');
    expect(await other.read(cookie)).toBeUndefined();
    expect(await redis.command('EXISTS', `{sess:${session.handle}}:tokens`)).toBe(0);
    expect(door.presented).toEqual([tokens.refreshToken]);
  });

  it('a running refresh is not given up by a replica whose clock is a minute ahead', async () => {
    const [one, ahead] = [await start(), await start({ clock: () => new Date(clock().getTime() + 60_000) })];
    const { cookie } = await one.open();
    pass(301);
    // Less than the 5 s for which a request waits for new tokens, also on a busy machine.
    door.set(1_500);
    const calls = [one.call(cookie), until(() => door.presented.length === 1).then(() => ahead.call(cookie))];
    const [first, second] = await Promise.all(calls);
    expect(second).not.toBe('refused');
    expect(second).toBe(first);
    expect(door.presented).toHaveLength(1);
  });

  it('new tokens are stored after an outage of Redis', async () => {
    const replica = await start();
    const { cookie, tokens } = await replica.open();
    pass(275);
    door.set(500);
    await replica.call(cookie);
    await until(() => door.presented.length === 1);
    redis.pause();
    await delay(5_000);
    redis.resume();
    await until(() =>
      replica.call(cookie).then(
        (token) => token !== tokens.accessToken && token !== 'refused',
        () => false,
      ),
    );
    expect(door.presented).toEqual([tokens.refreshToken]);
  });

  it('a session survives a claim that Redis did not confirm', async () => {
    const replica = await start();
    const { cookie, tokens } = await replica.open();
    await replica.call(cookie);
    redis.pause();
    pass(275);
    expect(await replica.call(cookie)).toBe(tokens.accessToken);
    await delay(4_000);
    redis.resume();
    pass(6);
    await until(() =>
      replica.call(cookie).then(
        (token) => token !== tokens.accessToken && token !== 'refused',
        () => false,
      ),
    );
    expect(door.presented).toEqual([tokens.refreshToken]);
  });
});
