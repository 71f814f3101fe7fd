// The store of express-session: connect-redis over a client that encrypts. Records are encrypted, and stored under a
// digest of the id in the cookie, so that a copy of the store signs nobody in. A record holds no tokens.
import { RedisStore } from 'connect-redis';
import type { Store } from 'express-session';
import type { KeyRing } from '../keys/key-ring.ts';
import { handleOf } from './cookies.ts';
import { recordContext, recordKey, type Session as SignedInSession } from './session.ts';
import type { RecordClient } from './store.ts';

declare module 'express-session' {
  interface SessionData {
    /** Identifies the browser's sign-in attempts. */
    attempts?: string;
    /** Set by a sign-in. Alive only while its tokens are. */
    signedIn?: SignedInSession;
  }
}

/** Seconds that the record of a browser lasts that has not signed in: longer than its attempts to sign in. */
const visitLifetime = 3_660;

/** `maxAge`: milliseconds. Its token set ends a session's record earlier. */
export function createRecords(client: RecordClient, keys: KeyRing, maxAge: number): Store {
  const encrypted: RecordClient = {
    async get(id) {
      const handle = handleOf(id);
      const sealed = await client.get(recordKey(handle));
      try {
        return sealed && keys.open(sealed, recordContext(handle));
      } catch {
        // A session under a key that was dropped from the ring has ended.
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
    ttl: ({ signedIn }) => (signedIn ? Math.ceil(maxAge / 1_000) : visitLifetime),
    // Only the tokens extend a session, and each attempt to sign in saves its record.
    disableTouch: true,
  });
}
