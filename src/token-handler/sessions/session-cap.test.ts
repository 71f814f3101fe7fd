// Tests the caps of live sessions of a person and of a tenant, and which sessions end beyond them. The store is in
// memory. store.test.ts tests the number of entries in Redis.
import { describe, expect, it } from 'vitest';
import {
  createMemorySessions,
  hour,
  type MemorySessions,
  openSessions,
  tenantId,
} from '../../../test/support/memory-sessions.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantIndex } from './session-indexes.ts';

async function liveOf(world: MemorySessions): Promise<string[]> {
  const found = await world.sessions.ofUser(tenantId, 'ana', 'all');
  return found.map(({ session }) => session.handle).toReversed();
}

async function replaced({ metrics }: MemorySessions, cap: 'person' | 'tenant'): Promise<string | undefined> {
  const text = await metrics.registry.metrics();
  return new RegExp(`formgate_replaced_sessions_total\\{cap="${cap}"\\} (\\d+)`).exec(text)?.[1];
}

it('the 101st session of a person ends the oldest one, which is audited', async () => {
  const world = createMemorySessions();
  const handles = await openSessions(world, 100);
  expect(await liveOf(world)).toEqual(handles);
  const [latest = ''] = await openSessions(world, 1);
  expect(await liveOf(world)).toEqual([...handles.slice(1), latest]);
  expect(world.log.lines()).toMatchObject([
    {
      ...{ level: 'info', session: handles[0], msg: 'session ended: its person has too many sessions' },
      audit: {
        ...{ action: 'session.replaced', tenant: tenantId, object: { id: handles[0] }, outcome: 'succeeded' },
        actor: { kind: 'service', id: 'token-handler' },
      },
    },
  ]);
  expect(await replaced(world, 'person')).toBe('1');
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
    { level: 'warn', msg: 'oldest sessions not ended', session: latest, err: { type: 'Problem' } },
  ]);
  world.store.tokens.end = end;
  const [next = ''] = await openSessions(world, 1);
  expect(await liveOf(world)).toEqual([...handles.slice(2), latest, next]);
});

describe('a tenant with the maximum number of sessions', () => {
  const people = ['ben', 'cleo', 'dan', 'eva'];
  const open = async (world: MemorySessions, id: string) =>
    (await openSessions(world, 1, { session: { user: { id, name: id, roles: [] } } }))[0] ?? '';
  const start = async (mostOfTenant = 4) => {
    const world = createMemorySessions({ limits: { mostOfTenant } });
    const handles: string[] = [];
    for (const person of people) handles.push(await open(world, person));
    return { world, handles };
  };
  const isLive = async ({ sessions }: MemorySessions, handle: string) => (await sessions.read(handle)) !== undefined;
  const live = async (world: MemorySessions, handles: string[]) =>
    Promise.all(handles.map((handle) => isLive(world, handle)));

  it('loses its oldest one with the next sign-in, which is audited and counted', async () => {
    const { world, handles } = await start();
    expect(await live(world, handles)).toEqual([true, true, true, true]);
    const next = await open(world, 'fay');
    expect(await live(world, [...handles, next])).toEqual([false, true, true, true, true]);
    expect(world.log.lines()).toMatchObject([
      {
        ...{ level: 'info', session: handles[0], msg: 'session ended: its tenant has too many sessions' },
        audit: { action: 'session.replaced', tenant: tenantId, object: { id: handles[0] } },
      },
    ]);
    expect(await replaced(world, 'tenant')).toBe('1');
  });

  it('loses none while one of them has ended, even without a sign-out', async () => {
    const { world, handles } = await start();
    await world.store.tokens.end(handles[0] ?? '');
    world.now += 60_000;
    const next = await open(world, 'fay');
    expect(await live(world, [...handles.slice(1), next])).toEqual([true, true, true, true]);
    expect(await replaced(world, 'tenant')).toBe('0');
    // Only the entry of the ended session has been removed.
    expect(await world.store.index.oldest(tenantIndex(tenantId), 9)).toEqual([...handles.slice(1), next]);
    expect(world.log.lines()).toEqual([]);
  });

  it('loses none, and reads none, when it reaches the maximum', async () => {
    const world = createMemorySessions({ limits: { mostOfTenant: 1 } });
    world.store.index.oldest = () => Promise.reject(new Problem('unavailable'));
    const handle = await open(world, 'ben');
    expect([await isLive(world, handle), world.log.lines()]).toEqual([true, []]);
  });

  it('does not affect other tenants', async () => {
    const { world, handles } = await start();
    await openSessions(world, 5, { session: { tenantId: 'urn:tenant:other' } });
    expect(await live(world, handles)).toEqual([true, true, true, true]);
  });

  it('loses several if the maximum has become smaller', async () => {
    const { world, handles } = await start();
    world.sessions.limits.mostOfTenant = 2;
    const next = await open(world, 'fay');
    expect(await live(world, [...handles, next])).toEqual([false, false, false, true, true]);
  });

  it('keeps the entry of a sign-in that is still running', async () => {
    const { world } = await start(1);
    const { start: begin } = world.store.tokens;
    const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    world.store.tokens.start = async (...args) => {
      reached.resolve();
      await released.promise;
      await begin(...args);
    };
    const slow = open(world, 'gil');
    await reached.promise;
    world.store.tokens.start = begin;
    await open(world, 'hal');
    released.resolve();
    const handle = await slow;
    const listed = await world.sessions.ofTenant(tenantId, 10);
    expect(listed?.map(({ session }) => session.handle)).toContain(handle);
  });
});
