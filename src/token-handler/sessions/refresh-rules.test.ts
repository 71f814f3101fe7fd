// Tests when refreshes begin, how long requests wait for them, and which responses requests get while there is no new
// access token. The store is in memory, and the test supplies the identity provider's responses. Tests that would have
// to wait use a fake clock.
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createMemorySessions, type MemorySessions, settle } from '../../../test/support/memory-sessions.ts';
import { Problem } from '../../service/http/problem.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { Refresher } from './refresh.ts';
import type { FoundSession, RefreshOutcome, TokenSet } from './session.ts';

let world: MemorySessions;
let metrics: Metrics;
let refresher: Refresher;
/** Makes the simulated identity provider respond to the oldest token request. */
let respond: (outcome?: RefreshOutcome) => void;

beforeEach(() => {
  world = createMemorySessions();
  metrics = createMetrics();
  refresher = createRefresher();
  const waiting: ((outcome: RefreshOutcome) => void)[] = [];
  world.refresh = () => new Promise((resolve) => waiting.push(resolve));
  respond = (outcome = { kind: 'refreshed', response: { access_token: 'new', expires_in: 300 } }) =>
    waiting.shift()?.(outcome);
});
afterEach(async () => {
  respond();
  await Promise.all([refresher.close(), world.sessions.close()]);
});

function createRefresher(refreshConcurrency = 4): Refresher {
  return new Refresher({
    ...{ sessions: world.sessions, tokens: world.store.tokens, log: world.log.log, metrics, refreshConcurrency },
    clock: () => new Date(world.now),
    registrations: { find: () => world.find() },
    relyingParty: {
      async refresh(_client, refreshToken) {
        world.presented.push(refreshToken);
        return world.refresh(refreshToken);
      },
    },
  });
}

const lines = () => world.log.lines().map(({ msg }) => msg);
async function openFound(tokens: Partial<TokenSet> = {}): Promise<FoundSession> {
  const { session } = await world.open({ tokens });
  const found = await world.sessions.read(session.handle);
  if (!found) throw new Error('the session is not live');
  return found;
}
const expired = () => ({ accessIssued: world.now - 300_000, accessExpiry: world.now });
/** Begins a refresh in the background, and ends it with `outcome`. */
async function refreshWith(found: FoundSession, outcome: RefreshOutcome): Promise<void> {
  refresher.begin(found);
  await settle();
  respond(outcome);
  await settle();
}

