// Tests key rotations while attackers send tokens that name nonexistent keys, or while the provider fails. All times
// are shortened: the limit of one download per second becomes one per 50 ms.
import { randomUUID } from 'node:crypto';
import { type JWTPayload, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import {
  faults,
  type KeyServer,
  type KeyServerMode,
  type RealmKey,
  signToken,
  startKeyServer,
} from '../../../test/support/key-server.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { createMetrics, type Metrics } from '../operations/metrics.ts';
import { KeysUnavailable } from './realm-keys.ts';
import { createSigningKeys, isTokenFault, type SigningKeys, type SigningKeysPace } from './signing-keys.ts';
import { createKeysUrl } from './tenant-issuers.ts';

const spacing = 50;
let server: KeyServer;
let key: RealmKey;
let metrics: Metrics;
/** Milliseconds by which the clock of the key cache is ahead. */
let ahead: number;
const { log, lines } = captureLog();

beforeEach(async () => {
  server = await startKeyServer();
  key = await addKey();
  metrics = createMetrics();
  ahead = 0;
});
afterEach(() => server.close());

function create(pace: Partial<SigningKeysPace> = {}): SigningKeys {
  const now = () => performance.now() + ahead;
  return createSigningKeys({
    urlOf: createKeysUrl(server.url),
    log,
    metrics,
    now,
    pace: { spacing, missed: 75, ...pace },
  });
}

/** Generates ES256 keys, because that takes less time than generating RSA keys. */
const addKey = (realm = 'demo') => server.addKey(realm, 'ES256');
const claims = (): JWTPayload => ({ sub: 'somebody', jti: randomUUID() });
const tokenOf = (by: RealmKey) => signToken(by, claims());
/** Returns a token that names a nonexistent key. Its signature is never verified. */
function bogus(kid: string = randomUUID()): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'ES256', kid })}.${part(claims())}.AAAA`;
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
const downloads = (realm = 'demo') => server.asked.filter((path) => path.includes(`/realms/${realm}/`)).length;

describe('a new key of a realm', () => {
  it('is found by the first token that it signed, without a failure', async () => {
    const keys = create();
    expect(await outcomeOf(keys, await tokenOf(key))).toBe('valid');
    const rotated = await addKey();
    expect(await outcomeOf(keys, await tokenOf(rotated))).toBe('valid');
    expect(downloads()).toBe(2);
  });

  it('is found although an unknown key has just been looked for', async () => {
    const keys = create();
    await outcomeOf(keys, await tokenOf(key));
    expect(await outcomeOf(keys, bogus())).toBe('invalid');
    const rotated = await addKey();
    expect(await outcomeOf(keys, await tokenOf(rotated))).toBe('valid');
    expect(downloads()).toBe(3);
  });

  it('is found within 2 s with the usual pace, although an unknown key has just been looked for', async () => {
    const keys = createSigningKeys({ urlOf: createKeysUrl(server.url), log, metrics });
    expect(await outcomeOf(keys, bogus())).toBe('invalid');
    const rotated = await addKey();
    const token = await tokenOf(rotated);
    const stopwatch = startStopwatch();
    expect(await outcomeOf(keys, token)).toBe('valid');
    expect(stopwatch.stop()).toBeLessThan(2_000);
  });

  it('is found if it is published while a download runs, which lacks it', async () => {
    const keys = create();
    const release = server.hold('demo');
    const first = outcomeOf(keys, await tokenOf(key));
    await expect.poll(() => downloads()).toBe(1);
    const rotated = await addKey();
    server.publish('demo', server.publishedFor('demo').slice(0, 1));
    const second = outcomeOf(keys, await tokenOf(rotated));
    const releaseNext = server.hold('demo');
    release();
    expect(await first).toBe('valid');
    server.publish('demo', [rotated.jwk]);
    releaseNext();
    expect([await second, downloads()]).toEqual(['valid', 2]);
  });

  it('is found by the second download after its publication while 10,000 tokens a second name unknown keys', async () => {
    const keys = create();
    await outcomeOf(keys, await tokenOf(key));
    const began = performance.now();
    let rotated: RealmKey | undefined;
    let downloadsAtRotation = 0;
    let wasFound = false;
    const outcomes: Promise<Outcome>[] = [];
    for (let batch = 0; batch < 10 || !wasFound; batch += 1) {
      for (let item = 0; item < 500; item += 1) outcomes.push(outcomeOf(keys, bogus()));
      if (batch === 3) {
        rotated = await addKey();
        downloadsAtRotation = downloads();
      }
      // The first download after the rotation may have begun before the new key was published, but the second has found
      // it. The start of a third download shows that the second has ended.
      const isThird = downloads() > downloadsAtRotation + 2;
      wasFound ||= rotated !== undefined && (await outcomeOf(keys, await tokenOf(rotated))) === 'valid';
      if (rotated && isThird) expect(wasFound).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(downloads()).toBeLessThanOrEqual(2 + (performance.now() - began) / (spacing - 1));
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['invalid']));
    expect(await outcomeOf(keys, await tokenOf(key))).toBe('valid');
  });
});

describe('tokens of unknown keys', () => {
  it('wait for a download in a bounded number, and the others are refused immediately', async () => {
    const keys = create();
    await outcomeOf(keys, await tokenOf(key));
    const release = server.hold('demo');
    let refused = 0;
    const all = Array.from({ length: 2_000 }, () => outcomeOf(keys, bogus()).finally(() => (refused += 1)));
    await expect.poll(() => refused).toBe(1_750);
    expect(await outcomeOf(keys, await tokenOf(key))).toBe('valid');
    release();
    await Promise.all(all);
  });

  it('do not keep an ID token from finding a new key', async () => {
    const keys = create();
    await outcomeOf(keys, await tokenOf(key));
    const release = server.hold('demo');
    const flood = Array.from({ length: 300 }, () => outcomeOf(keys, bogus()));
    const rotated = await tokenOf(await addKey());
    expect(await outcomeOf(keys, rotated)).toBe('invalid');
    const verified = jwtVerify(rotated, keys.ofRealm('demo', 'provider'));
    release();
    expect(await verified).toMatchObject({ payload: { sub: 'somebody' } });
    await Promise.all(flood);
  });

  it('of many realms wait in a bounded number in total, and each realm is asked once at a time', async () => {
    const keys = create();
    const realms = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const realm of realms) await addKey(realm);
    const releases = realms.map((realm) => server.hold(realm));
    let ended = 0;
    const all = realms.flatMap((realm) =>
      Array.from({ length: 300 }, () => outcomeOf(keys, bogus(), realm).finally(() => (ended += 1))),
    );
    await expect.poll(() => ended).toBe(1_800 - 1_000);
    await expect.poll(() => server.asked.length).toBe(realms.length);
    for (const release of releases) release();
    await Promise.all(all);
  });

  it('of the same key cause one download, until it may have been published', async () => {
    const keys = create({ spacing: 0, missed: 1_500 });
    await outcomeOf(keys, await tokenOf(key));
    const rotated = { ...key, kid: 'later' };
    expect([await outcomeOf(keys, await tokenOf(rotated)), downloads()]).toEqual(['invalid', 2]);
    for (let attempt = 0; attempt < 5; attempt += 1)
      expect(await outcomeOf(keys, await tokenOf(rotated))).toBe('invalid');
    expect(downloads()).toBe(2);
    server.publish('demo', [{ ...key.jwk, kid: 'later' }]);
    ahead = 1_500;
    expect([await outcomeOf(keys, await tokenOf(rotated)), downloads()]).toEqual(['valid', 3]);
  });

  it('of all realms together cause a bounded number of downloads a second', async () => {
    const perSecond = 20;
    const keys = create({ perSecond, spacing: 0, missed: 0, patience: 500 });
    const realms = Array.from({ length: 40 }, (_, index) => `realm-${index}`);
    for (const realm of realms) server.publish(realm, [key.jwk]);
    const began = performance.now();
    const outcomes = await Promise.all(realms.map((realm) => outcomeOf(keys, bogus(), realm)));
    const most = perSecond + (perSecond * (performance.now() - began)) / 1_000 + 1;
    expect(server.asked.length).toBeLessThanOrEqual(most);
    expect(new Set(outcomes)).toEqual(new Set(['invalid', 'unknown']));
  });

  it('may name keys of any length and type', async () => {
    const keys = create({ spacing: 0 });
    for (const kid of ['', 'x'.repeat(10_000), '__proto__', '\u0000', 7, null, {}])
      expect(await outcomeOf(keys, bogus(kid as string))).toBe('invalid');
  });
});

describe('a key of an algorithm that only ID tokens may have', () => {
  it.each(['ES384', 'ES512', 'Ed25519'])('verifies ID tokens (%s), and no token of a caller', async (alg) => {
    const keys = create();
    const signer = await server.addKey('demo', alg);
    const token = await signToken(signer, claims());
    expect(await jwtVerify(token, keys.ofRealm('demo', 'provider'))).toMatchObject({ protectedHeader: { alg } });
    const { alg: _, ...withoutAlg } = signer.jwk;
    server.publish('demo', [withoutAlg]);
    ahead = 3_600_000;
    expect(await jwtVerify(token, keys.ofRealm('demo', 'provider'))).toMatchObject({ protectedHeader: { alg } });
    expect(await outcomeOf(keys, token)).toBe('invalid');
  });
});

describe('a realm whose keys are slow', () => {
  it('delays no other realm', async () => {
    const keys = create();
    const release = server.hold('demo');
    const waiting = Array.from({ length: 300 }, () => outcomeOf(keys, bogus()));
    const otherKey = await addKey('other');
    expect(await outcomeOf(keys, await tokenOf(otherKey), 'other')).toBe('valid');
    const rotated = await addKey('other');
    expect(await outcomeOf(keys, await tokenOf(rotated), 'other')).toBe('valid');
    release();
    await Promise.all(waiting);
  });

  it('makes tokens wait for a limited time', async () => {
    const keys = create({ patience: 100, timeout: 2_000 });
    const release = server.hold('demo');
    expect(await outcomeOf(keys, await tokenOf(key))).toBe('unknown');
    release();
    await expect.poll(async () => outcomeOf(keys, await tokenOf(key))).toBe('valid');
  });

  it('does not make tokens wait whose key is known', async () => {
    const keys = create({ fresh: 1_000, removed: 2_000 });
    await outcomeOf(keys, await tokenOf(key));
    const release = server.hold('demo');
    ahead = 1_500;
    expect(await outcomeOf(keys, await tokenOf(key))).toBe('valid');
    await expect.poll(() => downloads()).toBe(2);
    expect(await outcomeOf(keys, await tokenOf(key))).toBe('valid');
    release();
  });
});

describe('a response without usable keys', () => {
  it.each(Object.keys(faults) as KeyServerMode[])(
    '(%s) never replaces good ones, and is logged and counted',
    async (mode) => {
      const pace = { fresh: 1_000, removed: 2_000, oldest: 10_000, retry: 0, spacing: 0 };
      const keys = create(pace);
      await outcomeOf(keys, await tokenOf(key));
      server.mode = mode;
      ahead = 5_000;
      expect(await outcomeOf(keys, await tokenOf(key))).toBe('valid');
      expect(await outcomeOf(keys, bogus())).toBe('unknown');
      expect(lines().at(-1)).toMatchObject({
        level: 'warn',
        realm: 'demo',
        msg: 'keys of a realm could not be fetched',
      });
      expect(await metrics.registry.metrics()).toMatch(
        /formgate_dependency_failures_total\{dependency="identity-provider",kind="keys"\} [1-9]/,
      );
      ahead = 10_001;
      expect(await outcomeOf(keys, await tokenOf(key))).toBe('unknown');
      server.mode = 'up';
      expect(await outcomeOf(keys, await tokenOf(key))).toBe('valid');
    },
  );

  it.each(Object.keys(faults) as KeyServerMode[])('(%s) leaves the validity of a token unknown', async (mode) => {
    const keys = create();
    server.mode = mode;
    expect(await outcomeOf(keys, await tokenOf(key))).toBe('unknown');
    server.mode = 'up';
    expect(await outcomeOf(keys, await tokenOf(key))).toBe('valid');
  });

  it('of some keys only is used for the others', async () => {
    const keys = create();
    server.publish('demo', [{ kty: 'RSA', kid: 'broken', n: 'AA' }, key.jwk, { ...key.jwk, kid: 'enc', use: 'enc' }]);
    expect(await outcomeOf(keys, await tokenOf(key))).toBe('valid');
    expect(await outcomeOf(keys, await tokenOf({ ...key, kid: 'enc' }))).toBe('invalid');
    expect(await outcomeOf(keys, await tokenOf({ ...key, kid: 'broken' }))).toBe('invalid');
  });
});

describe('a key that the realm has removed', () => {
  const pace = { fresh: 1_000, removed: 2_000, spacing: 0 };

  it('is refused after the time for it, even if nobody called in the meantime', async () => {
    const keys = create(pace);
    const removed = await tokenOf(key);
    const { isCurrent } = await keys.verify('demo', removed, {});
    const rotated = await addKey();
    server.publish('demo', [rotated.jwk]);
    ahead = 500;
    expect([isCurrent(), await outcomeOf(keys, removed)]).toEqual([true, 'valid']);
    ahead = 2_000;
    expect([isCurrent(), await outcomeOf(keys, removed)]).toEqual([false, 'invalid']);
    expect(await outcomeOf(keys, await tokenOf(rotated))).toBe('valid');
  });

  it('is refused soon after other tokens have caused a download', async () => {
    const keys = create(pace);
    const { isCurrent } = await keys.verify('demo', await tokenOf(key), {});
    const rotated = await addKey();
    server.publish('demo', [rotated.jwk]);
    expect(await outcomeOf(keys, await tokenOf(rotated))).toBe('valid');
    expect([isCurrent(), await outcomeOf(keys, await tokenOf(key))]).toEqual([false, 'invalid']);
  });

  it('does not affect tokens of a realm whose keys stay the same', async () => {
    const keys = create(pace);
    const { isCurrent } = await keys.verify('demo', await tokenOf(key), {});
    await addKey();
    server.publish('demo', server.publishedFor('demo').slice(0, 1));
    ahead = 1_500;
    expect(isCurrent()).toBe(true);
    await expect.poll(() => downloads()).toBe(2);
    ahead = 3_000;
    // The download may not have ended yet.
    await expect.poll(isCurrent).toBe(true);
  });
});
