// Tests the lists of sessions by person, by tenant, and by session at the identity provider: which sessions they
// contain, in which order, and when an entry is removed.
import { expect, it } from 'vitest';
import {
  createMemorySessions,
  hour,
  openSessions,
  removeCap,
  tenantId,
} from '../../../test/support/memory-sessions.ts';
import { providerIndex, tenantIndex, userIndex } from './session-indexes.ts';

const handlesOf = (found: { session: { handle: string } }[] | undefined) => found?.map(({ session }) => session.handle);

/** Opens sessions, each of which expires later than the one before. Returns their handles, latest first. */
const openMany = async (...given: Parameters<typeof openSessions>) => (await openSessions(...given)).toReversed();

const withoutCap = () => createMemorySessions({ prepare: removeCap });

it('a person has only the own sessions of a tenant, latest first', async () => {
  const world = createMemorySessions();
  const own = await openMany(world, 3);
  await openMany(world, 1, { session: { user: { id: 'ben', name: 'Ben', roles: [] } } });
  await openMany(world, 1, { session: { tenantId: 'urn:tenant:other' } });
  expect(handlesOf(await world.sessions.ofUser(tenantId, 'ana'))).toEqual(own);
  expect(await world.sessions.ofUser('urn:tenant:unknown', 'ana')).toEqual([]);
});

it('a person’s list has at most 100 sessions, unless all of them shall end', async () => {
  const world = withoutCap();
  const handles = await openMany(world, 101);
  expect(handlesOf(await world.sessions.ofUser(tenantId, 'ana'))).toEqual(handles.slice(0, 100));
  expect(handlesOf(await world.sessions.ofUser(tenantId, 'ana', 'all'))).toEqual(handles);
});

it('at most 100 sessions of a list are read concurrently', async () => {
  const world = withoutCap();
  await openMany(world, 101);
  const { tokens } = world.store;
  const { load } = tokens;
  let [running, most] = [0, 0];
  tokens.load = async (handle) => {
    running += 1;
    most = Math.max(most, running);
    const stored = await load(handle);
    running -= 1;
    return stored;
  };
  await world.sessions.ofUser(tenantId, 'ana', 'all');
  expect(most).toBe(100);
});

it('a tenant’s list has pages', async () => {
  const world = createMemorySessions();
  const [first, second, third] = await openMany(world, 3);
  expect(handlesOf(await world.sessions.ofTenant(tenantId, 2))).toEqual([first, second]);
  expect(handlesOf(await world.sessions.ofTenant(tenantId, 2, second))).toEqual([third]);
});

it('a tenant’s list has its next page although all sessions of the page before have ended', async () => {
  const world = createMemorySessions();
  const handles = await openMany(world, 5);
  const ended: string[] = [];
  for (let after: string | undefined; ; after = ended.at(-1)) {
    const page = (await world.sessions.ofTenant(tenantId, 2, after)) ?? [];
    if (page.length === 0) break;
    for (const { session } of page) await world.sessions.end(session);
    ended.push(...(handlesOf(page) ?? []));
  }
  expect(ended).toEqual(handles);
  expect(await world.sessions.ofTenant(tenantId, 2, 'unknown')).toBeUndefined();
});

it('a page is full although many later sessions have ended', async () => {
  const world = withoutCap();
  const live = await openMany(world, 3);
  for (const handle of await openMany(world, 230)) await world.store.tokens.end(handle);
  expect(handlesOf(await world.sessions.ofTenant(tenantId, 1))).toEqual(live.slice(0, 1));
  expect(handlesOf(await world.sessions.ofTenant(tenantId, 100, live[0]))).toEqual(live.slice(1));
  expect(handlesOf(await world.sessions.ofUser(tenantId, 'ana'))).toEqual(live);
});

it('a list of very many ended sessions is refused while they are removed, and never seems to be empty', async () => {
  const world = createMemorySessions();
  const live = await openMany(world, 1);
  for (let ended = 0; ended < 2_050; ended += 1)
    await world.store.index.enter([tenantIndex(tenantId)], `ended ${ended}`, world.now + 12 * hour, world.now);
  world.now += 60_000;
  await expect(world.sessions.ofTenant(tenantId, 100)).rejects.toMatchObject({
    slug: 'unavailable',
    headers: { 'Retry-After': '1' },
  });
  expect(handlesOf(await world.sessions.ofTenant(tenantId, 100))).toEqual(live);
});