describe('a refresh in the background', () => {
  it('is started once for a session', async () => {
    const [one, other] = [await openFound(), await openFound()];
    refresher.begin(one);
    refresher.begin(one);
    refresher.begin(other);
    await settle();
    refresher.begin(one);
    await settle();
    expect(world.presented).toHaveLength(2);
    respond();
    respond();
    await settle();
    refresher.begin((await world.sessions.read(one.session.handle)) ?? one);
    await settle();
    expect(world.presented).toHaveLength(3);
  });

  it('is not started without a refresh token, or while another replica refreshes', async () => {
    const found = await openFound();
    const { refreshToken: _, ...rest } = found.tokens;
    const { claim } = world.store.tokens;
    let claims = 0;
    world.store.tokens.claim = (...given) => {
      claims += 1;
      return claim(...given);
    };
    refresher.begin({ ...found, tokens: rest });
    await settle();
    refresher.begin({ ...found, state: { ...found.state, intent: 'of another' } });
    await settle();
    expect(claims).toBe(0);
  });

  it('that another replica has begun in the meantime is left to that replica, and may begin here afterwards', async () => {
    const found = await openFound();
    const { handle } = found.session;
    await world.store.tokens.claim(handle, 1, 'of another');
    refresher.begin(found);
    await settle();
    expect([world.presented, lines()]).toEqual([[], []]);
    await world.store.tokens.conclude(handle, 'of another', world.now);
    refresher.begin(found);
    await settle();
    expect(world.presented).toHaveLength(1);
  });

  it.each<[string, RefreshOutcome, number]>([
    ['5 s after the token was not used', { kind: 'unused' }, 5_000],
    ['after the time that the provider asked for', { kind: 'unused', retryAfter: 30_000 }, 30_000],
    ['5 s after a shorter time', { kind: 'unused', retryAfter: 1_000 }, 5_000],
    ['5 s after the client was rejected', { kind: 'client-refused' }, 5_000],
  ])('is repeated %s, not before', async (_when, outcome, pause) => {
    const found = await openFound();
    await refreshWith(found, outcome);
    world.now += pause - 1;
    refresher.begin(found);
    await settle();
    expect(world.presented).toHaveLength(1);
    world.now += 1;
    refresher.begin(found);
    await settle();
    expect(world.presented).toHaveLength(2);
  });

  it('that could not start is logged, and repeated after 5 s', async () => {
    const found = await openFound(expired());
    const { claim, conclude } = world.store.tokens;
    world.store.tokens.claim = () => Promise.reject(new Problem('unavailable'));
    world.store.tokens.conclude = async () => false;
    refresher.begin(found);
    await settle();
    expect(world.log.lines()).toMatchObject([
      { msg: 'token refresh could not start', session: found.session.handle, err: { type: 'Problem' } },
    ]);
    Object.assign(world.store.tokens, { claim, conclude });
    await expect(refresher.accessToken(found)).rejects.toMatchObject({
      detail: expect.stringMatching(/cannot be reached/),
    });
    world.now += 4_999;
    refresher.begin(found);
    await settle();
    expect(world.presented).toEqual([]);
    world.now += 1;
    refresher.begin(found);
    await settle();
    expect(world.presented).toHaveLength(1);
  });

  it('is not started while an intent of this replica is being withdrawn', async () => {
    const found = await openFound();
    const { claim, conclude } = world.store.tokens;
    const withdrawing = Promise.withResolvers<boolean>();
    world.store.tokens.claim = () => Promise.reject(new Problem('unavailable'));
    world.store.tokens.conclude = () => withdrawing.promise;
    refresher.begin(found);
    await settle();
    Object.assign(world.store.tokens, { claim });
    world.now += 5_000;
    refresher.begin(found);
    await settle();
    expect(world.presented).toEqual([]);
    withdrawing.resolve(true);
    Object.assign(world.store.tokens, { conclude });
    await settle();
    refresher.begin(found);
    await settle();
    expect(world.presented).toHaveLength(1);
  });

  it('that the queue refuses is not logged, and repeated by the next request', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    refresher = createRefresherOfOne();
    const [one, other] = [await openFound(), await openFound()];
    refresher.begin(one);
    await settle();
    refresher.begin(other);
    await vi.advanceTimersByTimeAsync(15_000);
    await settle();
    expect(lines()).toEqual([]);
    respond();
    await settle();
    refresher.begin(other);
    await settle();
    expect(world.presented).toHaveLength(2);
  });

  function createRefresherOfOne(): Refresher {
    metrics = createMetrics();
    return createRefresher(1);
  }
});

