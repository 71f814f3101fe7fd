// Tests one attempt to refresh tokens. The refresh token must be sent at most once, and only after the store has
// confirmed the attempt's intent to send it. Also tests how each outcome is stored. The store is in memory. The tests
// make the store and the identity provider fail.
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createMemorySessions, type MemorySessions, settle } from '../../../test/support/memory-sessions.ts';
import { Problem } from '../../service/http/problem.ts';
import { FairQueue } from '../../service/limits/fair-queue.ts';
import type { Registration } from '../clients/registration.ts';
import { RefreshAttempts } from './refresh-attempt.ts';
import type { FoundSession, RefreshOutcome, TokenSet } from './session.ts';

let world: MemorySessions;
let queue: FairQueue;
let attempts: RefreshAttempts;
let counted: string[];
/** Makes the simulated identity provider respond to the running token request. */
let respond: (outcome: RefreshOutcome) => void;

beforeEach(() => {
  world = createMemorySessions();
  queue = new FairQueue({
    ...{ slots: { total: 1, perTenant: 1, perMember: 1 }, waiting: { total: 9, perTenant: 9, perMember: 9 } },
    ...{ waitMs: 60_000, detail: 'busy', retryAfterSeconds: 1 },
  });
  counted = [];
  attempts = new RefreshAttempts({
    ...{ sessions: world.sessions, tokens: world.store.tokens, queue, log: world.log.log },
    clock: () => new Date(world.now),
    registrations: { find: () => world.find() },
    relyingParty: {
      async refresh(client, refreshToken, original) {
        expect(client).toBe(registration);
        world.presented.push(refreshToken);
        originals.push(original);
        return world.refresh(refreshToken);
      },
    },
    metrics: { outcomes: { inc: ({ outcome }) => void counted.push(outcome) } },
  });
  originals = [];
  world.find = async () => registration;
  world.refresh = () => new Promise((resolve) => (respond = resolve));
});
afterEach(() => {
  attempts.close();
  return world.sessions.close();
});

const registration = { realm: 'demo', oidcClientId: 'oidc-web' } as Registration;
let originals: unknown[];
const refreshed: RefreshOutcome = { kind: 'refreshed', response: { access_token: 'new', expires_in: 60 } };
const lines = () => world.log.lines().map(({ msg }) => msg);

async function openFound(tokens: Partial<TokenSet> = {}): Promise<FoundSession> {
  const { session } = await world.open({ tokens });
  const found = await world.sessions.read(session.handle);
  if (!found) throw new Error('the session is not live');
  return found;
}

const stored = ({ session }: FoundSession) => world.sessions.read(session.handle);

interface Disturbance {
  times: number;
  /** True if the call fails only after the store has made the change. */
  isDone: boolean;
  error?: Error;
}

/**
 * Makes the function `name` of the token store fail for some calls, before or after it has changed the store. Returns a
 * function that returns the number of calls.
 */
function disturb(name: 'claim' | 'conclude' | 'heartbeat', options: Disturbance): () => number {
  const { tokens } = world.store;
  const real = tokens[name].bind(tokens) as (...given: unknown[]) => Promise<unknown>;
  let calls = 0;
  Object.assign(tokens, {
    async [name](...given: unknown[]) {
      calls += 1;
      if (calls > options.times) return real(...given);
      if (options.isDone) await real(...given);
      throw options.error ?? new Problem('unavailable');
    },
  });
  return () => calls;
}

