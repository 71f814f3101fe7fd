// Stores attempts to sign in, encrypted, in Redis or in memory. Each attempt has a state, a nonce and a PKCE verifier,
// belongs to the browser that started it, and can be used once. Of the state, only a digest is stored.
import { hash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import * as oidc from 'openid-client';
import type { Clock } from '../../service/clock.ts';
import { defineScript, type Redis } from '../../service/redis/redis.ts';
import type { KeyRing } from '../keys/key-ring.ts';

/** Milliseconds that an attempt to sign in may take. */
const lifetime = 600_000;
/** Milliseconds that an attempt is remembered. If it is completed later than `lifetime`, the sign-in starts again. */
const memory = 3_600_000;
/** Greatest number of attempts that are kept for one browser. */
const most = 20;

/** The request with which the sign-in was started. */
export interface SignInRequest {
  /** URN */
  tenantId: string;
  clientId: string;
  callbackUrl: string;
  returnTo?: string | undefined;
  /** True if this attempt replaces an earlier one that took too long or failed temporarily. */
  restarted?: boolean;
}

export interface Begun {
  state: string;
  nonce: string;
  codeVerifier: string;
}

export type TakenAttempt =
  /** The attempt is taken for the first time, and in time. */
  | { kind: 'open'; signIn: SignInRequest; secrets: Omit<Begun, 'state'> }
  | { kind: 'late'; signIn: SignInRequest }
  | { kind: 'used'; signIn: SignInRequest };

export type Attempts = ReturnType<typeof createAttempts>;

export interface AttemptsOptions {
  /** Undefined if attempts are kept in memory. */
  redis: Redis | undefined;
  keys: KeyRing;
  clock: Clock;
}

interface StoredSignIn extends SignInRequest {
  /** Milliseconds since 1970 */
  begun: number;
}

export function createAttempts({ redis, keys, clock }: AttemptsOptions) {
  const store = redis ? redisStore(redis, clock) : memoryStore(clock);
  const context = (what: string, browser: string, id: string) => `${what} of attempt ${id} of browser ${browser}`;
  return {
    /** Returns a new random name under which the attempts of a browser are stored. */
    nameBrowser: () => randomBytes(16).toString('base64url'),
    async begin(browser: string, signIn: SignInRequest): Promise<Begun> {
      const state = oidc.randomState();
      const secrets = { nonce: oidc.randomNonce(), codeVerifier: oidc.randomPKCECodeVerifier() };
      const id = idOf(state);
      const stored: StoredSignIn = { ...signIn, begun: clock().getTime() };
      const secret = keys.seal(JSON.stringify(secrets), context('secret', browser, id));
      const place = keys.seal(JSON.stringify(stored), context('place', browser, id));
      await store.add(browser, id, { secret, place });
      return { state, ...secrets };
    },
    /** Returns undefined for a state that this browser did not receive, or received more than an hour ago. */
    async take(browser: string, state: string): Promise<TakenAttempt | undefined> {
      const id = idOf(state);
      const taken = await store.take(browser, id);
      if (!taken) return undefined;
      const { begun, ...signIn }: StoredSignIn = JSON.parse(keys.open(taken.place, context('place', browser, id)));
      const age = clock().getTime() - begun;
      if (age > memory) return undefined;
      if (taken.secret === undefined) return { kind: 'used', signIn };
      if (age > lifetime) return { kind: 'late', signIn };
      return { kind: 'open', signIn, secrets: JSON.parse(keys.open(taken.secret, context('secret', browser, id))) };
    },
  };
}

function idOf(state: string): string {
  return hash('sha256', `formgate state ${state}`, 'base64url');
}

interface SealedAttempt {
  /** Nonce and PKCE verifier; removed when the attempt is taken. */
  secret?: string;
  /** The sealed StoredSignIn. */
  place: string;
}

interface AttemptStore {
  /** Stores an attempt, and removes the browser's oldest attempts beyond the limit. */
  add(browser: string, id: string, attempt: Required<SealedAttempt>): Promise<void>;
  /** Returns an attempt and removes its secret, so that only the first caller receives the secret. */
  take(browser: string, id: string): Promise<SealedAttempt | undefined>;
}

// KEYS: attempts. ARGV: id, secret, place, now, most, memory
const addScript = defineScript(`
redis.call('HSET', KEYS[1], ARGV[1] .. ':secret', ARGV[2], ARGV[1] .. ':place', ARGV[3], ARGV[1] .. ':at', ARGV[4])
local fields = redis.call('HGETALL', KEYS[1])
local attempts = {}
for i = 1, #fields, 2 do
  local id = string.match(fields[i], '^(.*):at$')
  if id then table.insert(attempts, { id, tonumber(fields[i + 1]) }) end
end
table.sort(attempts, function(one, other) return one[2] > other[2] end)
for i, attempt in ipairs(attempts) do
  if i > tonumber(ARGV[5]) or attempt[2] <= ARGV[4] - ARGV[6] then
    redis.call('HDEL', KEYS[1], attempt[1] .. ':secret', attempt[1] .. ':place', attempt[1] .. ':at')
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 1`);

// KEYS: attempts. ARGV: id
const takeScript = defineScript(`
local found = redis.call('HMGET', KEYS[1], ARGV[1] .. ':place', ARGV[1] .. ':secret')
redis.call('HDEL', KEYS[1], ARGV[1] .. ':secret')
return found`);

function redisStore(redis: Redis, clock: Clock): AttemptStore {
  const key = (browser: string) => `{attempts:${browser}}`;
  return {
    async add(browser, id, { secret, place }) {
      await redis.run(addScript, [key(browser)], [id, secret, place, clock().getTime(), most, memory]);
    },
    async take(browser, id) {
      const reply = await redis.run(takeScript, [key(browser)], [id]);
      const [place, secret] = Array.isArray(reply) ? reply : [];
      if (typeof place !== 'string') return undefined;
      return { place, ...(typeof secret === 'string' && { secret }) };
    },
  };
}

function memoryStore(clock: Clock): AttemptStore {
  const expiry = { ttl: memory, ttlResolution: 0, perf: { now: () => clock().getTime() } };
  const browsers = new LRUCache<string, LRUCache<string, SealedAttempt>>({ ...expiry, max: 10_000 });
  return {
    async add(browser, id, attempt) {
      const attempts = browsers.get(browser) ?? new LRUCache({ ...expiry, max: most });
      browsers.set(browser, attempts.set(id, { ...attempt }));
    },
    async take(browser, id) {
      const attempt = browsers.get(browser)?.peek(id);
      if (!attempt) return undefined;
      const taken = { ...attempt };
      delete attempt.secret;
      return taken;
    },
  };
}
