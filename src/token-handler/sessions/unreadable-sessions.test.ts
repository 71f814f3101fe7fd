// Tests logouts that arrive at a pod whose key ring lacks the key of a session, for example because an operator removed
// the old key too early and later restores it. Sessions are in Redis.
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import { captureLog } from '../../../test/support/captured-log.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import { addReplicaClient, startSessionReplica } from '../../../test/support/session-replica.ts';
import { createProviderLogouts, type ProviderLogout } from '../logout/provider-logouts.ts';

let access: TestAccess;
let redis: TestRedis;
beforeAll(async () => {
  [access, redis] = await Promise.all([startTestAccess(), startTestRedis()]);
  await addReplicaClient(access);
});
afterAll(async () => {
  await redis.close();
  await access.close();
});

const key = (name: string, byte: number) => `${name}:${Buffer.alloc(32, byte).toString('base64')}`;
const [former, current] = [key('former', 1), key('current', 2)];

async function start(keyRing: string) {
  const replica = await startSessionReplica({ access, redisUrl: redis.url, keyRing });
  onTestFinished(() => replica.close());
  return replica;
}

/** Opens two sessions of a person, one of which has the session id `sid` at the identity provider. */
async function openTwo() {
  const pod = await start(former);
  return [await pod.open({ session: { sid: 'sid of ana' } }), await pod.open()] as const;
}

it.each<[string, (subject: string) => Pick<ProviderLogout, 'sid' | 'sub'>, live: number]>([
  ['session', () => ({ sid: 'sid of ana' }), 1],
  ['person', (sub) => ({ sub }), 0],
])(
  'a logout of a %s whose sessions the pod cannot decrypt lasts after the key is restored',
  async (what, named, live) => {
    const opened = await openTwo();
    const { tenantId, clientId, user } = opened[0].session;
    const { sessions } = await start(current);
    const logouts = createProviderLogouts({ sessions, clock: () => new Date(), log: captureLog().log });
    await logouts.end({ jti: what, tenantId, clientId, algorithm: 'RS256', ...named(user.id) });
    const restored = await start(`${current},${former}`);
    const found = await Promise.all(opened.map(({ cookie }) => restored.read(cookie)));
    expect(found[0]).toBeUndefined();
    expect(found.filter((one) => one !== undefined)).toHaveLength(live);
  },
);

it('a pod that cannot decrypt a session does not end it for a single request', async () => {
  const [{ cookie }] = await openTwo();
  expect(await (await start(current)).read(cookie)).toBeUndefined();
  expect(await (await start(`${current},${former}`)).read(cookie)).toBeDefined();
});
