// Tests SESSIONS_VALID_FROM. Sessions that began before this time have ended, even if the store still contains them.
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import { addReplicaClient, startSessionReplica } from '../../../test/support/session-replica.ts';
import { configSchema } from '../config.ts';

let access: TestAccess;
let redis: TestRedis;
beforeAll(async () => {
  [access, redis] = await Promise.all([startTestAccess(), startTestRedis()]);
  await addReplicaClient(access);
});
afterAll(() => Promise.all([access.close(), redis.close()]));

async function startReplica(validFrom?: number) {
  const replica = await startSessionReplica({ access, redisUrl: redis.url, limits: { validFrom } });
  onTestFinished(() => replica.close());
  return replica;
}

it('a session that began before SESSIONS_VALID_FROM is refused and not listed; one that began at that time is served', async () => {
  const older = await startReplica();
  const before = await older.open();
  const { created, tenantId, user } = before.session;
  const replica = await startReplica(created + 1);
  const after = await replica.open({ session: { created: created + 1 } });
  expect([await replica.call(before.cookie), await replica.see(before.cookie)]).toEqual(['refused', undefined]);
  expect(await replica.call(after.cookie)).toBe(after.tokens.accessToken);
  const listed = await replica.sessions.ofUser(tenantId, user.id);
  expect(listed.map(({ session }) => session.handle)).toEqual([after.session.handle]);
});

it.each([
  ['2026-11-23T10:00:00Z', Date.parse('2026-11-23T10:00:00Z')],
  ['2026-11-23T10:00:00+01:00', Date.parse('2026-11-23T09:00:00Z')],
  ['yesterday', 'must be a time such as 2026-11-23T10:00:00Z'],
  ['2026-11-23', 'must be a time such as 2026-11-23T10:00:00Z'],
  ['2999-01-01T00:00:00Z', 'must not be in the future: every sign-in would end'],
])('SESSIONS_VALID_FROM=%s is read as a time, or rejected with the reason', (text, expected) => {
  const { success, data, error } = configSchema.shape.SESSIONS_VALID_FROM.safeParse(text);
  expect(success ? data : error.issues[0]?.message).toBe(expected);
});
