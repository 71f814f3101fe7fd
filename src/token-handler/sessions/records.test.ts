// Tests how the record of a session is stored: the record is encrypted, its key contains a digest of the cookie's id,
// and it is kept no longer than the session may last.
import type { SessionData, Store } from 'express-session';
import { describe, expect, it } from 'vitest';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { handleOf } from './cookies.ts';
import { createRecords, openStored, sealTokens } from './records.ts';
import { recordContext, recordKey, type TokenSet } from './session.ts';
import type { RecordClient, StoredSession } from './store.ts';

const keyOf = (name: string, byte: number) => `${name}:${Buffer.alloc(32, byte).toString('base64')}`;
const keys = createKeyRing(keyOf('one', 1));
const data = { cookie: { originalMaxAge: null, path: '/' }, landings: [{ attempt: 'a', url: '/x' }] };
const record = data as unknown as SessionData;

/** Creates a store of strings in memory that records its calls. */
function createClient() {
  const texts = new Map<string, string>();
  const calls: unknown[][] = [];
  const client: RecordClient = {
    async get(key) {
      calls.push(['get', key]);
      return texts.get(key) ?? null;
    },
    async set(key, text, options) {
      calls.push(['set', key, options]);
      texts.set(key, text);
    },
    async del(deleted) {
      calls.push(['del', deleted]);
      for (const key of deleted) texts.delete(key);
    },
  };
  return { client, texts, calls };
}

type Done<T> = (error?: unknown, value?: T | null) => void;
const called = <T>(start: (done: Done<T>) => void) =>
  new Promise<T | null | undefined>((resolve, reject) =>
    start((error, value) => (error ? reject(error) : resolve(value))),
  );
const set = (store: Store, id: string) => called((done) => store.set(id, record, done));
const get = (store: Store, id: string) => called<SessionData>((done) => store.get(id, done));

describe('the record of a session', () => {
  const key = recordKey(handleOf('an id'));

  it('is found by the id in the cookie, but the store contains neither the id nor the content', async () => {
    const { client, texts, calls } = createClient();
    const store = createRecords(client, keys, 3_600_000);
    await set(store, 'an id');
    expect(await get(store, 'an id')).toEqual(record);
    expect(await get(store, 'another id')).toBeFalsy();
    expect([...texts.keys()]).toEqual([key]);
    expect(texts.get(key)).not.toContain('landings');
    expect(JSON.parse(keys.open(texts.get(key) ?? '', recordContext(handleOf('an id'))))).toEqual(data);
    expect(calls[0]).toEqual(['set', key, { expiration: { type: 'EX', value: 3_600 } }]);
  });

  it('expires with the longest session, rounded up to a second', async () => {
    const { client, calls } = createClient();
    await set(createRecords(client, keys, 1_001), 'an id');
    expect(calls).toEqual([['set', key, { expiration: { type: 'EX', value: 2 } }]]);
  });

  it('is not found if it was sealed for another session, changed, or sealed with a key that was removed', async () => {
    const { client, texts } = createClient();
    await set(createRecords(client, keys, 1_000), 'an id');
    const other = createKeyRing(keyOf('two', 2));
    expect(await get(createRecords(client, other, 1_000), 'an id')).toBeFalsy();
    texts.set(recordKey(handleOf('another id')), texts.get(key) ?? '');
    expect(await get(createRecords(client, keys, 1_000), 'another id')).toBeFalsy();
    texts.set(key, 'not sealed');
    expect(await get(createRecords(client, keys, 1_000), 'an id')).toBeFalsy();
  });

  it('is deleted under the same digest', async () => {
    const { client, texts, calls } = createClient();
    const store = createRecords(client, keys, 1_000);
    await set(store, 'an id');
    await called((done) => store.destroy('an id', done));
    expect(texts.size).toBe(0);
    expect(calls.at(-1)).toEqual(['del', [key]]);
  });

  it('is not extended by requests: only the tokens extend a session', async () => {
    const { client, calls } = createClient();
    const store = createRecords(client, keys, 1_000);
    await called((done) => store.touch?.('an id', record, done));
    expect(calls).toEqual([]);
  });

  it('cannot be read while the store fails', async () => {
    const { client } = createClient();
    client.get = () => Promise.reject(new Error('the store is away'));
    await expect(get(createRecords(client, keys, 1_000), 'an id')).rejects.toThrow('the store is away');
  });
});

describe('a stored session', () => {
  const tokens = { accessToken: 'an access token' } as unknown as TokenSet;
  const signedIn = { subject: 'ana' };
  const record = keys.seal(JSON.stringify({ signedIn }), recordContext('handle'));
  const stored = (sealed: string) => ({ record, tokens: { sealed } }) as unknown as StoredSession;

  it('is decrypted with its tokens', () => {
    expect(openStored(keys, 'handle', stored(sealTokens(keys, 'handle', tokens)))).toEqual({ signedIn, tokens });
  });

  it('counts as ended if its tokens belong to another session, or its key was removed', () => {
    expect(openStored(keys, 'handle', stored(sealTokens(keys, 'another', tokens)))).toBeUndefined();
    const rotated = createKeyRing(keyOf('two', 2));
    expect(openStored(rotated, 'handle', stored(sealTokens(keys, 'handle', tokens)))).toBeUndefined();
  });
});
