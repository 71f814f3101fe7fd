// Tests which sessions are found, how long they live, and which lists contain them. Also tests how often the store is
// read and written. The store is in memory, and the test sets the clock.
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  createMemorySessions,
  hour,
  type MemorySessions,
  memoryKeys,
  requestWith,
  settle,
  tenantId,
} from '../../../test/support/memory-sessions.ts';
import { Problem } from '../../service/http/problem.ts';
import { recordContext, recordKey } from './session.ts';
import { indexesOf } from './session-indexes.ts';

/** Records the calls of one function of the token store. Returns the list of these calls. */
function watch({ store: { tokens } }: MemorySessions, name: 'load' | 'touch') {
  const calls: unknown[][] = [];
  const real = tokens[name].bind(tokens) as (...given: unknown[]) => Promise<unknown>;
  Object.assign(tokens, {
    [name](...given: unknown[]) {
      calls.push(given);
      return real(...given);
    },
  });
  return calls;
}

describe('a request', () => {
  it('without a cookie, or with one of no session, has no session', async () => {
    const world = createMemorySessions();
    const loads = watch(world, 'load');
    expect(await world.sessions.ofRequest(requestWith(undefined))).toBeUndefined();
    expect(await world.sessions.see(requestWith('formgate_session=s%3Aforged.signature'))).toBeUndefined();
    expect(loads).toEqual([]);
  });

  it('has the session of its cookie, with the roles of its last tokens', async () => {
    const world = createMemorySessions();
    const { request, session, tokens } = await world.open();
    const live = await world.sessions.ofRequest(request());
    expect(live?.session).toEqual({ ...session, user: { ...session.user, roles: ['role of the token'] } });
    expect(await live?.accessToken()).toBe('access 1');
    expect(await world.sessions.see(request())).toMatchObject({ tokens, state: { version: 1, touched: world.now } });
    await world.sessions.close();
  });

  it('extends the session, once a minute at most', async () => {
    const world = createMemorySessions();
    const { request, session } = await world.open();
    const touches = watch(world, 'touch');
    world.now += 59_999;
    await world.sessions.ofRequest(request());
    expect(touches).toEqual([]);
    world.now += 1;
    for (let requests = 0; requests < 3; requests += 1) await world.sessions.ofRequest(request());
    expect(touches).toEqual([[session.handle, world.now, 60_000]]);
    world.now += 60_000 - 1;
    await world.sessions.ofRequest(request());
    expect(touches).toHaveLength(1);
  });

  it('extends a session with a short idle time four times in that time', async () => {
    const world = createMemorySessions({ limits: { idle: 100_000 } });
    const { request, session } = await world.open();
    const touches = watch(world, 'touch');
    world.now += 24_999;
    await world.sessions.ofRequest(request());
    world.now += 1;
    await world.sessions.ofRequest(request());
    expect(touches).toEqual([[session.handle, world.now, 25_000]]);
  });

  it('is recorded by one write at a time, and by the next request after a failed write', async () => {
    const world = createMemorySessions();
    const { request } = await world.open();
    const { tokens } = world.store;
    const { touch } = tokens;
    const writing = Promise.withResolvers<boolean>();
    let writes = 0;
    tokens.touch = () => {
      writes += 1;
      return writing.promise;
    };
    world.now += 60_000;
    for (let requests = 0; requests < 3; requests += 1) await world.sessions.ofRequest(request());
    expect(writes).toBe(1);
    writing.reject(new Error('the store is away'));
    await settle();
    tokens.touch = touch;
    await world.sessions.ofRequest(request());
    expect((await world.sessions.see(request()))?.state.touched).toBe(world.now);
  });

  it('starts a refresh before the access token expires, unless it only looks', async () => {
    const world = createMemorySessions();
    const { request } = await world.open();
    world.now += 241_000 - 1_001;
    await world.sessions.ofRequest(request());
    await settle();
    expect(world.presented).toEqual([]);
    world.now += 30_001;
    await world.sessions.see(request());
    await settle();
    expect(world.presented).toEqual([]);
    const live = await world.sessions.ofRequest(request());
    expect(await live?.accessToken()).toBe('access 1');
    await settle();
    expect(world.presented).toEqual(['refresh 1']);
    expect(await (await world.sessions.ofRequest(request()))?.accessToken()).toBe('new 1');
  });

  it('gets a new access token after the old one has expired', async () => {
    const world = createMemorySessions();
    const { request } = await world.open();
    const live = await world.sessions.ofRequest(request());
    world.now += 300_000;
    expect(await live?.accessToken()).toBe('new 1');
  });
});