it.each([
  { sessions: 150, top: 100 },
  { sessions: 250, top: 'all' },
] as const)('a list of $sessions sessions is read at once: $top', async ({ sessions, top }) => {
  const world = withoutCap();
  const handles = await openMany(world, sessions);
  const { index } = world.store;
  const { entries } = index;
  let read = 0;
  index.entries = (...query) => {
    read += 1;
    return entries(...query);
  };
  const found = top === 'all' ? world.sessions.ofUser(tenantId, 'ana', top) : world.sessions.ofTenant(tenantId, top);
  expect(handlesOf(await found)).toEqual(handles.slice(0, top === 'all' ? sessions : top));
  expect(read).toBe(1);
});

it('a page contains each session once, although it is read in parts between ended sessions', async () => {
  const world = withoutCap();
  const older = await openMany(world, 130);
  for (const handle of await openMany(world, 120)) await world.store.tokens.end(handle);
  const latest = await openMany(world, 50);
  expect(handlesOf(await world.sessions.ofTenant(tenantId, 100))).toEqual([...latest, ...older].slice(0, 100));
  expect(handlesOf(await world.sessions.ofTenant(tenantId, 200))).toEqual([...latest, ...older]);
});

it('a page ends early if very many ended sessions follow its live ones', async () => {
  const world = createMemorySessions();
  for (let ended = 0; ended < 2_500; ended += 1)
    await world.store.index.enter([tenantIndex(tenantId)], `ended ${ended}`, world.now + hour, world.now);
  const live = await openMany(world, 1);
  world.now += 60_000;
  expect(handlesOf(await world.sessions.ofTenant(tenantId, 100))).toEqual(live);
});

it('a session at the identity provider has the sessions of one client', async () => {
  const world = withoutCap();
  const handles = await openMany(world, 101, { session: { sid: 'one' } });
  await openMany(world, 1, { session: { sid: 'two' } });
  await openMany(world, 1, { session: { sid: 'one', clientId: 'other' } });
  const pages = await Array.fromAsync(world.sessions.ofProviderSession({ tenantId, clientId: 'web' }, 'one'));
  expect(pages.map((page) => page.length)).toEqual([100, 1]);
  expect(handlesOf(pages.flat())).toEqual(handles);
});

it('all of its sessions are found in pages, although each page is ended before the next one is read', async () => {
  const world = withoutCap();
  const handles = await openMany(world, 250, { session: { sid: 'one' } });
  const read = () => world.sessions.ofProviderSession({ tenantId, clientId: 'web' }, 'one');
  const found: string[] = [];
  for await (const page of read()) {
    found.push(...(handlesOf(page) ?? []));
    for (const { session } of page) await world.sessions.end(session);
  }
  expect(found).toEqual(handles);
  expect(await Array.fromAsync(read())).toEqual([]);
});

it('its pages end with an error if the position in the list is lost', async () => {
  const world = withoutCap();
  await openMany(world, 101, { session: { sid: 'one' } });
  const { entries } = world.store.index;
  world.store.index.entries = async (name, top, after) => (after === undefined ? entries(name, top) : undefined);
  const pages = Array.fromAsync(world.sessions.ofProviderSession({ tenantId, clientId: 'web' }, 'one'));
  await expect(pages).rejects.toMatchObject({ slug: 'unavailable' });
});

it('thousands of entries of ended sessions do not end its pages early', async () => {
  const world = createMemorySessions();
  const live = await openMany(world, 1, { session: { sid: 'one' } });
  const index = [providerIndex(tenantId, 'web', 'one')];
  for (let ended = 0; ended < 2_500; ended += 1)
    await world.store.index.enter(index, `ended ${ended}`, world.now + hour, world.now + 1);
  world.now += 60_000;
  const pages = await Array.fromAsync(world.sessions.ofProviderSession({ tenantId, clientId: 'web' }, 'one'));
  expect(handlesOf(pages.flat())).toEqual(live);
});

it('an entry whose session has ended is removed, unless its sign-in may be incomplete', async () => {
  const world = createMemorySessions();
  const { session } = await world.open();
  const lists = [tenantIndex(tenantId), userIndex(tenantId, 'ana')];
  const entries = () => Promise.all(lists.map((name) => world.store.index.entries(name, 10)));
  await world.store.tokens.end(session.handle);
  world.now += 59_999;
  expect(await world.sessions.ofTenant(tenantId, 10)).toEqual([]);
  expect(await entries()).toEqual([[session.handle], [session.handle]]);
  world.now += 1;
  expect(await world.sessions.ofTenant(tenantId, 10)).toEqual([]);
  // The entry was removed only from the list that was read.
  expect(await entries()).toEqual([[], [session.handle]]);
});

it('an entry of a live session stays', async () => {
  const world = createMemorySessions();
  const { session } = await world.open();
  world.now += hour - 1;
  expect(handlesOf(await world.sessions.ofTenant(tenantId, 10))).toEqual([session.handle]);
  expect(await world.store.index.entries(tenantIndex(tenantId), 10)).toEqual([session.handle]);
});