describe('an attempt', () => {
  it('sends the refresh token once, stores the new tokens, and frees its slot when the provider has responded', async () => {
    const found = await openFound({ idToken: 'i', nonce: 'n' });
    const running = attempts.run(found);
    await settle();
    expect((await stored(found))?.state.intent).toMatch(/^[\da-f-]{36}$/);
    expect(queue.running).toBe(1);
    expect(originals).toEqual([{ subject: 'ana', tokens: found.tokens }]);
    world.now += 1_000;
    respond(refreshed);
    expect(await running).toEqual(refreshed);
    const after = await stored(found);
    expect(after?.tokens).toEqual({
      ...{ accessToken: 'new', accessIssued: world.now, accessExpiry: world.now + 60_000 },
      ...{ refreshToken: 'refresh 1', idToken: 'i', nonce: 'n', roles: [] },
    });
    expect(after?.state).toEqual({ version: 2, limit: found.session.absoluteExpiry, touched: found.state.touched });
    expect([world.presented, counted, queue.running, lines()]).toEqual([['refresh 1'], ['refreshed'], 0, []]);
  });

  it('frees its slot before the outcome is stored', async () => {
    const found = await openFound();
    const { tokens } = world.store;
    let running = -1;
    const { conclude } = tokens;
    tokens.conclude = (...given) => {
      running = queue.running;
      return conclude(...given);
    };
    const run = attempts.run(found);
    await settle();
    respond(refreshed);
    await run;
    expect(running).toBe(0);
  });

  it('without a refresh token does nothing', async () => {
    const found = await openFound();
    const { refreshToken: _, ...tokens } = found.tokens;
    expect(await attempts.run({ ...found, tokens })).toBeUndefined();
    expect([world.presented, (await stored(found))?.state.intent]).toEqual([[], undefined]);
  });

  it('sends nothing if another attempt has begun, the tokens have changed or the session has ended', async () => {
    const found = await openFound();
    await world.store.tokens.claim(found.session.handle, 1, 'of another');
    expect(await attempts.run(found)).toBeUndefined();
    expect((await stored(found))?.state.intent).toBe('of another');
    await world.store.tokens.conclude(found.session.handle, 'of another', world.now);
    expect(await attempts.run({ ...found, state: { ...found.state, version: 2 } })).toBeUndefined();
    await world.sessions.end(found.session);
    expect(await attempts.run(found)).toBeUndefined();
    expect([world.presented, counted, queue.running]).toEqual([[], [], 0]);
  });

  it('waits for a slot, and fails if the service stops meanwhile', async () => {
    const found = await openFound();
    const release = await queue.take({ tenant: 'demo', member: 'another' });
    const run = attempts.run(found);
    await settle();
    expect(queue.waiting).toBe(1);
    attempts.close();
    await expect(run).rejects.toMatchObject({ slug: 'unavailable', headers: { 'Retry-After': '1' } });
    release();
    await expect(attempts.run(found)).rejects.toMatchObject({ slug: 'unavailable' });
    expect([world.presented, queue.running]).toEqual([[], 0]);
  });

  it('sends nothing after its client was registered again or is no longer registered: the session keeps its access token', async () => {
    for (const known of [{ realm: 'demo', oidcClientId: 'a new one' } as Registration, undefined]) {
      const found = await openFound();
      world.find = async () => known;
      expect(await attempts.run(found)).toEqual({ kind: 'unknown' });
      const after = await stored(found);
      expect(after?.tokens.refreshToken).toBeUndefined();
      expect(after?.state).toMatchObject({ version: 2, limit: found.tokens.accessExpiry });
    }
    expect(world.presented).toEqual([]);
  });

  it('asks the registry for the client of the session', async () => {
    const asked: unknown[][] = [];
    const find = (...given: unknown[]) => {
      asked.push(given);
      return Promise.reject(new Error('the database is away'));
    };
    Object.assign(world, { find });
    const found = await openFound();
    expect(await attempts.run(found)).toEqual({ kind: 'unused' });
    expect([world.presented, counted]).toEqual([[], ['unused']]);
    expect((await stored(found))?.state).toEqual(found.state);
    expect(world.log.lines()[0]).toMatchObject({
      msg: 'registration for a token refresh could not be read',
      session: found.session.handle,
      err: { message: 'the database is away' },
    });
    expect(lines()[1]).toBe('token refresh failed');
  });
});

describe('the session after a refresh that was', () => {
  async function runWith(outcome: RefreshOutcome) {
    const found = await openFound({ idToken: 'i' });
    const run = attempts.run(found);
    await settle();
    respond(outcome);
    expect(await run).toEqual(outcome);
    expect([counted, world.presented]).toEqual([[outcome.kind], ['refresh 1']]);
    expect(lines()).toHaveLength(1);
    return { found, after: await stored(found) };
  }

  it.each<RefreshOutcome>([{ kind: 'unused', retryAfter: 7_000 }, { kind: 'client-refused' }])(
    '$kind keeps its refresh token, and another attempt may begin',
    async (outcome) => {
      const { found, after } = await runWith(outcome);
      expect(after).toMatchObject({ tokens: found.tokens });
      expect(after?.state).toEqual(found.state);
    },
  );

  it('unknown has no refresh token any more, and ends with its access token', async () => {
    const { found, after } = await runWith({ kind: 'unknown' });
    const { refreshToken: _, ...rest } = found.tokens;
    expect(after?.tokens).toEqual(rest);
    expect(after?.state).toEqual({ version: 2, limit: found.tokens.accessExpiry, touched: found.state.touched });
  });

  it('refreshed with tokens that are too large ends like an unknown one, and the log says why', async () => {
    const found = await openFound();
    const run = attempts.run(found);
    await settle();
    respond({ kind: 'refreshed', response: { access_token: 'a'.repeat(70_000), expires_in: 60 } });
    expect(await run).toEqual({ kind: 'unknown', isTooLarge: true });
    expect(counted).toEqual(['unknown']);
    expect(lines()).toEqual(['refreshed tokens too large: the session ends with its access token']);
    const after = await stored(found);
    expect(after?.tokens).toMatchObject({ accessToken: found.tokens.accessToken });
    expect(after?.tokens).not.toHaveProperty('refreshToken');
    expect(after?.state.limit).toBe(found.tokens.accessExpiry);
  });

  it.each<RefreshOutcome>([{ kind: 'refused' }, { kind: 'foreign', check: 'sub' }])(
    '$kind has ended',
    async (outcome) => {
      expect((await runWith(outcome)).after).toBeUndefined();
    },
  );
});

