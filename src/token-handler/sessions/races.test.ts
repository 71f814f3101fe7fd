// Tests races between the end of a session and all other changes to the session, on a real Redis and in memory. The
// test decides when refreshes end.
import { randomInt } from 'node:crypto';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import {
  addReplicaClient,
  type OpenedSession,
  type Refresh,
  type SessionReplica,
  startSessionReplica,
} from '../../../test/support/session-replica.ts';
import { sizeOf } from '../../../test/support/sizes.ts';

let access: TestAccess;
let redis: TestRedis;
beforeAll(async () => {
  [access, redis] = await Promise.all([startTestAccess(), startTestRedis()]);
  await addReplicaClient(access);
});
afterAll(() => Promise.all([access.close(), redis.close()]));

let refreshes = 0;
const refresh = (): Refresh => async () => {
  for (let turns = randomInt(4); turns > 0; turns -= 1) await turn();
  refreshes += 1;
  const response = { access_token: `access ${refreshes}`, expires_in: 300, refresh_token: `refresh ${refreshes}` };
  return { kind: 'refreshed', response };
};

/** Returns tokens that are due for a refresh. Each request of a session with such tokens begins a refresh. */
const due = () => ({
  accessToken: 'access',
  accessIssued: Date.now() - 290_000,
  accessExpiry: Date.now() + 10_000,
  refreshToken: 'refresh',
});

async function race(all: SessionReplica[], opened: OpenedSession): Promise<void> {
  const pick = () => all[randomInt(all.length)] as SessionReplica;
  const someTurns = async () => {
    for (let turns = randomInt(6); turns > 0; turns -= 1) await turn();
  };
  const calls = Array.from({ length: 3 }, async () => {
    await someTurns();
    await pick().call(opened.cookie);
  });
  const marks = Array.from({ length: 2 }, async () => {
    await someTurns();
    await pick().store.tokens.touch(opened.session.handle, Date.now() + 1, 0);
  });
  const end = async () => {
    await someTurns();
    await pick().sessions.end(opened.session);
  };
  await Promise.all([...calls, ...marks, end()]);
}

const races = sizeOf('RACES');

async function raceMany(all: SessionReplica[], count: number): Promise<void> {
  const first = all[0] as SessionReplica;
  const sessions: OpenedSession[] = [];
  const sample = await first.open({ tokens: due() });
  for (let done = 0; done < count; done += 50) {
    const batch = await Promise.all(Array.from({ length: 50 }, () => first.reopen(sample.session, due())));
    await Promise.all(batch.map((opened) => race(all, opened)));
    sessions.push(...batch);
  }
  // Waits until running refreshes have ended.
  await delay(300);
  for (const replica of all)
    for (const {
      session: { handle },
      cookie,
    } of sessions) {
      if ((replica.sessions.cached(handle) ?? (await replica.sessions.read(handle))) !== undefined)
        throw new Error('a session came back');
      if ((await replica.call(cookie)) !== 'refused') throw new Error('a session that ended was served');
    }
}

describe('a session that ends during refreshes, touches and requests', () => {
  it('does not come back on three replicas with Redis', { timeout: 480_000 }, async () => {
    const place = { access, redisUrl: redis.url, refresh };
    const all = await Promise.all([startSessionReplica(place), startSessionReplica(place), startSessionReplica(place)]);
    await raceMany(all, races);
    expect(refreshes).toBeGreaterThan(races / 10);
    const left = String(await redis.command('KEYS', '{sess:*'));
    // Only the two keys of the sample session remain.
    expect(left.split(',').filter((key) => key !== '')).toHaveLength(2);
    await Promise.all(all.map((replica) => replica.close()));
  });

  it('does not come back in memory', async () => {
    const replica = await startSessionReplica({ access, refresh });
    onTestFinished(() => replica.close());
    await raceMany([replica], races);
  });
});
