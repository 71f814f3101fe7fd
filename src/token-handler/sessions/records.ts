// The store of express-session: connect-redis with a client that encrypts records. The key of a record contains only a
// digest of the id in the cookie, so a copy of the store is not enough to use a session. A record contains no tokens.
import { RedisStore } from 'connect-redis';
import type { SessionData, Store } from 'express-session';
import type { KeyRing } from '../../service/keys/key-ring.ts';
import { handleOf } from './cookies.ts';
import { recordContext, recordKey, type Session as SignedInSession, type TokenSet } from './session.ts';
import type { RecordClient, StoredSession } from './store.ts';

declare module 'express-session' {
  interface SessionData {
    /** Set at sign-in. The session is live only while its tokens exist in the store. */
    signedIn?: SignedInSession;
    /** The last sign-ins of this browser, in case it reloads a callback. */
    landings?: Landing[];
  }
}

export interface Landing {
  /** Id of the attempt to sign in. */
  attempt: string;
  /** The URL to which the callback of the attempt redirected. */
  url: string;
}

/** `maxAge` is in milliseconds. The record usually expires earlier, together with the token set. */
export function createRecords(client: RecordClient, keys: KeyRing, maxAge: number): Store {
  const encrypted: RecordClient = {
    async get(id) {
      const handle = handleOf(id);
      const sealed = await client.get(recordKey(handle));
      try {
        return sealed && keys.open(sealed, recordContext(handle));
      } catch {
        // A session counts as ended if the key that encrypted its record was removed from the key ring.
        return null;
      }
    },
    set(id, text, options) {
      const handle = handleOf(id);
      return client.set(recordKey(handle), keys.seal(text, recordContext(handle)), options);
    },
    del: (ids) => client.del(ids.map((id) => recordKey(handleOf(id)))),
  };
  return new RedisStore({
    client: encrypted,
    prefix: '',
    ttl: Math.ceil(maxAge / 1_000),
    // express-session must not extend sessions. Only the token store does.
    disableTouch: true,
  });
}

const tokensContext = (handle: string) => `tokens of session ${handle}`;

export function sealTokens(keys: KeyRing, handle: string, tokens: TokenSet): string {
  return keys.seal(JSON.stringify(tokens), tokensContext(handle));
}

/**
 * Decrypts a session. Returns undefined if the key that encrypted its tokens or its record was removed from the key
 * ring. The session then counts as ended.
 */
export function openStored(keys: KeyRing, handle: string, { record, tokens }: StoredSession) {
  try {
    const { signedIn }: SessionData = JSON.parse(keys.open(record, recordContext(handle)));
    const set: TokenSet = JSON.parse(keys.open(tokens.sealed, tokensContext(handle)));
    return { signedIn, tokens: set };
  } catch {
    return undefined;
  }
}
