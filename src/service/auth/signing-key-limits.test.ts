// Tests the limits on downloads of signing keys, and the default times. Before each download, `urlOf` looks up the
// address of the keys. The test makes this lookup wait or fail.
import { errors as jose, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type KeyServer, type RealmKey, signToken, startKeyServer } from '../../../test/support/key-server.ts';
import { createMetrics, type Metrics } from '../operations/metrics.ts';
import { KeysUnavailable } from './realm-keys.ts';
import {
  createSigningKeys,
  idTokenAlgorithms,
  isTokenFault,
  type SigningKeys,
  type SigningKeysPace,
  signatureAlgorithms,
} from './signing-keys.ts';
import { createKeysUrl } from './tenant-issuers.ts';

let server: KeyServer;
let key: RealmKey;
let metrics: Metrics;
let now: number;
/** Realms whose keys were downloaded, in order. */
let downloads: string[];
/** Runs before each download, and can delay or fail it. */
let gate: (realm: string) => Promise<void>;
const { log, lines } = captureLog();

beforeEach(async () => {
  server = await startKeyServer();
  key = await server.addKey('demo', 'ES256');
  metrics = createMetrics();
  now = 1_000_000;
  downloads = [];
  gate = async () => undefined;
});
afterEach(async () => {
  vi.restoreAllMocks();
  await server.close();
});

function create(pace: Partial<SigningKeysPace> | undefined): SigningKeys {
  const urlOf = createKeysUrl(server.url);
  return createSigningKeys({
    async urlOf(realm) {
      downloads.push(realm);
      await gate(realm);
      return urlOf(realm);
    },
    ...{ log, metrics, pace, now: () => now },
  });
}

