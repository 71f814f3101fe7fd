// Calls listeners when their session has ended, for any reason and on any replica. If the store has not confirmed a
// session for four seconds, the session counts as ended, because another replica may have revoked it. This class only
// watches: it never ends a session in the store.
import type { FoundSession } from './session.ts';
import type { TokenStore } from './store.ts';

export interface WatchedSessions {
  /** Returns the session from the cache, which keeps it until the store reports a change. */
  cached(handle: string): FoundSession | undefined;
  read(handle: string): Promise<FoundSession | undefined>;
}

interface Watched {
  listeners: Set<() => void>;
  /** Value of `performance.now()` when the session was last known to exist. */
  confirmed: number;
  isReading: boolean;
}

/** Milliseconds between two checks of all watched sessions. */
const interval = 500;
/** Milliseconds between reads of a session while the store does not track changes. */
const readInterval = 1_000;
/**
 * A session counts as ended at the first check after this many milliseconds without confirmation: after 4 s at most.
 */
const longestSilence = 3_500;

export class EndWatch {
  readonly #sessions: WatchedSessions;
  readonly #store: Pick<TokenStore, 'isTracked' | 'trackedUntil'>;
  readonly #watched = new Map<string, Watched>();
  readonly #timer: NodeJS.Timeout;

  constructor(sessions: WatchedSessions, store: Pick<TokenStore, 'isTracked' | 'trackedUntil'>) {
    this.#sessions = sessions;
    this.#store = store;
    this.#timer = setInterval(() => this.#check(), interval);
    this.#timer.unref();
  }

  /** Calls `listener` once, when the session has ended. The returned function removes the listener. */
  onEnd(handle: string, listener: () => void): () => void {
    const now = performance.now();
    const entry = this.#watched.get(handle) ?? {
      listeners: new Set(),
      confirmed: this.#store.isTracked ? Math.min(this.#store.trackedUntil, now) : now,
      isReading: false,
    };
    this.#watched.set(handle, entry);
    entry.listeners.add(listener);
    return () => {
      entry.listeners.delete(listener);
      if (entry.listeners.size === 0 && this.#watched.get(handle) === entry) this.#watched.delete(handle);
    };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    if (this.#watched.size === 0) return;
    const now = performance.now();
    const { isTracked, trackedUntil } = this.#store;
    for (const [handle, entry] of this.#watched) {
      const isCached = isTracked && this.#sessions.cached(handle) !== undefined;
      if (isCached) entry.confirmed = Math.max(entry.confirmed, Math.min(trackedUntil, now));
      if (now - entry.confirmed >= longestSilence) this.#end(handle, entry);
      else if (!isCached && (isTracked || now - entry.confirmed >= readInterval)) void this.#read(handle, entry);
    }
  }

  async #read(handle: string, entry: Watched): Promise<void> {
    if (entry.isReading) return;
    entry.isReading = true;
    const started = performance.now();
    try {
      if (await this.#sessions.read(handle)) entry.confirmed = started;
      else this.#end(handle, entry);
    } catch {
      // The store is unavailable, so the session remains unconfirmed.
    }
    entry.isReading = false;
  }

  #end(handle: string, entry: Watched): void {
    if (this.#watched.get(handle) === entry) this.#watched.delete(handle);
    for (const listener of entry.listeners) listener();
    entry.listeners.clear();
  }
}
