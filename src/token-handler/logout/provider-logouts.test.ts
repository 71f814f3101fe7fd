// Tests which sessions a logout at the identity provider ends, and that a sign-in during this logout opens no session.
import { beforeEach, describe, expect, it } from 'vitest';
import {
  createMemorySessions,
  type MemorySessions,
  openSessions,
  removeCap,
  type Visitor,
} from '../../../test/support/memory-sessions.ts';
import { createProviderLogouts, type ProviderLogout, type ProviderLogouts } from './provider-logouts.ts';

const tenantId = 'urn:tenant:demo';
let world: MemorySessions;
let logouts: ProviderLogouts;
let serial = 0;
beforeEach(() => {
  world = createMemorySessions();
  logouts = createProviderLogouts({ ...world, clock: () => new Date(world.now), log: world.log.log });
});

/** Returns a logout whose token id (`jti`) has not been used before. */
const logout = (changes: Partial<ProviderLogout>): ProviderLogout => {
  serial += 1;
  return { jti: `token ${serial}`, tenantId, clientId: 'web', algorithm: 'ES256', ...changes };
};
const person = (id: string) => ({ id, name: id, roles: [] });
const isLive = async ({ session }: Visitor) => (await world.sessions.read(session.handle)) !== undefined;

describe('a logout at the identity provider', () => {
  it('with a session ends only the sessions of the client that belong to it', async () => {
    const [one, two] = [await world.open({ session: { sid: 's1' } }), await world.open({ session: { sid: 's1' } })];
    const others = [
      await world.open({ session: { sid: 's2' } }),
      await world.open({ session: { sid: 's1', clientId: 'other' } }),
      await world.open({ session: { sid: 's1', tenantId: 'urn:tenant:other' } }),
      await world.open(),
    ];
    expect(await logouts.end(logout({ sid: 's1', sub: 'ana' }))).toBe(2);
    expect(await Promise.all([one, two].map(isLive))).toEqual([false, false]);
    expect(await Promise.all(others.map(isLive))).toEqual([true, true, true, true]);
    const audit = { action: 'session.provider-logout', actor: { kind: 'identity-provider' }, tenant: tenantId };
    const eventOf = ({ session: { handle: id } }: Visitor) =>
      expect.objectContaining({ audit: { ...audit, object: { type: 'session', id }, outcome: 'succeeded' } });
    expect(world.log.lines()).toHaveLength(2);
    expect(world.log.lines()).toEqual(expect.arrayContaining([eventOf(one), eventOf(two)]));
    expect(await logouts.end(logout({ sid: 's2' }))).toBe(1);
  });

  it('with the session of another person ends nothing', async () => {
    const visitor = await world.open({ session: { sid: 's1' } });
    expect(await logouts.end(logout({ sid: 's1', sub: 'ben' }))).toBe(0);
    expect(await isLive(visitor)).toBe(true);
  });

  it('with a person ends all sessions of the person at this client', async () => {
    const own: Visitor[] = [];
    for (let opened = 0; opened < 99; opened += 1) own.push(await world.open());
    const others = [
      await world.open({ session: { user: person('ben') } }),
      await world.open({ session: { clientId: 'other' } }),
    ];
    expect(await logouts.end(logout({ sub: 'ana' }))).toBe(99);
    expect(await Promise.all(own.slice(0, 2).map(isLive))).toEqual([false, false]);
    expect(await Promise.all(others.map(isLive))).toEqual([true, true]);
    expect(await logouts.end(logout({ sub: 'ana' }))).toBe(0);
  });

  it('with a person ends all sessions, even if an older version opened more than a person may have', async () => {
    world = createMemorySessions({ prepare: removeCap });
    logouts = createProviderLogouts({ ...world, clock: () => new Date(world.now), log: world.log.log });
    await openSessions(world, 101);
    expect(await logouts.end(logout({ sub: 'ana' }))).toBe(101);
  });

  it('counts only sessions that were live', async () => {
    await world.open();
    const { end } = world.store.tokens;
    world.store.tokens.end = async (handle) => {
      await end(handle);
      return false;
    };
    expect(await logouts.end(logout({ sub: 'ana' }))).toBe(0);
    expect(world.log.lines()).toEqual([]);
  });

  it('cannot be repeated with the same token for ten minutes', async () => {
    const given = logout({ sub: 'ana' });
    expect(await logouts.end(given)).toBe(0);
    const visitor = await world.open();
    expect(await logouts.end(given)).toBe('used');
    expect(await logouts.end({ ...given, tenantId: 'urn:tenant:other' })).toBe(0);
    world.now += 600_000;
    expect(await logouts.end(given)).toBe('used');
    expect(await isLive(visitor)).toBe(true);
    world.now += 1;
    expect(await logouts.end(given)).toBe(1);
  });

  it('is not taken for another whose tenant and token would read the same in one text', async () => {
    expect(await logouts.end(logout({ jti: 'x1', sub: 'ana' }))).toBe(0);
    expect(await logouts.end(logout({ tenantId: `${tenantId}x`, jti: '1', sub: 'ana' }))).toBe(0);
  });

  it('that failed can be repeated', async () => {
    await world.open();
    const { end } = world.store.tokens;
    world.store.tokens.end = () => Promise.reject(new Error('the store is away'));
    const given = logout({ sub: 'ana' });
    await expect(logouts.end(given)).rejects.toThrow('the store is away');
    world.store.tokens.end = end;
    expect(await logouts.end(given)).toBe(1);
  });
});

