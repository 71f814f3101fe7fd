// Tests when the keys of one realm are downloaded, and how long they are used. The test controls the downloads and the
// clock.
import { setImmediate as settle } from 'node:timers/promises';
import { createLocalJWKSet, exportJWK, generateKeyPair, type JWK, errors as jose } from 'jose';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { KeySet } from './key-set.ts';
import { createRealmKeys, type KeyPace, KeysUnavailable, type RealmKeys } from './realm-keys.ts';

const usual: KeyPace = {
  spacing: 0,
  missed: 1_500,
  fresh: 300_000,
  removed: 600_000,
  oldest: 36_000_000,
  retry: 10_000,
  patience: 5_000,
};

let jwk: JWK;
let now: number;
/** The ids of the keys that the realm publishes. Undefined while downloads fail. */
let published: string[] | undefined;
/** Times at which downloads began. */
let downloads: number[];
/** No download ends before this promise has resolved. */
let held: Promise<void>;
let mayEnter: boolean;
let waiting: { caller: number; provider: number };
let misses: Map<unknown, number>;
let reserved: number;

beforeAll(async () => {
  jwk = await exportJWK((await generateKeyPair('ES256', { extractable: true })).publicKey);
});
beforeEach(() => {
  now = 1_000_000;
  published = ['a'];
  downloads = [];
  held = Promise.resolve();
  mayEnter = true;
  waiting = { caller: 0, provider: 0 };
  misses = new Map();
  reserved = 0;
});

function keySet(kids: string[]): KeySet {
  const keys = kids.map((kid) => ({ ...jwk, kid, alg: 'ES256' }));
  return { find: createLocalJWKSet({ keys }), fingerprint: kids.join() };
}

function create(pace: Partial<KeyPace> = {}): RealmKeys {
  return createRealmKeys({
    async download() {
      downloads.push(now);
      const found = published;
      await held;
      if (!found) throw new Error('down');
      return keySet(found);
    },
    reserve: () => reserved,
    enter(source) {
      if (mayEnter) waiting[source] += 1;
      return mayEnter;
    },
    leave(source) {
      waiting[source] -= 1;
    },
    misses: { get: ([header]) => misses.get(header?.kid), set: ([header], at) => void misses.set(header?.kid, at) },
    pace: { ...usual, ...pace },
    now: () => now,
  });
}

type Outcome = 'found' | 'missing' | 'unknown';
async function outcomeOf(keys: RealmKeys, kid = 'a'): Promise<Outcome> {
  try {
    await keys.find('caller', { alg: 'ES256', kid });
    return 'found';
  } catch (error) {
    if (error instanceof KeysUnavailable) return 'unknown';
    if (error instanceof jose.JWKSNoMatchingKey) return 'missing';
    throw error;
  }
}
const foundBy = async (keys: RealmKeys) => (await keys.find('caller', { alg: 'ES256', kid: 'a' })).keys;
function hold(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  held = promise;
  return resolve;
}

