// Calls listeners when their session has ended, for any reason and on any replica. If the store has not confirmed a
// session for four seconds, the session counts as ended, because another replica may have revoked it. This class only
// watches: it never ends a session in the store.
import type { FoundSession, Session } from './session.ts';
import type { TokenStore } from './store.ts';

/** What decides whether a session is alive. It has no tokens: the memory of the sessions with tokens is limited. */
export interface Life {
  session: { realm: string; issuer?: Session['issuer'] | undefined };
  state: FoundSession['state'];
}

export interface WatchedSessions {
  /** Returns the session if it is in the cache, which drops a session when the store reports a change. */
  cached(handle: string): FoundSession | undefined;
  read(handle: string): Promise<FoundSession | undefined>;
  isAlive(life: Life): boolean;
}

interface Watched {
  listeners: Set<() => void>;
  /** The life of the session as the store last returned it. Undefined after the store has reported a change. */
  life: Life | undefined;
  /** Value of `performance.now()` when the session was last known to exist. */
  confirmed: number;
  isReading: boolean;
  /** True if the store has reported a change since the last read began. */
  isChanged: boolean;
}

type WatchedStore = Pick<TokenStore, 'isTracked' | 'trackedUntil' | 'onChange'>;

/** Milliseconds between two checks of all watched sessions. */
const interval = 500;
/** Milliseconds between reads of a session while the store does not track changes. */
const readInterval = 1_000;
/**
 * A session counts as ended at the first check after this many milliseconds without confirmation: after 4 s at most.
 */
const longestSilence = 3_500;
/**
 * Maximum number of concurrent reads. After a lost connection, all watched sessions are read again, and other commands
 * must not wait behind megabytes of tokens.
 */
const mostReads = 64;

export class EndWatch {
  readonly #sessions: WatchedSessions;
  readonly #store: WatchedStore;
  readonly #watched = new Map<string, Watched>();
  /** The entries to read, in the order of the requests for these reads. */
  readonly #unread = new Map<Watched, string>();
  readonly #timer: NodeJS.Timeout;
  #reads = 0;

  constructor(sessions: WatchedSessions, store: WatchedStore) {
    this.#sessions = sessions;
    this.#store = store;
    this.#timer = setInterval(() => this.#check(), interval);
    this.#timer.unref();
    store.onChange((handle) => {
      for (const entry of handle === null ? this.#watched.values() : [this.#watched.get(handle)])
        if (entry) Object.assign(entry, { life: undefined, isChanged: true });
    });
  }

  /** Calls `listener` once, when the session has ended. The returned function removes the listener. */
  onEnd(handle: string, listener: () => void): () => void {
    const now = performance.now();
    const entry: Watched = this.#watched.get(handle) ?? {
      listeners: new Set(),
      life: undefined,
      confirmed: this.#store.isTracked ? Math.min(this.#store.trackedUntil, now) : now,
      isReading: false,
      isChanged: false,
    };
    this.#watched.set(handle, entry);
    entry.listeners.add(listener);
    return () => {
      entry.listeners.delete(listener);
      if (entry.listeners.size === 0 && this.#watched.get(handle) === entry) this.#forget(handle, entry);
    };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#unread.clear();
  }

  #check(): void {
    if (this.#watched.size === 0) return;
    const now = performance.now();
    const { isTracked, trackedUntil } = this.#store;
    for (const [handle, entry] of this.#watched) {
      const isKnown = isTracked && this.#isKnown(handle, entry);
      if (isKnown) entry.confirmed = Math.max(entry.confirmed, Math.min(trackedUntil, now));
      if (now - entry.confirmed >= longestSilence) this.#end(handle, entry);
      else if (!isKnown && !entry.isReading && (isTracked || now - entry.confirmed >= readInterval))
        this.#unread.set(entry, handle);
    }
    this.#readNext();
  }

  /** True if the store would have reported a change since the session was read, and the session is still alive. */
  #isKnown(handle: string, entry: Watched): boolean {
    entry.life ??= lifeOf(this.#sessions.cached(handle));
    return entry.life !== undefined && this.#sessions.isAlive(entry.life);
  }

  #readNext(): void {
    for (const [entry, handle] of this.#unread) {
      if (this.#reads >= mostReads) return;
      this.#unread.delete(entry);
      void this.#read(handle, entry);
    }
  }

  async #read(handle: string, entry: Watched): Promise<void> {
    Object.assign(entry, { isReading: true, isChanged: false });
    this.#reads += 1;
    const started = performance.now();
    const wasTracked = this.#store.isTracked;
    try {
      const found = await this.#sessions.read(handle);
      if (found) entry.confirmed = started;
      else this.#end(handle, entry);
      if (wasTracked && this.#store.isTracked && !entry.isChanged) entry.life = lifeOf(found);
    } catch {
      // The store is unavailable, so the session remains unconfirmed.
    }
    this.#reads -= 1;
    entry.isReading = false;
    this.#readNext();
  }

  #end(handle: string, entry: Watched): void {
    if (this.#watched.get(handle) === entry) this.#forget(handle, entry);
    for (const listener of entry.listeners) listener();
    entry.listeners.clear();
  }

  #forget(handle: string, entry: Watched): void {
    this.#watched.delete(handle);
    this.#unread.delete(entry);
  }
}

function lifeOf(found: FoundSession | undefined): Life | undefined {
  if (!found) return undefined;
  const { realm, issuer } = found.session;
  return { session: { realm, issuer }, state: found.state };
}
