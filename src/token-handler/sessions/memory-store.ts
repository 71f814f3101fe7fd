// Sessions in the memory of one process: for `npm start` and trials without Redis. They end with the process, and are
// nobody else's to see.
import { type SessionData, Store } from 'express-session';
import type { Clock } from '../../service/clock.ts';
import { recordSeconds } from './records.ts';
import {
  expiryOf,
  type Marks,
  type SessionIndex,
  type SessionStore,
  type StoredTokens,
  type TokenStore,
} from './store.ts';

interface Kept<T> {
  value: T;
  until: number;
}

/** Forgets what is over when it is asked for, and now and then by a walk. */
class Expiring<T> {
  readonly #kept = new Map<string, Kept<T>>();
  readonly #clock: Clock;
  #writes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(key: string): T | undefined {
    const kept = this.#kept.get(key);
    if (!kept || kept.until > this.#now()) return kept?.value;
    this.#kept.delete(key);
    return undefined;
  }

  set(key: string, value: T, until: number): void {
    this.#kept.set(key, { value, until });
    this.#writes += 1;
    if (this.#writes % 1_000 === 0) for (const other of this.#kept.keys()) this.get(other);
  }

  extend(key: string, until: number): void {
    const value = this.get(key);
    if (value !== undefined) this.#kept.set(key, { value, until });
  }

  delete(key: string): boolean {
    const wasThere = this.get(key) !== undefined;
    this.#kept.delete(key);
    return wasThere;
  }

  #now(): number {
    return this.#clock().getTime();
  }
}

export interface MemoryStoreOptions {
  /** Milliseconds */
  idle: number;
  maxAge: number;
  clock: Clock;
}

export function createMemoryStore({ idle, maxAge, clock }: MemoryStoreOptions): SessionStore {
  const records = new Expiring<SessionData>(clock);
  return {
    records: new MemoryRecords(records, maxAge, clock),
    tokens: createTokenStore(records, clock, idle),
    index: createIndex(clock),
    marks: createMarks(clock),
  };
}

type Done = (error?: unknown) => void;

class MemoryRecords extends Store {
  readonly #records: Expiring<SessionData>;
  readonly #maxAge: number;
  readonly #clock: Clock;

  constructor(records: Expiring<SessionData>, maxAge: number, clock: Clock) {
    super();
    this.#records = records;
    this.#maxAge = maxAge;
    this.#clock = clock;
  }

  override get(id: string, callback: (error: unknown, record?: SessionData | null) => void): void {
    callback(null, this.#records.get(id) ?? null);
  }

  override set(id: string, record: SessionData, callback?: Done): void {
    this.#records.set(id, record, this.#until(record));
    callback?.();
  }

  override destroy(id: string, callback?: Done): void {
    this.#records.delete(id);
    callback?.();
  }

  override touch(id: string, record: SessionData, callback?: () => void): void {
    this.#records.extend(id, this.#until(record));
    callback?.();
  }

  #until(record: SessionData): number {
    return this.#clock().getTime() + recordSeconds(record, this.#maxAge) * 1_000;
  }
}

function createTokenStore(records: Expiring<SessionData>, clock: Clock, idle: number): TokenStore {
  const sets = new Expiring<StoredTokens>(clock);
  const listeners = new Set<(handle: string | null) => void>();
  const write = (handle: string, tokens: StoredTokens) => {
    const until = expiryOf(tokens, idle);
    sets.set(handle, tokens, until);
    records.extend(handle, until);
    tell(handle);
  };
  const tell = (handle: string) => {
    for (const listener of listeners) listener(handle);
  };
  const withoutIntent = ({ intent: _, ...tokens }: StoredTokens): StoredTokens => tokens;
  return {
    mayKeep: true,
    toldUntil: Number.POSITIVE_INFINITY,
    async load(handle) {
      const [record, tokens] = [records.get(handle)?.sealed, sets.get(handle)];
      return record !== undefined && tokens ? { record, tokens } : undefined;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async start(handle, tokens, now) {
      write(handle, { ...tokens, version: 1, touched: now });
    },
    async touch(handle, now, interval) {
      const tokens = sets.get(handle);
      if (tokens && now - tokens.touched >= interval) write(handle, { ...tokens, touched: now });
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
      records.delete(handle);
      const wasLive = sets.delete(handle);
      tell(handle);
      return wasLive;
    },
  };
}

function createIndex(clock: Clock): SessionIndex {
  const indexes = new Expiring<Map<string, number>>(clock);
  return {
    async enter(names, handle, until, now) {
      for (const name of names) {
        const entries = indexes.get(name) ?? new Map<string, number>();
        for (const [other, end] of entries) if (end <= now) entries.delete(other);
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

function createMarks(clock: Clock): Marks {
  const marks = new Expiring<number>(clock);
  const until = (milliseconds: number) => clock().getTime() + milliseconds;
  return {
    async raise(name, value, milliseconds) {
      if ((marks.get(name) ?? Number.NEGATIVE_INFINITY) < value) marks.set(name, value, until(milliseconds));
    },
    value: async (name) => marks.get(name),
  };
}