describe('a store that fails', () => {
  it('before the token is sent fails the attempt, whose intent is withdrawn as soon as the store works again', async () => {
    disturb('claim', { times: 1, isDone: true });
    const calls = disturb('conclude', { times: 1, isDone: false });
    const found = await openFound();
    await expect(attempts.run(found)).rejects.toMatchObject({ slug: 'unavailable' });
    expect(attempts.isWithdrawing(found.session.handle)).toBe(true);
    expect((await stored(found))?.state.intent).toBeDefined();
    expect(queue.running).toBe(0);
    await expect.poll(() => attempts.isWithdrawing(found.session.handle)).toBe(false);
    expect((await stored(found))?.state).toEqual(found.state);
    expect([calls(), world.presented, lines()]).toEqual([2, [], []]);
  });

  it('with a defect is not called again, which is logged', async () => {
    disturb('claim', { times: 1, isDone: false });
    disturb('conclude', { times: 9, isDone: false, error: new TypeError('a defect') });
    const found = await openFound();
    await expect(attempts.run(found)).rejects.toMatchObject({ slug: 'unavailable' });
    await settle();
    expect(attempts.isWithdrawing(found.session.handle)).toBe(false);
    expect(world.log.lines()).toMatchObject([
      { msg: 'intent of a token refresh not withdrawn', session: found.session.handle, err: { message: 'a defect' } },
    ]);
  });

  it('after the token was used is asked until the new tokens are stored', async () => {
    const calls = disturb('conclude', { times: 1, isDone: false });
    const found = await openFound();
    const run = attempts.run(found);
    await settle();
    respond(refreshed);
    await run;
    expect(calls()).toBe(2);
    expect((await stored(found))?.tokens.accessToken).toBe('new');
    expect(lines()).toEqual([]);
  });

  it.each<[string, RefreshOutcome, number]>([
    ['new tokens', { kind: 'refreshed', response: { access_token: 'new', refresh_expires_in: 90 } }, 90_000],
    ['the loss of the refresh token', { kind: 'unknown' }, 300_000],
    ['that the token was not used', { kind: 'unused' }, 600_000],
  ])('is asked to store %s only until the session ends anyway', async (_what, outcome, limit) => {
    for (const late of [0, 1]) {
      const found = await openFound({ refreshExpiry: world.now + 600_000 });
      const { tokens } = world.store;
      const { conclude } = tokens;
      let calls = 0;
      tokens.conclude = async () => {
        calls += 1;
        if (calls > 1) return true;
        world.now += limit + late;
        throw new Problem('unavailable');
      };
      const run = attempts.run(found);
      await settle();
      respond(outcome);
      await run;
      tokens.conclude = conclude;
      expect([late, calls]).toEqual([late, 2 - late]);
    }
    expect(world.log.lines().filter(({ msg }) => msg === 'token refresh not stored')).toMatchObject([
      { outcome: outcome.kind, err: { type: 'Problem' } },
    ]);
  });

  it('is asked only once more after the service began to stop', async () => {
    const calls = disturb('conclude', { times: 9, isDone: false });
    const found = await openFound();
    const run = attempts.run(found);
    await settle();
    attempts.close();
    respond(refreshed);
    await run;
    expect([calls(), lines()]).toEqual([1, ['token refresh not stored']]);
  });

  it('has ended the session meanwhile: the new tokens are not stored, which is counted', async () => {
    const found = await openFound();
    const run = attempts.run(found);
    await settle();
    await world.sessions.end(found.session);
    respond(refreshed);
    await run;
    expect([await stored(found), counted]).toEqual([undefined, ['refreshed', 'late']]);
    expect(world.log.lines()).toMatchObject([{ session: found.session.handle, outcome: 'refreshed' }]);
  });
});

describe('a running attempt', () => {
  it('sends a heartbeat each second until its outcome is stored, even if a heartbeat fails', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const found = await openFound();
    const beats = disturb('heartbeat', { times: 1, isDone: false });
    const run = attempts.run(found);
    await settle();
    vi.advanceTimersByTime(999);
    expect(beats()).toBe(0);
    vi.advanceTimersByTime(1);
    expect(beats()).toBe(1);
    vi.advanceTimersByTime(2_000);
    expect(beats()).toBe(3);
    respond(refreshed);
    await run;
    vi.advanceTimersByTime(5_000);
    expect(beats()).toBe(3);
  });

  it('does not keep the process alive with its heartbeats', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const found = await openFound();
    const before = timers();
    const run = attempts.run(found);
    await settle();
    // Fewer timers are fine, because timers of the test runner may have ended.
    expect(timers()).toBeLessThanOrEqual(before);
    respond(refreshed);
    await run;
  });
});