describe('the keys of a realm', () => {
  it('are downloaded for the first token, and then used without a download until they age', async () => {
    const keys = create();
    expect(downloads).toEqual([]);
    expect(await outcomeOf(keys)).toBe('found');
    now += usual.fresh - 1;
    expect(await outcomeOf(keys)).toBe('found');
    await settle();
    expect(downloads).toEqual([1_000_000]);
  });

  it('that age are downloaded in the background, while tokens are verified with the old ones', async () => {
    const keys = create();
    await outcomeOf(keys);
    now += usual.fresh;
    const release = hold();
    expect(await outcomeOf(keys)).toBe('found');
    await settle();
    expect(downloads).toEqual([1_000_000, 1_300_000]);
    release();
    await settle();
    now += usual.fresh - 1;
    expect(await outcomeOf(keys)).toBe('found');
    await settle();
    expect(downloads).toHaveLength(2);
  });

  it('that may have been removed are downloaded before a token is verified', async () => {
    const keys = create();
    await outcomeOf(keys);
    published = ['b'];
    now += usual.removed;
    expect(await outcomeOf(keys)).toBe('missing');
    expect(await outcomeOf(keys, 'b')).toBe('found');
  });

  it('are used one moment before they may have been removed', async () => {
    const keys = create();
    await outcomeOf(keys);
    published = ['b'];
    now += usual.removed - 1;
    expect(await outcomeOf(keys)).toBe('found');
  });

  it('are used for hours while downloads fail, but not for longer', async () => {
    const keys = create();
    await outcomeOf(keys);
    published = undefined;
    now += usual.fresh;
    expect(await outcomeOf(keys)).toBe('found');
    await settle();
    now = 1_000_000 + usual.oldest - 1;
    expect(await outcomeOf(keys)).toBe('found');
    await settle();
    now = 1_000_000 + usual.oldest;
    expect(await outcomeOf(keys)).toBe('unknown');
  });

  it('are replaced by the first download that succeeds after failures, which ends the use of old ones', async () => {
    const keys = create();
    await outcomeOf(keys);
    published = undefined;
    now += usual.fresh;
    await outcomeOf(keys);
    await settle();
    published = ['a'];
    now += usual.retry;
    await outcomeOf(keys);
    await settle();
    expect(downloads).toHaveLength(3);
    published = ['b'];
    now += usual.removed;
    expect(await outcomeOf(keys)).toBe('missing');
  });

  it('are requested at most once in the time for retries while downloads fail', async () => {
    const keys = create();
    await outcomeOf(keys);
    published = undefined;
    now += usual.fresh;
    await outcomeOf(keys);
    await settle();
    now += usual.retry - 1;
    await outcomeOf(keys);
    await settle();
    expect(downloads).toHaveLength(2);
    now += 1;
    await outcomeOf(keys);
    await settle();
    expect(downloads).toHaveLength(3);
  });

  it('are not requested in the background within the spacing of downloads', async () => {
    const keys = create({ fresh: 0, spacing: 1_000 });
    await outcomeOf(keys);
    now += 999;
    await outcomeOf(keys);
    await settle();
    expect(downloads).toHaveLength(1);
    now += 1;
    await outcomeOf(keys);
    await settle();
    expect(downloads).toHaveLength(2);
  });

  it('are not requested in the background for a realm that was never asked for', async () => {
    const keys = create();
    expect(keys.areCurrent(keySet(['a']))).toBe(false);
    await settle();
    expect(downloads).toEqual([]);
  });
});

describe('the key of a token', () => {
  it('that is unknown is looked for in one download, and is refused if that lacks it', async () => {
    const keys = create();
    await outcomeOf(keys);
    expect(await outcomeOf(keys, 'b')).toBe('missing');
    expect(downloads).toHaveLength(2);
    published = ['a', 'c'];
    expect(await outcomeOf(keys, 'c')).toBe('found');
    expect(downloads).toHaveLength(3);
  });

  it('that was missed is not looked for again until it may have been published', async () => {
    const keys = create();
    await outcomeOf(keys);
    const release = hold();
    const first = outcomeOf(keys, 'b');
    await settle();
    now += 700;
    release();
    expect([await first, misses.get('b')]).toEqual(['missing', 1_000_000]);
    now = 1_000_000 + usual.missed - 1;
    published = ['b'];
    expect([await outcomeOf(keys, 'b'), downloads.length]).toEqual(['missing', 2]);
    now += 1;
    expect([await outcomeOf(keys, 'b'), downloads.length]).toEqual(['found', 3]);
  });

  it('that was missed in keys that may have been removed is looked for', async () => {
    const keys = create({ fresh: 100, removed: 200 });
    await outcomeOf(keys);
    expect(await outcomeOf(keys, 'b')).toBe('missing');
    published = ['b'];
    now += 200;
    expect(await outcomeOf(keys, 'b')).toBe('found');
  });

  it('is found by a download that was running already', async () => {
    const keys = create();
    const release = hold();
    const first = outcomeOf(keys);
    await settle();
    const second = outcomeOf(keys);
    release();
    expect([await first, await second, downloads.length]).toEqual(['found', 'found', 1]);
  });

  it('is looked for once more after a running download, which may have begun before it was published', async () => {
    const keys = create();
    const release = hold();
    const first = outcomeOf(keys);
    await settle();
    published = ['a', 'b'];
    const second = outcomeOf(keys, 'b');
    release();
    expect([await first, await second, downloads.length]).toEqual(['found', 'found', 2]);
  });

  it('that two keys of the realm match is refused without another download', async () => {
    published = ['a', 'a'];
    const keys = create();
    await expect(outcomeOf(keys)).rejects.toBeInstanceOf(jose.JWKSMultipleMatchingKeys);
    expect(downloads).toHaveLength(1);
  });

  it('is unknown if the download fails, with its cause', async () => {
    published = undefined;
    const keys = create();
    await expect(keys.find('caller', { alg: 'ES256', kid: 'a' })).rejects.toMatchObject({
      name: 'KeysUnavailable',
      message: 'the keys of the realm cannot be downloaded',
      cause: new Error('down'),
    });
    expect(misses.size).toBe(0);
  });

  it('is unknown without another download if the running one fails', async () => {
    published = undefined;
    const keys = create();
    const release = hold();
    const first = outcomeOf(keys);
    await settle();
    const second = outcomeOf(keys);
    release();
    expect([await first, await second, downloads.length]).toEqual(['unknown', 'unknown', 1]);
  });

  it('that the old keys lack is unknown while downloads fail', async () => {
    const keys = create();
    await outcomeOf(keys);
    published = undefined;
    expect([await outcomeOf(keys, 'b'), await outcomeOf(keys)]).toEqual(['unknown', 'found']);
  });
});