describe('the algorithm of a logout token', () => {
  it('must be one with which the ID tokens of the client are signed, once such an ID token is known', async () => {
    const { session } = await world.open();
    expect(await logouts.end(logout({ sub: 'nobody', algorithm: 'RS256' }))).toBe(0);
    await logouts.keepAlgorithm(session, 'ES256');
    expect(await logouts.end(logout({ sub: 'ana', algorithm: 'RS256' }))).toBe('other algorithm');
    expect(await logouts.end(logout({ clientId: 'other', sub: 'ana', algorithm: 'RS256' }))).toBe(0);
    expect(await logouts.end(logout({ tenantId: 'urn:tenant:other', sub: 'ana', algorithm: 'RS256' }))).toBe(0);
    await logouts.keepAlgorithm(session, 'RS256');
    for (const algorithm of ['ES256', 'RS256']) expect(await logouts.end(logout({ sub: 'ben', algorithm }))).toBe(0);
    expect(await logouts.end(logout({ sub: 'ana', algorithm: 'PS256' }))).toBe('other algorithm');
  });

  it('is known for as long as a session may last', async () => {
    const { session } = await world.open();
    await logouts.keepAlgorithm(session, 'ES256');
    const given = logout({ sub: 'nobody', algorithm: 'RS256' });
    world.now += world.sessions.limits.maxAge;
    expect(await logouts.end(given)).toBe('other algorithm');
    world.now += 1;
    expect(await logouts.end(given)).toBe(0);
  });
});

describe('a sign-in that is running', () => {
  it.each<[string, Partial<ProviderLogout>, boolean]>([
    ['of its session', { sid: 's1' }, true],
    ['of its session and its person', { sid: 's1', sub: 'ana' }, true],
    ['of its person', { sub: 'ana' }, true],
    ['of another session of its person', { sid: 's2', sub: 'ana' }, false],
    ['of another person', { sub: 'ben' }, false],
    ['of its person at another client', { sub: 'ana', clientId: 'other' }, false],
    ['of its person in another tenant', { sub: 'ana', tenantId: 'urn:tenant:other' }, false],
    ['of a session that is named like its person', { sid: 'ana' }, false],
  ])('opens no session after a logout %s: %j', async (_whose, changes, hasEnded) => {
    const { session } = await world.open({ session: { sid: 's1' } });
    const began = world.now;
    expect(await logouts.hasEnded(session, began)).toBe(false);
    await logouts.end(logout(changes));
    expect(await logouts.hasEnded(session, began)).toBe(hasEnded);
    // A code that was redeemed after the logout belongs to a later session, which the logout did not name.
    expect(await logouts.hasEnded(session, began + 1)).toBe(false);
    world.now += 600_000;
    expect(await logouts.hasEnded(session, began)).toBe(hasEnded);
    world.now += 1;
    expect(await logouts.hasEnded(session, began)).toBe(false);
  });

  it('begins at the time of the store, in which logouts are recorded too', async () => {
    world.store.marks.time = async () => 42;
    expect(await logouts.time()).toBe(42);
  });

  it('without a session at the provider ends with its person only', async () => {
    const { session } = await world.open();
    await logouts.end(logout({ sid: 's1' }));
    expect(await logouts.hasEnded(session, world.now)).toBe(false);
    await logouts.end(logout({ sub: 'ana' }));
    expect(await logouts.hasEnded(session, world.now)).toBe(true);
  });

  it('sees a logout that searches at the same time', async () => {
    const { session } = await world.open();
    const { entries } = world.store.index;
    let seen = false;
    world.store.index.entries = async (...given) => {
      seen = await logouts.hasEnded(session, world.now);
      return entries(...given);
    };
    await logouts.end(logout({ sub: 'ana' }));
    expect(seen).toBe(true);
  });
});
