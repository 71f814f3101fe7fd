// Refreshes among replicas: against a real access service whose refresh tokens are good for one use, a real Redis, and a
// door that breaks refreshes in each way there is. Only time is moved.
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
import { startTokenDoor, type TokenDoor } from '../../../test/support/token-door.ts';

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

/** Seconds; access tokens last 300. */
const pass = (seconds: number) => {
  offset += seconds * 1_000;
};
const until = async (holds: () => boolean | Promise<boolean>) => {
  for (let waited = 0; !(await holds()); waited += 10) {
    if (waited > 60_000) throw new Error('it did not come true in 60 s');
    await delay(10);
  }
};

describe.each(['redis', 'memory'] as const)('with sessions in %s', (store) => {
  const one = () => start(store === 'memory' ? { inMemory: true } : {});

  it('a token with more than a minute left is sent as it is', async () => {
    const replica = await one();
    const { cookie, tokens } = await replica.open();
    pass(235);
    expect(await replica.call(cookie)).toBe(tokens.accessToken);
    await delay(100);
    expect(door.presented).toEqual([]);
  });

  it('a token with less than a minute left is still sent, while a new one is fetched in the background', async () => {
    const replica = await one();
    const { cookie, tokens } = await replica.open();
    pass(245);
    door.set(2_000);
    const started = performance.now();
    expect(await replica.call(cookie)).toBe(tokens.accessToken);
    expect(performance.now() - started).toBeLessThan(2_000);
    await until(async () => (await replica.call(cookie)) !== tokens.accessToken);
    expect(door.presented).toEqual([tokens.refreshToken]);
    expect(await replica.call(cookie)).not.toBe('refused');
  });

  it('of a short-lived token, a quarter of its lifetime is when it is due', async () => {
    const replica = await one();
    const { cookie } = await replica.open({
      tokens: { accessIssued: clock().getTime(), accessExpiry: clock().getTime() + 40_000 },
    });
    pass(29);
    await replica.call(cookie);
    await delay(100);
    expect(door.presented).toHaveLength(0);
    pass(2);
    await replica.call(cookie);
    await until(() => door.presented.length === 1);
  });

  it('with an expired token, calls wait for the new one', async () => {
    const replica = await one();
    const { cookie, tokens } = await replica.open();
    pass(301);
    door.set(300);
    const answers = await Promise.all(Array.from({ length: 50 }, () => replica.call(cookie)));
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).not.toBe(tokens.accessToken);
    expect(answers[0]).not.toBe('refused');
    expect(door.presented).toEqual([tokens.refreshToken]);
  });

  it('each refresh presents the refresh token that the one before brought', async () => {
    const replica = await one();
    const { cookie } = await replica.open();
    for (let round = 0; round < 4; round += 1) {
      pass(301);
      expect(await replica.call(cookie)).not.toBe('refused');
    }
    expect(new Set(door.presented).size).toBe(4);
  });

  it('a refused refresh (invalid_grant) ends the session with 401', async () => {
    const replica = await one();
    const { cookie } = await replica.open({ tokens: { refreshToken: 'not one of the access service' } });
    pass(301);
    expect(await replica.call(cookie)).toBe('refused');
    expect(await replica.read(cookie)).toBeUndefined();
  });

  it('a refused refresh in the background ends the session although its token is still valid', async () => {
    const replica = await one();
    const { cookie } = await replica.open({ tokens: { refreshToken: 'not one of the access service' } });
    pass(245);
    await replica.call(cookie);
    await until(async () => (await replica.call(cookie)) === 'refused');
  });

  it('after a complete HTTP error the same refresh token is presented again, and the session goes on', async () => {
    const replica = await one();
    const { cookie, tokens } = await replica.open();
    door.set({ status: 503 });
    pass(245);
    expect(await replica.call(cookie)).toBe(tokens.accessToken);
    await until(() => door.presented.length === 1);
    await delay(100);
    door.set(0);
    pass(6);
    await until(async () => (await replica.call(cookie)) !== tokens.accessToken);
    expect(door.presented).toEqual([tokens.refreshToken, tokens.refreshToken]);
  });

  it('with an expired token and an access service that fails, a call is 503 and the session stays', async () => {
    const replica = await one();
    const { cookie } = await replica.open();
    door.set({ status: 500 });
    pass(301);
    await expect(replica.call(cookie)).rejects.toMatchObject({ status: 503 });
    door.set(0);
    pass(6);
    expect(await replica.call(cookie)).not.toBe('refused');
  });

  it('an access service that cannot be reached at all costs nothing but time', async () => {
    const replica = await one();
    const { cookie, tokens } = await replica.open();
    await replica.call(cookie);
    await door.close();
    pass(245);
    expect(await replica.call(cookie)).toBe(tokens.accessToken);
    pass(60);
    await expect(replica.call(cookie)).rejects.toMatchObject({ status: 503 });
    expect(await replica.read(cookie)).toBeDefined();
  });

  it.each(['reset', 'lost answer', 'half an answer'] as const)(
    'after %s a refresh token is never presented again, and the session ends when its access token does',
    async (fate) => {
      const replica = await one();
      const { cookie, tokens } = await replica.open();
      door.set(fate);
      pass(245);
      expect(await replica.call(cookie)).toBe(tokens.accessToken);
      await until(() => door.presented.length === 1);
      door.set(0);
      await delay(100);
      pass(30);
      expect(await replica.call(cookie)).toBe(tokens.accessToken);
      pass(30);
      expect(await replica.call(cookie)).toBe('refused');
      expect(door.presented).toEqual([tokens.refreshToken]);
    },
  );

  it('refresh_expires_in 0 sets no limit of its own', async () => {
    const replica = await one();
    const { cookie, session } = await replica.open({ answer: { refresh_expires_in: 0 } });
    const found = await replica.sessions.read(session.handle);
    expect(found?.stored.limit).toBe(session.absoluteExpiry);
    pass(50 * 60);
    expect(await replica.call(cookie)).not.toBe('refused');
  });

  it('a session ends with its refresh token, whose end moves with each refresh', async () => {
    const replica = await one();
    const { cookie, session } = await replica.open({ tokens: { refreshExpiry: clock().getTime() + 600_000 } });
    pass(301);
    expect(await replica.call(cookie)).not.toBe('refused');
    const found = await replica.sessions.read(session.handle);
    // The embedded access service's refresh tokens last 1800 s.
    expect(found?.stored.limit).toBeGreaterThan(clock().getTime() + 1_700_000);
    pass(1_795);
    expect(await replica.read(cookie)).toBeDefined();
    pass(10);
    expect(await replica.read(cookie)).toBeUndefined();
  });
});