describe('a token that waits for a download', () => {
  it('is counted by its source until the wait ends', async () => {
    const keys = create();
    const release = hold();
    const first = keys.find('provider', { alg: 'ES256', kid: 'a' });
    const second = outcomeOf(keys);
    await settle();
    expect(waiting).toEqual({ caller: 1, provider: 1 });
    release();
    expect((await first).key.type).toBe('public');
    await second;
    expect(waiting).toEqual({ caller: 0, provider: 0 });
    await outcomeOf(keys);
    expect(waiting).toEqual({ caller: 0, provider: 0 });
  });

  it('gives up after a limited time, and is counted until the download ends', async () => {
    const keys = create({ patience: 10 });
    const release = hold();
    await expect(keys.find('caller', { alg: 'ES256', kid: 'a' })).rejects.toMatchObject({
      name: 'KeysUnavailable',
      message: 'the download of the keys takes too long',
    });
    expect(waiting.caller).toBe(1);
    release();
    await expect.poll(() => waiting.caller).toBe(0);
    expect(await outcomeOf(keys)).toBe('found');
  });

  it('beyond the limit is refused immediately, and the download still happens', async () => {
    const keys = create();
    mayEnter = false;
    await expect(keys.find('caller', { alg: 'ES256', kid: 'a' })).rejects.toMatchObject({
      name: 'KeysUnavailable',
      message: 'too many tokens wait for keys',
    });
    await settle();
    expect([await outcomeOf(keys), downloads.length]).toEqual(['found', 1]);
    published = ['a', 'b'];
    expect(await outcomeOf(keys, 'b')).toBe('missing');
    await settle();
    expect([await outcomeOf(keys, 'b'), downloads.length]).toEqual(['found', 2]);
  });

  it('waits for the spacing of downloads, and for the budget of all realms', async () => {
    const keys = create({ spacing: 1_000 });
    await outcomeOf(keys);
    const delayOf = async () => {
      const began = performance.now();
      await outcomeOf(keys, 'b');
      misses.clear();
      return performance.now() - began;
    };
    expect(await delayOf()).toBeGreaterThanOrEqual(990);
    now += 1_000;
    expect(await delayOf()).toBeLessThan(990);
    now += 1_000;
    reserved = 1_000;
    expect(await delayOf()).toBeGreaterThanOrEqual(990);
  });
});

describe('keys that verified a token', () => {
  it('are current until the realm publishes others', async () => {
    const keys = create();
    const used = await foundBy(keys);
    expect(keys.areCurrent(used)).toBe(true);
    expect(keys.areCurrent(keySet(['a']))).toBe(false);
    published = ['b'];
    await outcomeOf(keys, 'b');
    expect(keys.areCurrent(used)).toBe(false);
  });

  it('stay current if a download finds the same keys', async () => {
    const keys = create();
    const used = await foundBy(keys);
    await outcomeOf(keys, 'b');
    expect([downloads.length, keys.areCurrent(used), await foundBy(keys)]).toEqual([2, true, used]);
  });

  it('are not current once the realm may have removed them', async () => {
    const keys = create();
    const used = await foundBy(keys);
    now += usual.removed;
    expect(keys.areCurrent(used)).toBe(false);
  });
});
