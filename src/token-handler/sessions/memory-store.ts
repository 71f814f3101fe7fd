// Sessions in the memory of one process: for `npm start` and trials without Redis. They end with the process, and other
// replicas do not know them.
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/clock.ts';
import { expiryOf, recordKey, type SessionLimits } from './session.ts';
import type { Marks, RecordClient, SessionIndex, SessionStore, StoredSession, TokenStore } from './store.ts';

/** Values with an expiry each. A timer removes what is not asked for again. */
class Expiring<T extends NonNullable<unknown>> {
  readonly #now: () => number;
  readonly #values: LRUCache<string, T>;

  constructor(now: () => number) {
    this.#now = now;
    this.#values = new LRUCache({ ttl: 1, ttlAutopurge: true, ttlResolution: 0, perf: { now } });
  }

  get(key: string): T | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: T, until: number): void {
    this.#values.set(key, value, { ttl: Math.max(1, until - this.#now()) });
  }

  extend(key: string, until: number): void {
    const value = this.get(key);
    if (value !== undefined) this.set(key, value, until);
  }

  delete(key: string): boolean {
    const existed = this.get(key) !== undefined;
    this.#values.delete(key);
    return existed;
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
      records.set(key, text, now() + expiration.value * 1_000);
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
    sets.set(handle, tokens, until);
    records.extend(recordKey(handle), until);
    report(handle);
  };
  const withoutIntent = ({ intent: _, ...tokens }: Tokens): Tokens => tokens;
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
      if (tokens.intent && tokens.intent.id !== intent.id) return 'held';
      if (tokens.version !== version) return 'changed';
      write(handle, { ...tokens, intent });
      return 'claimed';
    },
    async release(handle, intentId) {
      const tokens = sets.get(handle);
      if (tokens?.intent?.id === intentId) write(handle, withoutIntent(tokens));
    },
    async replace(handle, intentId, next) {
      const tokens = sets.get(handle);
      if (tokens?.intent?.id !== intentId) return false;
      write(handle, { ...withoutIntent(tokens), ...next, version: tokens.version + 1 });
      return true;
    },
    async end(handle) {
      records.delete(recordKey(handle));
      const wasLive = sets.delete(handle);
      report(handle);
      return wasLive;
    },
  };
}

function createIndex(now: () => number): SessionIndex {
  const indexes = new Expiring<Map<string, number>>(now);
  return {
    async enter(names, handle, until, time) {
      for (const name of names) {
        const entries = indexes.get(name) ?? new Map<string, number>();
        for (const [other, end] of entries) if (end <= time) entries.delete(other);
        entries.set(handle, until);
        indexes.set(name, entries, Math.max(...entries.values()));
      }
    },
    async entries(name, top, after) {
      const entries = [...(indexes.get(name) ?? [])].sort(([one, a], [other, b]) => b - a || (one < other ? 1 : -1));
      const handles = entries.map(([handle]) => handle);
      const start = after === undefined ? 0 : handles.indexOf(after) + 1;
      return after !== undefined && start === 0 ? [] : handles.slice(start, start + top);
    },
    async remove(names, handle, until = Number.POSITIVE_INFINITY) {
      for (const entries of names.map((name) => indexes.get(name)))
        if ((entries?.get(handle) ?? 0) <= until) entries?.delete(handle);
    },
  };
}

function createMarks(now: () => number): Marks {
  const marks = new Expiring<number>(now);
  return {
    async raise(name, value, milliseconds) {
      if ((marks.get(name) ?? Number.NEGATIVE_INFINITY) < value) marks.set(name, value, now() + milliseconds);
    },
    value: async (name) => marks.get(name),
  };
}
