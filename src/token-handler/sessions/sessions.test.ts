// Tests finding sessions by person, by tenant, and by session at the identity provider, with both stores. A session
// that is missing from an index cannot be revoked.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import { addReplicaClient, type SessionReplica, startSessionReplica } from '../../../test/support/session-replica.ts';

let access: TestAccess;
beforeAll(async () => {
  access = await startTestAccess();
  await addReplicaClient(access);
});
afterAll(() => access.close());

describe.each(['redis', 'memory'] as const)('sessions in %s', (kind) => {
  let redis: TestRedis | undefined;
  let replica: SessionReplica;
  beforeEach(async () => {
    redis = kind === 'redis' ? await startTestRedis() : undefined;
    replica = await startSessionReplica({ access, ...(redis && { redisUrl: redis.url }) });
  });
  afterEach(async () => {
    await replica.close();
    await redis?.close();
  });

  it('are at most 100 for a person, who can find all of them', async () => {
    const { session, tokens } = await replica.open({ session: { sid: 'one' } });
    for (let opened = 0; opened < 104; opened += 1) await replica.reopen(session, tokens);
    const { tenantId, clientId, user } = session;
    expect(await replica.sessions.ofUser(tenantId, user.id)).toHaveLength(100);
    expect(await replica.sessions.ofUser(tenantId, user.id, 'all')).toHaveLength(100);
    expect(await Array.fromAsync(replica.sessions.ofProviderSession({ tenantId, clientId }, 'one'))).toHaveLength(1);
  });

  it('are found although they were listed just before they became live', async () => {
    const { session, tokens } = await replica.open();
    const { tenantId, user } = session;
    const store = replica.store.tokens;
    const start = store.start.bind(store);
    let seen = 0;
    store.start = async (...given) => {
      seen = (await replica.sessions.ofUser(tenantId, user.id)).length;
      await replica.sessions.ofTenant(tenantId, 100);
      await start(...given);
    };
    await replica.reopen(session, tokens);
    expect(seen).toBe(1);
    expect(await replica.sessions.ofUser(tenantId, user.id)).toHaveLength(2);
    expect(await replica.sessions.ofTenant(tenantId, 100)).toHaveLength(2);
  });

  it('are removed from the indexes after their end', async () => {
    const { session } = await replica.open({ session: { absoluteExpiry: Date.now() + 60_000 } });
    const { tenantId, user, handle } = session;
    await replica.store.tokens.end(handle);
    const { index } = replica.store;
    const entries = index.entries.bind(index);
    const listed: (string[] | undefined)[] = [];
    index.entries = async (...given) => {
      const handles = await entries(...given);
      listed.push(handles);
      return handles;
    };
    for (let look = 0; look < 2; look += 1) expect(await replica.sessions.ofUser(tenantId, user.id)).toEqual([]);
    expect(listed).toEqual([[handle], []]);
  });
});