describe('a request whose access token has expired', () => {
  it('gets the new token, which concurrent requests share', async () => {
    const found = await openFound(expired());
    const { load } = world.store.tokens;
    let loads = 0;
    world.store.tokens.load = (handle) => {
      loads += 1;
      return load(handle);
    };
    const waiting = [1, 2, 3].map(() => refresher.accessToken(found));
    await settle();
    expect(loads).toBe(1);
    respond();
    expect(await Promise.all(waiting)).toEqual(['new', 'new', 'new']);
    expect(world.presented).toEqual(['refresh 1']);
    expect(await refresher.accessToken(found)).toBe('new');
    expect(loads).toBe(3);
  });

  it('causes one token request if the identity provider issues tokens that have already expired', async () => {
    const response = { access_token: 'new', refresh_token: 'next', expires_in: 0 };
    world.refresh = async () => ({ kind: 'refreshed', response });
    const found = await openFound(expired());
    for (let nth = 0; nth < 3; nth += 1) {
      const refused = { slug: 'unavailable', detail: expect.stringContaining('expired') };
      await expect(refresher.accessToken(found)).rejects.toMatchObject(refused);
    }
    expect(world.presented).toHaveLength(1);
  });

  it('joins the refresh that is running', async () => {
    const found = await openFound(expired());
    refresher.begin(found);
    const token = refresher.accessToken(found);
    await settle();
    respond();
    expect(await token).toBe('new');
    expect(world.presented).toHaveLength(1);
  });

  it('gets the token that another replica receives', async () => {
    const found = await openFound(expired());
    const { handle } = found.session;
    await world.store.tokens.claim(handle, 1, 'of another');
    const token = refresher.accessToken(found);
    await settle();
    const next = world.sessions.seal(found.session, {
      ...found.tokens,
      accessToken: 'its',
      accessExpiry: world.now + 9e5,
    });
    await world.store.tokens.conclude(handle, 'of another', world.now, next);
    expect(await token).toBe('its');
    expect(world.presented).toEqual([]);
  });

  const ended = { slug: 'unauthenticated', reason: 'session' };
  it('is refused if the session has ended, or has no refresh token', async () => {
    const found = await openFound(expired());
    await world.sessions.end(found.session);
    await expect(refresher.accessToken(found)).rejects.toMatchObject(ended);
    const spent = await openFound();
    await world.store.tokens.claim(spent.session.handle, 1, 'one');
    const { refreshToken: _, ...rest } = spent.tokens;
    const next = { ...world.sessions.seal(spent.session, rest), limit: world.now + 3_600_000 };
    await world.store.tokens.conclude(spent.session.handle, 'one', world.now, next);
    world.now += 300_000;
    await expect(refresher.accessToken(spent)).rejects.toMatchObject(ended);
  });

  it('is refused if the identity provider refuses the refresh', async () => {
    const found = await openFound(expired());
    const token = refresher.accessToken(found);
    await settle();
    respond({ kind: 'refused' });
    await expect(token).rejects.toMatchObject(ended);
  });

  it.each<[RefreshOutcome, string, RegExp]>([
    [{ kind: 'unused' }, '5', /cannot be reached/],
    [{ kind: 'unused', retryAfter: 30_000 }, '30', /cannot be reached/],
    [{ kind: 'client-refused' }, '5', /no longer accepts this client/],
  ])('gets 503 after %j until the pause is over', async (outcome, retryAfter, detail) => {
    const found = await openFound(expired());
    const token = refresher.accessToken(found);
    await settle();
    respond(outcome);
    await expect(token).rejects.toMatchObject({
      ...{ slug: 'unavailable', headers: { 'Retry-After': retryAfter } },
      detail: expect.stringMatching(detail),
    });
    world.now += Number(retryAfter) * 1_000 - 1_001;
    await expect(refresher.accessToken(found)).rejects.toMatchObject({ headers: { 'Retry-After': '2' } });
    world.now += 1_001;
    const next = refresher.accessToken(found);
    await settle();
    respond();
    expect(await next).toBe('new');
    expect(world.presented).toHaveLength(2);
  });

  it('gets 503 after 5 s, while the refresh continues', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const found = await openFound(expired());
    let failure: unknown;
    const token = refresher.accessToken(found).catch((error: unknown) => {
      failure = error;
    });
    await settle();
    await vi.advanceTimersByTimeAsync(3_000);
    refresher.begin(found);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(failure).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    await token;
    expect(failure).toMatchObject({ slug: 'unavailable', headers: { 'Retry-After': '2' } });
    respond();
    await settle();
    expect((await world.sessions.read(found.session.handle))?.tokens.accessToken).toBe('new');
  });

  it('gets 503 after 5 s of a refresh that was running before', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const found = await openFound(expired());
    refresher.begin(found);
    await settle();
    const token = expect(refresher.accessToken(found)).rejects.toMatchObject({ slug: 'unavailable' });
    await settle();
    await vi.advanceTimersByTimeAsync(5_000);
    await token;
  });

  it('gets 503 once 5 s have passed while another replica refreshes', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const found = await openFound(expired());
    await world.store.tokens.claim(found.session.handle, 1, 'of another');
    const token = expect(refresher.accessToken(found)).rejects.toMatchObject({ headers: { 'Retry-After': '2' } });
    await settle();
    vi.advanceTimersByTime(5_000);
    await token;
  });
});