/** A pace without pauses between downloads. */
const hasty = { spacing: 0, missed: 0 };
const tokenOf = (kid = key.kid) => signToken({ ...key, kid }, { sub: 'somebody' });
function bogus(header: object = {}): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'ES256', kid: 'none', ...header })}.${part({})}.AAAA`;
}
type Outcome = 'valid' | 'invalid' | 'unknown';
async function outcomeOf(keys: SigningKeys, token: string, realm = 'demo'): Promise<Outcome> {
  try {
    await keys.verify(realm, token, {});
    return 'valid';
  } catch (error) {
    if (error instanceof KeysUnavailable) return 'unknown';
    if (isTokenFault(error)) return 'invalid';
    throw error;
  }
}
async function idTokenOutcome(keys: SigningKeys, token: string, realm = 'demo'): Promise<Outcome> {
  try {
    await jwtVerify(token, keys.ofRealm(realm, 'provider'));
    return 'valid';
  } catch (error) {
    return error instanceof jose.JOSEError ? 'invalid' : 'unknown';
  }
}
const settle = () => new Promise((resolve) => setTimeout(resolve, 10));
function hold(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = () => promise;
  return resolve;
}

describe('the algorithms of tokens', () => {
  it('are asymmetric, and ID tokens may have more of them than callers', () => {
    expect(signatureAlgorithms).toEqual(['RS256', 'PS256', 'ES256', 'EdDSA']);
    expect(idTokenAlgorithms).toEqual([
      ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
      ...['EdDSA', 'Ed25519'],
    ]);
  });

  it('that only ID tokens may have verify no token of a caller', async () => {
    key = await server.addKey('demo', 'ES384');
    const keys = create(hasty);
    const token = await tokenOf();
    expect([await idTokenOutcome(keys, token), await outcomeOf(keys, token)]).toEqual(['valid', 'invalid']);
  });
});

describe('tokens that wait for the keys of a realm', () => {
  it('are at most 250, and the others are refused immediately', async () => {
    const keys = create(hasty);
    const release = hold();
    const outcomes: Outcome[] = [];
    const all = Array.from({ length: 251 }, async () => outcomes.push(await outcomeOf(keys, bogus())));
    await settle();
    expect(outcomes).toEqual(['unknown']);
    // Without the argument `source`, the waiting token counts as a caller's token.
    await expect(jwtVerify(bogus(), keys.ofRealm('demo'))).rejects.toThrow('too many tokens');
    release();
    await Promise.all(all);
    expect(outcomes.slice(1)).toEqual(Array.from({ length: 250 }, () => 'invalid'));
  });

  it('are not counted after their wait', async () => {
    const keys = create(hasty);
    await Promise.all(Array.from({ length: 250 }, () => outcomeOf(keys, bogus())));
    const rotated = await server.addKey('demo', 'ES256');
    expect(await outcomeOf(keys, await signToken(rotated, { sub: 'somebody' }))).toBe('valid');
  });

  it('do not keep ID tokens from waiting, of which there may be 250 too', async () => {
    const keys = create(hasty);
    const release = hold();
    const callers = Array.from({ length: 250 }, () => outcomeOf(keys, bogus()));
    const token = await tokenOf();
    const outcomes: Outcome[] = [];
    const idTokens = Array.from({ length: 251 }, async () => outcomes.push(await idTokenOutcome(keys, token)));
    await settle();
    expect(outcomes).toEqual(['unknown']);
    release();
    await Promise.all([...callers, ...idTokens]);
    expect(new Set(outcomes.slice(1))).toEqual(new Set(['valid']));
  });

  it('are at most 1,000 for all realms together', async () => {
    const keys = create(hasty);
    const release = hold();
    const outcomes: Outcome[] = [];
    const all = Array.from({ length: 1_001 }, async (_, index) =>
      outcomes.push(await outcomeOf(keys, bogus(), `realm-${index % 10}`)),
    );
    await settle();
    expect(outcomes).toEqual(['unknown']);
    const idToken = idTokenOutcome(keys, await tokenOf());
    release();
    expect(await idToken).toBe('valid');
    await Promise.all(all);
    const otherKey = await server.addKey('other', 'ES256');
    expect(await outcomeOf(keys, await signToken(otherKey, { sub: 'somebody' }), 'other')).toBe('valid');
  });
});

describe('downloads', () => {
  it('are separate for each realm, and start without being asked for by another realm', async () => {
    const otherKey = await server.addKey('other', 'ES256');
    const keys = create(hasty);
    const otherToken = await signToken(otherKey, { sub: 'somebody' });
    expect(await outcomeOf(keys, await tokenOf())).toBe('valid');
    expect(await outcomeOf(keys, otherToken)).toBe('invalid');
    expect(await outcomeOf(keys, otherToken, 'other')).toBe('valid');
    expect(downloads).toEqual(['demo', 'demo', 'other']);
  });

  it('that lacked a key are remembered by realm, algorithm and key', async () => {
    const keys = create({ spacing: 0, missed: 1_000 });
    await server.addKey('other', 'ES256');
    for (const [realm, header] of [
      ['demo', {}],
      ['demo', {}],
      ['demo', { kid: 'another' }],
      ['demo', { alg: 'RS256' }],
      ['other', {}],
      ['other', {}],
    ] as const)
      expect(await outcomeOf(keys, bogus(header), realm)).toBe('invalid');
    expect(downloads).toEqual(['demo', 'demo', 'demo', 'other']);
  });

  it('that fail are logged and counted, and those that succeed are measured', async () => {
    const keys = create(hasty);
    server.mode = 'failing';
    expect(await outcomeOf(keys, await tokenOf())).toBe('unknown');
    expect(lines().at(-1)).toMatchObject({
      level: 'warn',
      realm: 'demo',
      msg: 'keys of a realm could not be fetched',
      err: { message: 'the identity provider responded with 500' },
    });
    const failures = 'formgate_dependency_failures_total{dependency="identity-provider",kind="keys"} 1';
    expect(await metrics.registry.metrics()).toContain(failures);
    server.mode = 'up';
    expect(await outcomeOf(keys, await tokenOf())).toBe('valid');
    const text = await metrics.registry.metrics();
    expect(text).toContain(failures);
    for (const outcome of ['ok', 'failed'])
      expect(text).toContain(`formgate_dependency_calls_total{dependency="identity-provider",outcome="${outcome}"} 1`);
    const seconds = /call_duration_seconds_sum\{dependency="identity-provider"\} (.*)/.exec(text)?.[1];
    expect(Number(seconds)).toBeGreaterThan(0);
    expect(Number(seconds)).toBeLessThan(5);
  });
});

describe('by default', () => {
  it('time is read from the clock of the process', async () => {
    const keys = createSigningKeys({ urlOf: createKeysUrl(server.url), log, metrics });
    expect([await outcomeOf(keys, await tokenOf()), await outcomeOf(keys, await tokenOf())]).toEqual([
      'valid',
      'valid',
    ]);
    expect(server.asked).toHaveLength(1);
  });

  it('keys are used for 5 minutes without a download, for 10 while one runs, and for 10 hours while they fail', async () => {
    const keys = create(undefined);
    const token = await tokenOf();
    const began = now;
    const { isCurrent } = await keys.verify('demo', token, {});
    now = began + 299_999;
    expect([await outcomeOf(keys, token), downloads.length]).toEqual(['valid', 1]);
    gate = () => Promise.reject(new Error('down'));
    now = began + 300_000;
    expect(await outcomeOf(keys, token)).toBe('valid');
    await settle();
    expect(downloads).toHaveLength(2);
    now = began + 309_999;
    expect(await outcomeOf(keys, token)).toBe('valid');
    await settle();
    expect(downloads).toHaveLength(2);
    now = began + 310_000;
    expect(await outcomeOf(keys, token)).toBe('valid');
    await settle();
    expect(downloads).toHaveLength(3);
    now = began + 35_999_999;
    expect(isCurrent()).toBe(true);
    now = began + 36_000_000;
    expect(isCurrent()).toBe(false);
    await settle();
  });

  it('keys that the realm has removed verify tokens for at most 10 minutes', async () => {
    const keys = create(undefined);
    const { isCurrent } = await keys.verify('demo', await tokenOf(), {});
    const release = hold();
    now += 599_999;
    expect(isCurrent()).toBe(true);
    now += 1;
    expect(isCurrent()).toBe(false);
    release();
    await settle();
  });

  it('a realm is asked again after a second, and for the same key after one and a half', async () => {
    const keys = create(undefined);
    const token = await tokenOf('later');
    expect(await outcomeOf(keys, token)).toBe('invalid');
    expect(downloads).toHaveLength(1);
    server.publish('demo', [{ ...key.jwk, kid: 'later' }]);
    now += 1_499;
    expect([await outcomeOf(keys, token), downloads.length]).toEqual(['invalid', 1]);
    now += 1;
    expect([await outcomeOf(keys, token), downloads.length]).toEqual(['valid', 2]);
    now += 960;
    const waiting = outcomeOf(keys, bogus());
    await settle();
    expect(downloads).toHaveLength(2);
    expect(await waiting).toBe('invalid');
    now += 1_000;
    expect([await outcomeOf(keys, bogus({ kid: 'x' })), downloads.length]).toEqual(['invalid', 4]);
  });

  it('a download may take 5 s, and a token waits for 6 s', async () => {
    const never = new AbortController().signal;
    const limit = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(never);
    const keys = create(undefined);
    await outcomeOf(keys, await tokenOf());
    expect(limit.mock.calls).toEqual([[5_000]]);
    hold();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      now += 600_000;
      let outcome: Outcome | undefined;
      const token = await tokenOf();
      void outcomeOf(keys, token).then((ended) => {
        outcome = ended;
      });
      await vi.advanceTimersByTimeAsync(5_999);
      expect(outcome).toBeUndefined();
      await vi.advanceTimersByTimeAsync(1);
      expect(outcome).toBe('unknown');
    } finally {
      vi.useRealTimers();
    }
  });

  it('all realms together are asked 100 times at once, and then 100 times a second', async () => {
    const keys = create(undefined);
    const release = hold();
    const all = Array.from({ length: 105 }, (_, index) => outcomeOf(keys, bogus(), `realm-${index}`));
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(downloads.length).toBeGreaterThanOrEqual(100);
    await expect.poll(() => downloads.length).toBe(105);
    gate = () => Promise.reject(new Error('down'));
    release();
    await Promise.all(all);
  });
});
