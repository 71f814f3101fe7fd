// Tests that a person has at most 100 live sessions, and which sessions end if there would be more. The store is in
// memory. store.test.ts tests the number of entries in Redis.
import { expect, it } from 'vitest';
import {
  createMemorySessions,
  hour,
  type MemorySessions,
  openSessions,
  tenantId,
} from '../../../test/support/memory-sessions.ts';
import { Problem } from '../../service/http/problem.ts';

async function liveOf(world: MemorySessions): Promise<string[]> {
  const found = await world.sessions.ofUser(tenantId, 'ana', 'all');
  return found.map(({ session }) => session.handle).toReversed();
}

it('the 101st session of a person ends the oldest one, which is audited', async () => {
  const world = createMemorySessions();
  const handles = await openSessions(world, 100);
  expect(await liveOf(world)).toEqual(handles);
  const [latest = ''] = await openSessions(world, 1);
  expect(await liveOf(world)).toEqual([...handles.slice(1), latest]);
  expect(world.log.lines()).toMatchObject([
    {
      ...{ level: 'info', session: handles[0] },
      audit: {
        ...{ action: 'session.replaced', tenant: tenantId, object: { id: handles[0] }, outcome: 'succeeded' },
        actor: { kind: 'service', id: 'token-handler' },
      },
    },
  ]);
});

it('sessions of other people and tenants do not count, and stay', async () => {
  const world = createMemorySessions();
  const [ben] = await openSessions(world, 1, { session: { user: { id: 'ben', name: 'Ben', roles: [] } } });
  const [other] = await openSessions(world, 1, { session: { tenantId: 'urn:tenant:other' } });
  const handles = await openSessions(world, 100);
  expect(await liveOf(world)).toEqual(handles);
  await openSessions(world, 1);
  for (const handle of [ben, other]) expect(await world.sessions.read(handle ?? '')).toBeDefined();
});

it('sessions that have ended do not count', async () => {
  const world = createMemorySessions();
  const [first = ''] = await openSessions(world, 1);
  // These sessions end without a sign-out, so their index entries stay.
  for (let ended = 0; ended < 150; ended += 1)
    for (const handle of await openSessions(world, 1)) await world.store.tokens.end(handle);
  world.now += 60_000;
  const later = await openSessions(world, 99);
  expect(await liveOf(world)).toEqual([first, ...later]);
});

it('a sign-in below the limit reads no other session', async () => {
  const world = createMemorySessions();
  await openSessions(world, 99);
  let loads = 0;
  const { load } = world.store.tokens;
  world.store.tokens.load = (handle) => {
    loads += 1;
    return load(handle);
  };
  await openSessions(world, 1);
  expect(loads).toBe(0);
});

it('the new session stays although it ends before the others', async () => {
  const world = createMemorySessions();
  const handles = await openSessions(world, 100);
  const [latest = ''] = await openSessions(world, 1, { session: { absoluteExpiry: world.now + hour } });
  expect(new Set(await liveOf(world))).toEqual(new Set([...handles.slice(1), latest]));
});

it('the oldest session ends, even if it would end after all others', async () => {
  const world = createMemorySessions();
  const [oldest = ''] = await openSessions(world, 1, { session: { absoluteExpiry: world.now + 100 * hour } });
  const handles = await openSessions(world, 100);
  expect(await world.sessions.read(oldest)).toBeUndefined();
  expect(new Set(await liveOf(world))).toEqual(new Set(handles));
});

it('concurrent sign-ins leave 100 sessions', async () => {
  const world = createMemorySessions();
  await openSessions(world, 98);
  await Promise.all(Array.from({ length: 10 }, () => openSessions(world, 1)));
  expect(await liveOf(world)).toHaveLength(100);
});

it('a sign-in succeeds although the oldest session cannot be ended, and the next one ends both', async () => {
  const world = createMemorySessions();
  const handles = await openSessions(world, 100);
  const { end } = world.store.tokens;
  world.store.tokens.end = () => Promise.reject(new Problem('unavailable'));
  const [latest = ''] = await openSessions(world, 1);
  expect(await world.sessions.read(latest)).toBeDefined();
  expect(world.log.lines()).toMatchObject([
    { level: 'warn', msg: 'oldest sessions of a person not ended', session: latest, err: { type: 'Problem' } },
  ]);
  world.store.tokens.end = end;
  const [next = ''] = await openSessions(world, 1);
  expect(await liveOf(world)).toEqual([...handles.slice(2), latest, next]);
});