describe('a session whose refresh a dead replica has begun', () => {
  async function openClaimed(isDead: boolean, tokens: Partial<TokenSet> = expired()) {
    const { session } = await openFound(tokens);
    await world.store.tokens.claim(session.handle, 1, 'of another');
    const asked: unknown[][] = [];
    world.store.tokens.abandon = async (...given) => {
      asked.push(given);
      return isDead && world.store.tokens.end(session.handle);
    };
    const found = (await world.sessions.read(session.handle)) as FoundSession;
    return { found, asked };
  }

  it('ends with its access token, which is counted and audited, and leaves the lists', async () => {
    const { found, asked } = await openClaimed(true);
    const { handle, tenantId } = found.session;
    expect(await refresher.endIfAbandoned(found)).toBe(true);
    expect(asked).toEqual([[handle, 'of another']]);
    expect(await world.sessions.ofTenant(tenantId, 1)).toEqual([]);
    expect(world.log.lines()).toMatchObject([
      {
        session: handle,
        audit: {
          ...{ action: 'session.abandoned', tenant: tenantId, outcome: 'succeeded' },
          ...{ actor: { kind: 'service', id: 'token-handler' }, object: { id: handle } },
        },
      },
    ]);
    expect(await metrics.registry.metrics()).toContain('formgate_token_refreshes_total{outcome="abandoned"} 1');
  });

  it('lets a waiting request know', async () => {
    const { found } = await openClaimed(true);
    await expect(refresher.accessToken(found)).rejects.toMatchObject({ slug: 'unauthenticated' });
  });

  it('stays while that replica sends heartbeats, or the access token is valid', async () => {
    const { found, asked } = await openClaimed(false);
    expect(await refresher.endIfAbandoned(found)).toBe(false);
    expect(asked).toHaveLength(1);
    const valid = await openClaimed(true, {});
    expect(await refresher.endIfAbandoned(valid.found)).toBe(false);
    expect([valid.asked, lines()]).toEqual([[], []]);
  });

  it('is not confused with one that is being refreshed here, or not at all', async () => {
    const found = await openFound(expired());
    const { abandon } = world.store.tokens;
    let asked = 0;
    world.store.tokens.abandon = (...given) => {
      asked += 1;
      return abandon(...given);
    };
    expect(await refresher.endIfAbandoned(found)).toBe(false);
    refresher.begin(found);
    await settle();
    const refreshing = (await world.sessions.read(found.session.handle)) as FoundSession;
    expect(refreshing.state.intent).toBeDefined();
    expect(await refresher.endIfAbandoned(refreshing)).toBe(false);
    expect(asked).toBe(0);
  });
});

describe('the end of the process', () => {
  it('waits for running refreshes, and starts no others', async () => {
    const [found, other] = [await openFound(), await openFound()];
    refresher.begin(found);
    await settle();
    let isClosed = false;
    const closing = refresher.close().then(() => {
      isClosed = true;
    });
    await settle();
    expect(isClosed).toBe(false);
    refresher.begin(other);
    respond();
    await closing;
    expect((await world.sessions.read(found.session.handle))?.tokens.accessToken).toBe('new');
    expect(world.presented).toHaveLength(1);
  });

  it('is immediate without refreshes', async () => {
    const began = performance.now();
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    const closing = refresher.close();
    // The timer that limits the wait of `close` does not keep the process alive, so Node does not list this timer.
    expect(timers()).toBe(before);
    await closing;
    expect(performance.now() - began).toBeLessThan(3_500);
  });
});
