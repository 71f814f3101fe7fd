// Tells who waits for it that a session has ended, wherever and however that happened. It ends no session itself.
import type { Clock } from '../../service/clock.ts';
import type { FoundSession, Sessions } from './sessions.ts';

export interface EndWatch {
  /** Calls `listener` once. The function that it answers stops listening. */
  onEnd(found: FoundSession, listener: () => void): () => void;
  close(): void;
}

interface Watched {
  found: FoundSession;
  listeners: Set<() => void>;
  /** When the store was last heard of this session. */
  confirmed: number;
  isChecking: boolean;
  /** A change came during a check. */
  again: boolean;
}

/** Milliseconds between looks at the time. */
const interval = 1_000;
/** Milliseconds that a session is taken for alive while the store cannot be asked. */
const longestDoubt = 60_000;

export function createEndWatch(options: {
  sessions: Sessions;
  /** Whether changes are told; else every session is read at each look. */
  areChangesTold: () => boolean;
  clock: Clock;
}): EndWatch {
  const { sessions } = options;
  const now = () => options.clock().getTime();
  const watched = new Map<string, Watched>();

  async function check(handle: string, entry: Watched): Promise<void> {
    if (entry.isChecking) {
      entry.again = true;
      return;
    }
    entry.isChecking = true;
    do {
      entry.again = false;
      const isAlive = await look(handle, entry);
      if (!isAlive) end(handle, entry);
    } while (entry.again && watched.get(handle) === entry);
    entry.isChecking = false;
  }

  async function look(handle: string, entry: Watched): Promise<boolean> {
    try {
      const found = await sessions.read(handle);
      if (found) Object.assign(entry, { found, confirmed: now() });
      return found !== undefined;
    } catch {
      return now() - entry.confirmed < longestDoubt;
    }
  }

  function end(handle: string, entry: Watched): void {
    if (watched.get(handle) === entry) watched.delete(handle);
    for (const listener of entry.listeners) listener();
    entry.listeners.clear();
  }

  const isDue = ({ found, confirmed }: Watched, time: number) =>
    !options.areChangesTold() || time >= sessions.expiryOf(found) || time - confirmed > longestDoubt / 2;
  const timer = setInterval(() => {
    const time = now();
    for (const [handle, entry] of watched) if (isDue(entry, time)) void check(handle, entry);
  }, interval);
  timer.unref();
  const stop = sessions.onChange((handle) => {
    if (handle === null) for (const [one, entry] of watched) void check(one, entry);
    else {
      const entry = watched.get(handle);
      if (entry) void check(handle, entry);
    }
  });

  return {
    onEnd(found, listener) {
      const { handle } = found.session;
      let entry = watched.get(handle);
      if (!entry) {
        entry = { found, listeners: new Set(), confirmed: now(), isChecking: false, again: false };
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
