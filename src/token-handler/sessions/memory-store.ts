// Stores sessions in the memory of one process, for `npm start` and for trials without Redis. The sessions end with the
// process, and other replicas do not have them.
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/clock.ts';
import { expiryOf, recordKey, type SessionLimits } from './session.ts';
import { positionLife } from './session-indexes.ts';
import type { Marks, RecordClient, SessionIndex, SessionStore, StoredSession, TokenStore } from './store.ts';

/** Milliseconds after which expired values are removed from memory, even if nothing reads them. */
const sweepInterval = 60_000;

/**
 * A cache whose values have individual expiry times. One timer removes the expired values of all keys. The timers of
 * LRUCache (`ttlAutopurge`) cannot be used: a session may last longer than the longest timer of Node (24.8 days), and
 * such a timer would fire at once, again and again.
 */
class Expiring<T extends NonNullable<unknown>> extends LRUCache<string, T> {
  #timer: NodeJS.Timeout | undefined;

  constructor(now: () => number) {
    super({
      ttl: 1,
      ttlResolution: 0,
      perf: { now },
      // LRUCache warns about a cache without a limit.
      ...{ maxSize: Number.MAX_SAFE_INTEGER, sizeCalculation: () => 1 },
    });
  }

  /** Keeps a value until `until`, in milliseconds since 1970. */
  keep(key: string, value: T, until: number): void {
    this.set(key, value, { ttl: Math.max(1, until - this.perf.now()) });
    this.#sweepLater();
  }

  #sweepLater(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.purgeStale();
      if (this.size > 0) this.#sweepLater();
    }, sweepInterval).unref();
  }
}

export function createMemoryStore({ idle, clock }: Pick<SessionLimits, 'idle'> & { clock: Clock }): SessionStore {
  const now = () => clock().getTime();
  const records = new Expiring<string>(now);
  return {
    records: createRecordClient(records, now),
    tokens: createTokenStore(records, now, idle),
    index: createIndex(now),
    marks: createMarks(now),
  };
}

function createRecordClient(records: Expiring<string>, now: () => number): RecordClient {
  return {
    get: async (key) => records.get(key) ?? null,
    async set(key, text, { expiration }) {
      records.keep(key, text, now() + expiration.value * 1_000);
    },
    async del(keys) {
      for (const key of keys) records.delete(key);
    },
  };
}

function createTokenStore(records: Expiring<string>, now: () => number, idle: number): TokenStore {
  type Tokens = StoredSession['tokens'];
  const sets = new Expiring<Tokens>(now);
  const listeners: ((handle: string | null) => void)[] = [];
  const report = (handle: string) => {
    for (const listener of listeners) listener(handle);
  };
  const write = (handle: string, tokens: Tokens) => {
    const until = expiryOf(tokens, idle);
    sets.keep(handle, tokens, until);
    const record = records.get(recordKey(handle));
    if (record !== undefined) records.keep(recordKey(handle), record, until);
    report(handle);
  };
  return {
    isTracked: true,
    trackedUntil: Number.POSITIVE_INFINITY,
    async load(handle) {
      const [record, tokens] = [records.get(recordKey(handle)), sets.get(handle)];
      return record !== undefined && tokens ? { record, tokens } : undefined;
    },
    onChange: (listener) => void listeners.push(listener),
    start: async (handle, tokens, touched) => write(handle, { ...tokens, version: 1, touched }),
    async touch(handle, touched, interval) {
      const tokens = sets.get(handle);
      if (tokens && touched - tokens.touched >= interval) write(handle, { ...tokens, touched });
      return tokens !== undefined;
    },
    async claim(handle, version, intent) {
      const tokens = sets.get(handle);
      if (!tokens) return 'gone';
      if (tokens.intent !== undefined && tokens.intent !== intent) return 'held';
      if (tokens.version !== version) return 'changed';
      write(handle, { ...tokens, intent });
      return 'claimed';
    },
    // A refresh intent is lost together with the process that wrote it, so heartbeats are not needed.
    heartbeat: async () => undefined,
    abandon: async () => false,
    async conclude(handle, intentId, _now, next) {
      const tokens = sets.get(handle);
      if (tokens?.intent !== intentId) return false;
      const { intent: _, ...rest } = tokens;
      write(handle, next ? { ...rest, ...next, version: tokens.version + 1 } : rest);
      return true;
    },
    async end(handle) {
      const wasLive = sets.has(handle);
      sets.delete(handle);
      records.delete(recordKey(handle));
      report(handle);
      return wasLive;
    },
    async count() {
      // Removes expired token sets before counting, because the timer may not have removed them yet.
      sets.purgeStale();
      return sets.size;
    },
  };
}

function createIndex(now: () => number): SessionIndex {
  const indexes = new Expiring<Map<string, number>>(now);
  /** Expiry times of removed entries. A list can continue after a removed entry while its position is kept. */
  const positions = new Expiring<number>(now);
  return {
    async enter(names, handle, until, time) {
      const sizes = new Map<string, number>();
      for (const name of names) {
        const entries = indexes.get(name) ?? new Map<string, number>();
        for (const [other, end] of entries) if (end <= time) entries.delete(other);
        entries.set(handle, until);
        indexes.keep(name, entries, Math.max(...entries.values()));
        sizes.set(name, entries.size);
      }
      return sizes;
    },
    async entries(name, top, after) {
      const entries = indexes.get(name) ?? new Map<string, number>();
      const sorted = [...entries].sort(latestFirst);
      if (after === undefined) return sorted.slice(0, top).map(([handle]) => handle);
      const end = entries.get(after) ?? positions.get(positionKey(name, after));
      if (end === undefined) return undefined;
      const further = sorted.filter((entry) => entry[0] !== after && latestFirst([after, end], entry) < 0);
      return further.slice(0, top).map(([handle]) => handle);
    },
    async oldest(name, count) {
      const sorted = [...(indexes.get(name) ?? [])].sort(latestFirst).toReversed();
      return sorted.slice(0, count).map(([handle]) => handle);
    },
    async remove(names, handle, until = Number.POSITIVE_INFINITY) {
      for (const name of names) {
        const entries = indexes.get(name) ?? new Map<string, number>();
        const end = entries.get(handle);
        if (end === undefined || end > until) continue;
        positions.keep(positionKey(name, handle), end, now() + positionLife);
        entries.delete(handle);
      }
    },
  };
}

const positionKey = (name: string, handle: string) => `${name} ${handle}`;

/** Sorts entries in the order of Redis: by expiry, and then by handle, both in descending order. */
function latestFirst([one, a]: [string, number], [other, b]: [string, number]): number {
  return b - a || (one < other ? 1 : -1);
}

function createMarks(now: () => number): Marks {
  const marks = new Expiring<number>(now);
  return {
    time: async () => now(),
    async raise(name, value, milliseconds) {
      if ((marks.get(name) ?? Number.NEGATIVE_INFINITY) < value) marks.keep(name, value, now() + milliseconds);
    },
    value: async (name) => marks.get(name),
    async claim(name, value, milliseconds) {
      if (marks.has(name)) return false;
      marks.keep(name, value, now() + milliseconds);
      return true;
    },
    async remove(name, value) {
      if (marks.get(name) === value) marks.delete(name);
    },
  };
}
