// What express-session keeps of a browser: sealed, and under a digest of what the cookie holds, so that a copy of the
// store signs nobody in. It knows no tokens.
import { hash } from 'node:crypto';
import { type SessionData, Store } from 'express-session';
import type { KeyRing } from '../keys/key-ring.ts';
import type { Session as SignedInSession } from './session.ts';

declare module 'express-session' {
  interface SessionData {
    /** Names the browser's open attempts to sign in. */
    attempts?: string;
    /** Set by a sign-in. Alive only while its tokens are. */
    signedIn?: SignedInSession;
    /** What a store sees of a record, in place of its other members. */
    sealed?: string;
  }
}

/** Milliseconds that a browser's record lasts that has not signed in; a used one lasts longer. */
const visitLifetime = 3_660_000;

/** The public name of the session whose cookie holds `id`. */
export function handleOf(id: string): string {
  return hash('sha256', `formgate session ${id}`, 'base64url');
}

/** For a store that writes text: what it is given is sealed already. */
export const recordSerializer = {
  stringify: (record: SessionData): string => record.sealed ?? '',
  parse: (sealed: string): SessionData => ({ sealed }) as SessionData,
};

/** Seconds that a store keeps a record for; one of a session is cut down to the session's own time by its tokens. */
export function recordSeconds(record: SessionData, maxAge: number): number {
  return Math.ceil((record.signedIn ? maxAge : visitLifetime) / 1_000);
}

/** Seals for `inner`. `idOf`: how `inner` names the record of a handle. */
export function createRecordStore(inner: Store, keys: KeyRing, idOf: (handle: string) => string): Store {
  return new SealedRecords(inner, keys, idOf);
}

const contextOf = (handle: string) => `record of session ${handle}`;

/** Undefined for what cannot be opened: a record of a dropped key is a session that has ended. */
export function openRecord(keys: KeyRing, handle: string, sealed: string): SessionData | undefined {
  try {
    return JSON.parse(keys.open(sealed, contextOf(handle)));
  } catch {
    return undefined;
  }
}

type Done = (error?: unknown) => void;

class SealedRecords extends Store {
  readonly #inner: Store;
  readonly #keys: KeyRing;
  readonly #idOf: (handle: string) => string;

  constructor(inner: Store, keys: KeyRing, idOf: (handle: string) => string) {
    super();
    this.#inner = inner;
    this.#keys = keys;
    this.#idOf = idOf;
  }

  override get(id: string, callback: (error: unknown, record?: SessionData | null) => void): void {
    const handle = handleOf(id);
    this.#inner.get(this.#idOf(handle), (error, found) => {
      const sealed = found?.sealed;
      callback(error, sealed === undefined ? null : (openRecord(this.#keys, handle, sealed) ?? null));
    });
  }

  override set(id: string, record: SessionData, callback?: Done): void {
    const handle = handleOf(id);
    const sealed = this.#keys.seal(JSON.stringify(record), contextOf(handle));
    const { cookie, signedIn } = record;
    this.#inner.set(this.#idOf(handle), { cookie, sealed, ...(signedIn && { signedIn }) }, callback);
  }

  override destroy(id: string, callback?: Done): void {
    this.#inner.destroy(this.#idOf(handleOf(id)), callback);
  }

  /** A session's record lives as long as its tokens, which have marks of their own. */
  override touch(id: string, record: SessionData, callback?: () => void): void {
    if (record.signedIn || !this.#inner.touch) callback?.();
    else this.#inner.touch(this.#idOf(handleOf(id)), record, callback);
  }
}
