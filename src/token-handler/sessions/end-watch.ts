// Tells its listeners that a session has ended, wherever and however that happened. A session that the store has not vouched
// for in the last four seconds counts as ended: it may have been revoked on another replica. It ends no session itself.
import type { Clock } from '../../service/clock.ts';
import type { FoundSession, Sessions } from './sessions.ts';
import type { TokenStore } from './store.ts';

export interface EndWatch {
  /** Calls `listener` once. The function that it answers stops listening. */
  onEnd(found: FoundSession, listener: () => void): () => void;
  close(): void;
}

interface Watched {
  found: FoundSession;
  listeners: Set<() => void>;
  /** When the store vouched for it last, by `performance.now()`. */
  vouched: number;
  /** When it was read. */
  read: number;
  /** Whether the store tells its changes since then. */
  isTold: boolean;
  isChecking: boolean;
  /** A change came during a check. */
  again: boolean;
}

/** Milliseconds between looks. */
const interval = 500;
/** Milliseconds between reads of a session where the store does not tell changes, and where it does. */
const readIntervals = { untold: 1_000, told: 30_000 };
/** Milliseconds without a word from the store until the next look ends the session: four seconds in all. */
const longestSilence = 3_500;

export interface EndWatchOptions {
  sessions: Sessions;
  tokens: Pick<TokenStore, 'mayKeep' | 'toldUntil'>;
  clock: Clock;
}

export function createEndWatch({ sessions, tokens, clock }: EndWatchOptions): EndWatch {
  const watched = new Map<string, Watched>();

  function end(handle: string, entry: Watched): void {
    if (watched.get(handle) === entry) watched.delete(handle);
    for (const listener of entry.listeners) listener();
    entry.listeners.clear();
  }

  async function check(handle: string, entry: Watched): Promise<void> {
    if (entry.isChecking) {
      entry.again = true;
      return;
    }
    entry.isChecking = true;
    let isAlive: boolean | undefined;
    do {
      entry.again = false;
      isAlive = await look(handle, entry, { sessions, tokens });
      if (isAlive === false) end(handle, entry);
      // A read that fails without a connection reports a change itself: to repeat it at once would block the process.
    } while (isAlive && entry.again && watched.get(handle) === entry);
    entry.isChecking = false;
  }

  const isDue = ({ read, isTold, found }: Watched, now: number, time: number) =>
    now - read >= readIntervals[isTold ? 'told' : 'untold'] || time >= sessions.expiryOf(found);
  const timer = setInterval(() => {
    const now = performance.now();
    const time = clock().getTime();
    for (const [handle, entry] of watched) {
      entry.isTold &&= tokens.mayKeep;
      if (entry.isTold) entry.vouched = Math.max(entry.vouched, Math.min(tokens.toldUntil, now));
      if (now - entry.vouched >= longestSilence) end(handle, entry);
      else if (!entry.isChecking && isDue(entry, now, time)) void check(handle, entry);
    }
  }, interval);
  timer.unref();
  const stop = sessions.onChange((handle) => {
    const changed = handle === null ? [...watched] : [[handle, watched.get(handle)] as const];
    for (const [one, entry] of changed) {
      if (!entry) continue;
      entry.isTold = false;
      void check(one, entry);
    }
  });

  return {
    onEnd(found, listener) {
      const { handle } = found.session;
      let entry = watched.get(handle);
      if (!entry) {
        entry = newEntry(found);
        watched.set(handle, entry);
        // It may have ended between its read and now.
        void check(handle, entry);
      }
      const { listeners } = entry;
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && watched.get(handle)?.listeners === listeners) watched.delete(handle);
      };
    },
    close() {
      clearInterval(timer);
      stop();
    },
  };
}

function newEntry(found: FoundSession): Watched {
  const now = performance.now();
  return { found, listeners: new Set(), vouched: now, read: now, isTold: false, isChecking: false, again: false };
}

/** Whether the session lives; undefined if the store cannot say. */
async function look(
  handle: string,
  entry: Watched,
  { sessions, tokens }: Pick<EndWatchOptions, 'sessions' | 'tokens'>,
): Promise<boolean | undefined> {
  const asked = performance.now();
  try {
    const found = await sessions.read(handle);
    if (found) Object.assign(entry, { found, vouched: asked, read: asked, isTold: tokens.mayKeep && !entry.again });
    return found !== undefined;
  } catch {
    return undefined;
  }
}