describe('among replicas', () => {
  it('200 parallel calls on three replicas make one token request, and none is refused', async () => {
    const all = await Promise.all([start(), start(), start()]);
    const { cookie, tokens } = await (all[0] as SessionReplica).open();
    pass(245);
    door.set(2_000);
    const calls = Array.from({ length: 200 }, (_, index) => (all[index % 3] as SessionReplica).call(cookie));
    expect(new Set(await Promise.all(calls))).toEqual(new Set([tokens.accessToken]));
    await until(async () => (await all[1]?.call(cookie)) !== tokens.accessToken);
    for (const replica of all) await until(async () => (await replica.call(cookie)) !== tokens.accessToken);
    expect(door.presented).toEqual([tokens.refreshToken]);
  });

  it('200 parallel calls on three replicas whose token has expired wait for one token request', async () => {
    const all = await Promise.all([start(), start(), start()]);
    const { cookie } = await (all[0] as SessionReplica).open();
    pass(301);
    door.set(2_000);
    const calls = Array.from({ length: 200 }, (_, index) => (all[index % 3] as SessionReplica).call(cookie));
    const answers = new Set(await Promise.all(calls));
    expect(answers.size).toBe(1);
    expect(answers.has('refused')).toBe(false);
    expect(door.presented).toHaveLength(1);
  });

  it('a refresh whose replica dies is never repeated: valid tokens go on, and the session ends with them', async () => {
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
    const { cookie, tokens } = await dying.open();
    pass(245);
    await dying.call(cookie);
    await until(() => door.presented.length === 1);
    for (let round = 0; round < 20; round += 1) expect(await other.call(cookie)).toBe(tokens.accessToken);
    pass(50);
    expect(await other.call(cookie)).toBe(tokens.accessToken);
    pass(10);
    expect(await other.call(cookie)).toBe('refused');
    expect(door.presented).toEqual([tokens.refreshToken]);
  });

  it('what a refresh brought while Redis was away is stored when it is back', async () => {
    const replica = await start();
    const { cookie, tokens } = await replica.open();
    pass(245);
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

  it('a claim that Redis did not confirm does not cost the session', async () => {
    const replica = await start();
    const { cookie, tokens } = await replica.open();
    await replica.call(cookie);
    redis.pause();
    pass(245);
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
