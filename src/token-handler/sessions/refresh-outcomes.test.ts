// Tests every outcome of a refresh request, on two replicas with the same Redis: whether the refresh token is sent
// again, and whether the session ends. A proxy in front of a real identity provider produces the outcomes and counts
// the requests.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import {
  addReplicaClient,
  type OpenedSession,
  type SessionReplica,
  startSessionReplica,
} from '../../../test/support/session-replica.ts';
import { startTcpGate, type TcpGate } from '../../../test/support/tcp-gate.ts';
import { type RefreshFate, startTokenDoor, type TokenDoor } from '../../../test/support/token-door.ts';

let access: TestAccess;
let redis: TestRedis;
let door: TokenDoor;
let gate: TcpGate;
let replicas: [SessionReplica, SessionReplica];
let offset = 0;
const clock = () => new Date(Date.now() + offset);

beforeAll(async () => {
  [access, redis] = await Promise.all([startTestAccess(), startTestRedis()]);
  await addReplicaClient(access);
  door = await startTokenDoor(access.url);
  gate = await startTcpGate(Number(new URL(door.url).port));
  const accessUrl = `http://127.0.0.1:${gate.port}/auth`;
  const start = () => startSessionReplica({ access, accessUrl, clock, redisUrl: redis.url, refreshTimeout: 2_000 });
  replicas = [await start(), await start()];
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  await Promise.all([access.close(), redis.close(), gate.close(), door.close()]);
});

/** Opens a session whose access token has 15 s left, so that its next request begins a refresh. */
async function openDue(): Promise<OpenedSession> {
  offset = 0;
  await gate.open();
  door.set(0);
  const opened = await replicas[0].open();
  for (const replica of replicas) await replica.call(opened.cookie);
  door.presented.length = 0;
  for (const { outcomes } of replicas) outcomes.length = 0;
  offset = 285_000;
  return opened;
}

/** Begins a refresh on the first replica, and waits until its outcome is stored. */
async function refreshOnce({ cookie, session }: OpenedSession): Promise<void> {
  await replicas[0].call(cookie);
  await expect.poll(() => replicas[0].outcomes).not.toEqual([]);
  const intent = () => redis.command('HGET', `{sess:${session.handle}}:tokens`, 'intent');
  await expect.poll(intent).toBeNull();
}

const ambiguous: [string, RefreshFate][] = [
  ['500', { status: 500 }],
  ['500 after the provider has processed it', { status: 500, isProcessed: true }],
  ['502', { status: 502, body: '<html>Bad Gateway</html>', headers: { 'content-type': 'text/html' } }],
  ['504 after the provider has processed it', { status: 504, isProcessed: true }],
  ['504 with Retry-After', { status: 504, headers: { 'retry-after': '1' } }],
  ['503 without Retry-After', { status: 503 }],
  ['400 of another kind', { status: 400, error: 'invalid_request' }],
  ['401 of a gateway', { status: 401, body: 'no', headers: { 'www-authenticate': 'Basic realm="gateway"' } }],
  ['401 of another kind', { status: 401, error: 'access_denied' }],
  ['404', { status: 404, body: 'not here' }],
  ['a redirect', { status: 307, headers: { location: '/elsewhere' } }],
  ['a time-out', 'hang'],
  ['a reset', 'reset'],
  ['a lost response', 'lost response'],
  ['half a response', 'half a response'],
  ['200 with invalid JSON', { status: 200, body: '{"access_token": "x', isProcessed: true }],
  ['200 without an access token', { status: 200, body: '{}', isProcessed: true }],
];

const unprocessed: [string, RefreshFate | 'refused connection', number][] = [
  ['429', { status: 429 }, 2],
  ['429 with Retry-After', { status: 429, headers: { 'retry-after': '5' } }, 2],
  ['503 with Retry-After', { status: 503, headers: { 'retry-after': '5' } }, 2],
  ['401 invalid_client', { status: 401, error: 'invalid_client', headers: { 'www-authenticate': 'Basic' } }, 2],
  ['401 unauthorized_client, with which Keycloak refuses a secret', { status: 401, error: 'unauthorized_client' }, 2],
  ['a refused connection', 'refused connection', 1],
];

describe('a refresh token', () => {
  it.each(ambiguous)(
    'is never presented again after %s, and the session ends with its access token',
    async (_, fate) => {
      const opened = await openDue();
      const { cookie, tokens } = opened;
      door.set(fate);
      await refreshOnce(opened);
      door.set(0);
      offset += 7_000;
      for (const replica of replicas) expect(await replica.call(cookie)).toBe(tokens.accessToken);
      offset += 9_000;
      for (const replica of replicas) expect(await replica.call(cookie)).toBe('refused');
      for (const replica of replicas) expect(await replica.read(cookie)).toBeUndefined();
      expect(door.presented).toEqual([tokens.refreshToken]);
    },
  );

  it.each(unprocessed)('is presented again after %s, and the session continues', async (_, fate, presentations) => {
    const opened = await openDue();
    const { cookie, tokens } = opened;
    if (fate === 'refused connection') await gate.shut();
    else door.set(fate);
    await refreshOnce(opened);
    await gate.open();
    door.set(0);
    await delay(50);
    expect(await replicas[0].call(cookie)).toBe(tokens.accessToken);
    expect(door.presented).toHaveLength(presentations - 1);
    offset += 16_000;
    const [one, two] = await Promise.all(replicas.map((replica) => replica.call(cookie)));
    expect([one, two]).not.toContain('refused');
    expect([one === tokens.accessToken, one === two]).toEqual([false, true]);
    expect(door.presented).toEqual(Array(presentations).fill(tokens.refreshToken));
  });

  it('that was not processed lets calls with an expired access token fail with 503 until Retry-After is over', async () => {
    const { cookie } = await openDue();
    offset += 20_000;
    door.set({ status: 429, headers: { 'retry-after': '30' } });
    const failure = { status: 503, headers: { 'Retry-After': '30' } };
    await expect(replicas[0].call(cookie)).rejects.toMatchObject(failure);
    door.set(0);
    offset += 20_000;
    await expect(replicas[0].call(cookie)).rejects.toMatchObject({
      status: 503,
      headers: { 'Retry-After': expect.stringMatching(/^(?:10|[5-9])$/) },
    });
    offset += 10_000;
    expect(await replicas[0].call(cookie)).not.toBe('refused');
  });
});