describe('a session', () => {
  it('is read from the store once, and again after each change', async () => {
    const world = createMemorySessions();
    const { request, session } = await world.open();
    const loads = watch(world, 'load');
    for (let requests = 0; requests < 3; requests += 1) await world.sessions.see(request());
    expect(loads).toHaveLength(1);
    expect(world.sessions.cached(session.handle)?.session.handle).toBe(session.handle);
    // `see` returns a cached session and not a promise, because a promise would slow down each request.
    expect(world.sessions.see(request())).toBe(world.sessions.cached(session.handle));
    await world.store.tokens.touch(session.handle, world.now, 0);
    expect(world.sessions.cached(session.handle)).toBeUndefined();
    expect(await world.sessions.see(request())).toBeDefined();
    expect(loads).toHaveLength(2);
  });

  it.each([
    ['access token', { accessToken: 'x'.repeat(4_000) }],
    ['ID token', { idToken: 'x'.repeat(8_000) }],
  ])('is kept with a long %s, too', async (_which, tokens) => {
    const world = createMemorySessions();
    const { request, session } = await world.open({ tokens });
    expect(await world.sessions.see(request())).toMatchObject({ tokens });
    expect(world.sessions.cached(session.handle)).toBeDefined();
  });

  it('is read each time from a store that does not track changes', async () => {
    const world = createMemorySessions();
    const { request } = await world.open();
    Object.assign(world.store.tokens, { isTracked: false });
    const loads = watch(world, 'load');
    for (let requests = 0; requests < 3; requests += 1) expect(await world.sessions.see(request())).toBeDefined();
    expect(loads).toHaveLength(3);
  });

  it('is not kept unless the store tracked its changes during the whole read', async () => {
    const { world } = createReporting();
    const { session } = await world.open();
    const { tokens } = world.store;
    const load = tokens.load;
    for (const [before, after] of [
      [false, true],
      [true, false],
    ]) {
      Object.assign(tokens, { isTracked: before });
      tokens.load = async (handle) => {
        const stored = await load(handle);
        Object.assign(tokens, { isTracked: after });
        return stored;
      };
      expect(await world.sessions.read(session.handle)).toBeDefined();
      expect(world.sessions.cached(session.handle)).toBeUndefined();
    }
  });

  it('is not kept if it changed, or anything may have changed, while it was read', async () => {
    const { world, report } = createReporting();
    const { session, request } = await world.open();
    const { tokens } = world.store;
    const load = tokens.load;
    for (const changed of [session.handle, null]) {
      report(null);
      tokens.load = async (handle) => {
        const stored = await load(handle);
        report(changed);
        return stored;
      };
      expect(await world.sessions.see(request())).toBeDefined();
      expect(world.sessions.cached(session.handle)).toBeUndefined();
    }
    tokens.load = load;
    await world.sessions.see(request());
    report('another session');
    expect(world.sessions.cached(session.handle)).toBeDefined();
    report(null);
    expect(world.sessions.cached(session.handle)).toBeUndefined();
  });

  it('is not kept by an old read that ends after a new one', async () => {
    const { world, report } = createReporting();
    const { session } = await world.open();
    const { tokens } = world.store;
    const load = tokens.load;
    const slow = Promise.withResolvers<void>();
    tokens.load = async (handle) => {
      const stored = await load(handle);
      await slow.promise;
      return stored;
    };
    const old = world.sessions.read(session.handle);
    report(session.handle);
    tokens.load = load;
    await world.sessions.read(session.handle);
    report(session.handle);
    slow.resolve();
    expect(await old).toBeDefined();
    expect(world.sessions.cached(session.handle)).toBeUndefined();
  });

  it('ends with the idle time, even in the cache and in a store that keeps it longer', async () => {
    const world = createMemorySessions({ limits: { idle: 60_000 }, storeIdle: hour });
    const { request, session } = await world.open();
    await world.sessions.see(request());
    world.now += 59_999;
    expect(world.sessions.cached(session.handle)).toBeDefined();
    expect(await world.sessions.read(session.handle)).toBeDefined();
    expect(await world.sessions.ofUser(tenantId, 'ana')).toHaveLength(1);
    world.now += 1;
    expect(world.sessions.cached(session.handle)).toBeUndefined();
    expect(await world.sessions.read(session.handle)).toBeUndefined();
    expect(await world.sessions.see(request())).toBeUndefined();
    expect(await world.sessions.ofUser(tenantId, 'ana')).toEqual([]);
  });

  it('tells when it ends if no further request comes', async () => {
    const world = createMemorySessions();
    const { request, tokens } = await world.open({ tokens: { refreshExpiry: Date.now() + 1_800_000 } });
    const seen = await world.sessions.see(request());
    expect(seen && world.sessions.expiryOf(seen)).toBe(tokens.refreshExpiry);
    const { request: second } = await world.open();
    const other = await world.sessions.see(second());
    expect(other && world.sessions.expiryOf(other)).toBe(world.now + hour);
  });

  it('ends permanently, once, and leaves all lists', async () => {
    const world = createMemorySessions();
    const { request, session } = await world.open({ session: { sid: 'at the provider' } });
    const lists = indexesOf(session);
    const listed = () => Promise.all(lists.map((name) => world.store.index.entries(name, 10)));
    expect(await listed()).toEqual([[session.handle], [session.handle], [session.handle]]);
    await world.sessions.see(request());
    expect(await world.sessions.end(session)).toBe(true);
    expect(world.sessions.cached(session.handle)).toBeUndefined();
    expect(await world.sessions.see(request())).toBeUndefined();
    expect(await world.sessions.end(session)).toBe(false);
    expect(await listed()).toEqual([[], [], []]);
  });

  it('leaves the cache when it starts or ends, even if the store does not report that', async () => {
    const world = createMemorySessions({
      prepare: ({ tokens }) => Object.assign(tokens, { onChange: () => undefined }),
    });
    const { request, session, tokens } = await world.open();
    expect((await world.sessions.see(request()))?.tokens.accessToken).toBe('access 1');
    await world.sessions.start(session, { ...tokens, accessToken: 'access 2' });
    expect((await world.sessions.see(request()))?.tokens.accessToken).toBe('access 2');
    await world.sessions.end(session);
    expect(world.sessions.cached(session.handle)).toBeUndefined();
  });

  it('is in all lists before it is live, so that it can be revoked from its first moment', async () => {
    const world = createMemorySessions();
    const { index, tokens } = world.store;
    const calls: unknown[][] = [];
    const { enter } = index;
    index.enter = (...given) => {
      calls.push(['enter', ...given]);
      return enter(...given);
    };
    const { start } = tokens;
    tokens.start = (...given) => {
      calls.push(['start', given[0], given[1].limit, given[2]]);
      return start(...given);
    };
    const { session } = await world.open();
    expect(calls).toEqual([
      ['enter', indexesOf(session), session.handle, session.absoluteExpiry, world.now],
      ['start', session.handle, session.absoluteExpiry, world.now],
    ]);
  });

  it('that began before the accepted time has ended, one that began exactly then has not', async () => {
    const validFrom = Date.now() - 1_000;
    const world = createMemorySessions({ limits: { validFrom } });
    const { request: early } = await world.open({ session: { created: validFrom - 1 } });
    const { request: exact } = await world.open({ session: { created: validFrom } });
    expect(await world.sessions.see(early())).toBeUndefined();
    expect(await world.sessions.see(exact())).toBeDefined();
    const unlimited = createMemorySessions();
    const { request: first } = await unlimited.open({ session: { created: 0 } });
    expect(await unlimited.sessions.see(first())).toBeDefined();
  });

  it('of a former identity provider of its tenant is not found', async () => {
    const world = createMemorySessions();
    const issuer = 'https://login.example.org';
    const visitors = [
      await world.open({ session: { issuer: null } }),
      await world.open({ session: { issuer } }),
      // The version before did not store the issuer.
      await world.open(),
    ];
    const found = () =>
      Promise.all(visitors.map(async ({ request }) => (await world.sessions.see(request())) !== undefined));
    expect(await found()).toEqual([true, false, true]);
    world.mappedIssuer = issuer;
    expect(await found()).toEqual([false, true, true]);
    world.mappedIssuer = 'https://other.example.org';
    expect(await found()).toEqual([false, false, true]);
  });

  it('is not found if its record is missing, of another session, or sealed with a key that was removed', async () => {
    const world = createMemorySessions();
    const { session, tokens } = await world.open();
    const key = recordKey(session.handle);
    const expiration = { type: 'EX', value: 3_600 } as const;
    const read = () => world.sessions.read(session.handle);
    const good = (await world.store.records.get(key)) ?? '';
    const seal = (record: unknown, handle = session.handle) =>
      memoryKeys.seal(JSON.stringify(record), recordContext(handle));
    const others = [
      seal({}),
      seal({ signedIn: { ...session, handle: 'another' } }),
      seal({ signedIn: session }, 'another'),
    ];
    for (const text of [...others, 'not sealed']) {
      await world.store.records.set(key, text, { expiration });
      expect(await read()).toBeUndefined();
    }
    await world.store.records.set(key, good, { expiration });
    expect(await read()).toBeDefined();
    const ofAnother = world.sessions.seal({ ...session, handle: 'another' }, tokens);
    await world.store.tokens.start(session.handle, ofAnother, world.now);
    expect(await read()).toBeUndefined();
    await world.store.records.del([key]);
    expect(await read()).toBeUndefined();
  });

  it('is unavailable while the store fails, and found afterwards', async () => {
    const world = createMemorySessions();
    const { request } = await world.open();
    const { tokens } = world.store;
    const load = tokens.load;
    tokens.load = () => Promise.reject(new Problem('unavailable'));
    await expect(world.sessions.ofRequest(request())).rejects.toMatchObject({ slug: 'unavailable' });
    tokens.load = load;
    expect(await world.sessions.ofRequest(request())).toBeDefined();
  });

  it('whose refresh was abandoned by a dead replica ends with its access token', async () => {
    const world = createMemorySessions();
    const { request, session } = await world.open();
    const { tokens } = world.store;
    tokens.abandon = (handle) => tokens.end(handle);
    await tokens.claim(session.handle, 1, 'intent of a dead replica');
    expect(await world.sessions.see(request())).toBeDefined();
    expect(await world.sessions.see(request())).toBeDefined();
    world.now += 300_000;
    // The first call finds the session in the cache; the second call reads the store.
    expect(await world.sessions.see(request())).toBeUndefined();
    expect(await world.sessions.see(request())).toBeUndefined();
  });

  it('calls the listeners of its requests when it ends', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const world = createMemorySessions();
    const { request, session } = await world.open();
    const { request: another } = await world.open();
    const ended: string[] = [];
    (await world.sessions.see(request()))?.onEnd(() => ended.push('one'));
    (await world.sessions.see(another()))?.onEnd(() => ended.push('other'));
    await world.sessions.end(session);
    await vi.advanceTimersByTimeAsync(500);
    expect(ended).toEqual(['one']);
    await world.sessions.close();
    await world.store.tokens.end((await world.sessions.see(another()))?.session.handle ?? '');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(ended).toEqual(['one']);
  });

  it('is counted in the metrics', async () => {
    const world = createMemorySessions();
    await world.open();
    await world.open();
    expect(await world.metrics.registry.metrics()).toMatch(/^formgate_sessions 2$/m);
  });

  it('takes no refreshes any more after the process began to stop', async () => {
    const world = createMemorySessions();
    const { request } = await world.open();
    const live = await world.sessions.ofRequest(request());
    await world.sessions.close();
    world.now += 300_000;
    await expect(live?.accessToken()).rejects.toMatchObject({ slug: 'unavailable' });
    expect(world.presented).toEqual([]);
  });
});

/** Creates sessions in memory. With `report`, the test reports changes of the store to these sessions. */
function createReporting() {
  let listener = (_handle: string | null): void => undefined;
  const world = createMemorySessions({
    prepare({ tokens }) {
      tokens.onChange = (given) => {
        listener = given;
      };
    },
  });
  return { world, report: (handle: string | null) => listener(handle) };
}
