// What a store of sessions does; Redis and memory do it alike. It holds sealed texts and opens none. A session is there
// only while its tokens are, and whatever changes them asks that they still be there: nothing brings a session back.
import type { Store } from 'express-session';

export interface Intent {
  /** Of the one attempt to refresh that may present the refresh token. */
  id: string;
  /** When it was written. Milliseconds since 1970, as every time here. */
  since: number;
}

export interface StoredTokens {
  /** Counts changes of the set. */
  version: number;
  sealed: string;
  /** When the session ends though requests keep coming. */
  limit: number;
  /** Of the last request that left a mark. */
  touched: number;
  /** A refresh that is under way, or of which nobody knows how it ended. */
  intent?: Intent;
}

export interface StoredSession {
  /** What express-session has stored, sealed. */
  record: string;
  tokens: StoredTokens;
}

export interface SealedTokens {
  sealed: string;
  limit: number;
}

export interface TokenStore {
  /** Makes the session whose record is stored a live one. */
  start(handle: string, tokens: SealedTokens, now: number): Promise<void>;
  load(handle: string): Promise<StoredSession | undefined>;
  /** Whether what `load` answers may be kept until `onChange` tells otherwise. */
  readonly mayKeep: boolean;
  /** While `mayKeep`: all changes until then have been told, by `performance.now()`. */
  readonly toldUntil: number;
  /** With null, any session may have changed. The function that it answers stops listening. */
  onChange(listener: (handle: string | null) => void): () => void;
  /** Marks a request, unless the last mark is younger than `interval`. False when the session is gone. */
  touch(handle: string, now: number, interval: number): Promise<boolean>;
  /**
   * Writes the intent to refresh this version of the set. `held`: another attempt has done so; `changed`: the set has
   * another version; `gone`: the session has ended. Repeating a claim answers `claimed` again.
   */
  claim(handle: string, version: number, intent: Intent): Promise<'claimed' | 'held' | 'changed' | 'gone'>;
  /** Takes the intent back: the refresh token was certainly not used. */
  release(handle: string, intentId: string): Promise<void>;
  /** Replaces the set and takes the intent back; false unless this intent stands, in which case nothing changes. */
  replace(handle: string, intentId: string, tokens: SealedTokens, now: number): Promise<boolean>;
  /** Removes record and tokens. False when the session was gone already. */
  end(handle: string): Promise<boolean>;
}

/** Which sessions there are of a person, of a tenant, of a session of the access service. No index is ever scanned. */
export interface SessionIndex {
  /** `until`: when the entry may be forgotten. */
  enter(indexes: string[], handle: string, until: number, now: number): Promise<void>;
  /** At most `top` handles, latest first; `after`: the last handle of the page before. */
  entries(index: string, top: number, after?: string): Promise<string[]>;
  /** `until`: not an entry that is to be kept for longer. */
  remove(indexes: string[], handle: string, until?: number): Promise<void>;
}

/** Small facts that are kept for a while. */
export interface Marks {
  /** Keeps the greatest value. */
  raise(name: string, value: number, milliseconds: number): Promise<void>;
  value(name: string): Promise<number | undefined>;
}

export interface SessionStore {
  /** Where express-session's records go; its ids are handles, its data are `SealedRecord`s. */
  records: Store;
  tokens: TokenStore;
  index: SessionIndex;
  marks: Marks;
}

/** When a session ends if no further request comes. */
export function expiryOf({ limit, touched }: Pick<StoredTokens, 'limit' | 'touched'>, idle: number): number {
  return Math.min(limit, touched + idle);
}
