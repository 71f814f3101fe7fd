// How many requests there may be in a window, counted in this process and told to the other replicas once a second, so that
// no request waits for a store. While the store is away, each replica counts alone. Between two tellings the replicas
// together may let a second's worth of requests too many pass.
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/log.ts';
import { defineScript, type Redis } from '../../service/redis.ts';

export interface RequestLimit {
  /** Names the count in the store. */
  name: string;
  /** Requests in a window. */
  most: number;
  /** Milliseconds. Windows of all replicas begin and end together. */
  window: number;
}

export interface Counted {
  isAllowed: boolean;
  remaining: number;
  /** Seconds until the window ends. */
  reset: number;
}

export interface RequestCounter extends RequestLimit {
  /** Counts one request of whoever `key` names. */
  count(key: string): Counted;
}

interface Tally {
  /** Counted here and not told yet. */
  own: number;
  /** What the store knew when it was last told, all replicas together. */
  told: number;
}

/** Milliseconds between tellings. */
const tellInterval = 1_000;
/** More keys than this in one window, and the oldest are forgotten: addresses are cheap to make up. */
const mostKeys = 100_000;
/** Keys of one script call. */
const batch = 500;
/** Keys of one batch are in one slot of a Cluster. */
const shards = 16;

// KEYS: counts; ARGV: milliseconds to keep them, then what to add to each.
const addScript = defineScript(`
local totals = {}
for i, key in ipairs(KEYS) do
  totals[i] = redis.call('INCRBY', key, ARGV[i + 1])
  if totals[i] == tonumber(ARGV[i + 1]) then redis.call('PEXPIRE', key, ARGV[1]) end
end
return totals`);

export interface RequestCounters {
  create(limit: RequestLimit): RequestCounter;
  close(): void;
}

/** `redis`: absent where there is one process only. */
export function createRequestCounters(options: {
  redis: Pick<Redis, 'run'> | undefined;
  clock: Clock;
  log: Logger;
}): RequestCounters {
  const { redis, log } = options;
  const counters: LocalCounter[] = [];
  let isTelling = false;
  const tell = async () => {
    if (!redis || isTelling) return;
    isTelling = true;
    // The connection has said why.
    await Promise.all(counters.map((counter) => counter.tell(redis))).catch((error: unknown) =>
      log.debug({ err: error }, 'request counts were not told'),
    );
    isTelling = false;
  };
  const timer = redis ? setInterval(() => void tell(), tellInterval) : undefined;
  timer?.unref();
  return {
    create(limit) {
      const counter = new LocalCounter(limit, options.clock);
      counters.push(counter);
      return counter;
    },
    close: () => clearInterval(timer),
  };
}

class LocalCounter implements RequestCounter {
  readonly name: string;
  readonly most: number;
  readonly window: number;
  readonly #clock: Clock;
  #current = 0;
  #tallies = new Map<string, Tally>();
  /** With something to tell. */
  #changed = new Set<string>();

  constructor({ name, most, window }: RequestLimit, clock: Clock) {
    this.name = name;
    this.most = most;
    this.window = window;
    this.#clock = clock;
  }

  count(key: string): Counted {
    const now = this.#clock().getTime();
    const index = Math.floor(now / this.window);
    if (index !== this.#current) this.#begin(index);
    let tally = this.#tallies.get(key);
    if (!tally) {
      if (this.#tallies.size >= mostKeys) this.#forgetOldest();
      tally = { own: 0, told: 0 };
      this.#tallies.set(key, tally);
    }
    const used = tally.own + tally.told + 1;
    const isAllowed = used <= this.most;
    // Refused ones do not count: what is over stays over.
    if (isAllowed) {
      tally.own += 1;
      if (tally.own === 1) this.#changed.add(key);
    }
    const reset = Math.ceil(((index + 1) * this.window - now) / 1_000);
    return { isAllowed, remaining: Math.max(this.most - used, 0), reset };
  }

  /** Throws Problem `unavailable`. */
  async tell(redis: Pick<Redis, 'run'>): Promise<void> {
    const index = this.#current;
    const byShard = new Map<number, string[]>();
    for (const key of this.#changed) {
      const shard = shardOf(key);
      const keys = byShard.get(shard);
      if (keys) keys.push(key);
      else byShard.set(shard, [key]);
    }
    const calls: Promise<void>[] = [];
    for (const [shard, keys] of byShard)
      for (let start = 0; start < keys.length; start += batch)
        calls.push(
          this.#tellBatch(redis, `limit:{targets-${shard}}:${this.name}:${index}:`, keys.slice(start, start + batch)),
        );
    await Promise.all(calls);
  }

  async #tellBatch(redis: Pick<Redis, 'run'>, prefix: string, keys: string[]): Promise<void> {
    const tallies = this.#tallies;
    const news = keys.map((key) => ({ key, tally: tallies.get(key), own: tallies.get(key)?.own ?? 0 }));
    const totals = (await redis.run(
      addScript,
      keys.map((key) => `${prefix}${key}`),
      [this.window * 2, ...news.map(({ own }) => own)],
    )) as number[];
    news.forEach(({ key, tally, own }, position) => {
      if (!tally) return;
      tally.own -= own;
      tally.told = Number(totals[position]);
      if (tally.own === 0 && tallies === this.#tallies) this.#changed.delete(key);
    });
  }

  #begin(index: number): void {
    this.#current = index;
    this.#tallies = new Map();
    this.#changed = new Set();
  }

  #forgetOldest(): void {
    const [oldest] = this.#tallies.keys();
    if (oldest === undefined) return;
    this.#tallies.delete(oldest);
    this.#changed.delete(oldest);
  }
}

function shardOf(key: string): number {
  let sum = 0;
  for (let index = 0; index < key.length; index += 1) sum = (sum * 31 + key.charCodeAt(index)) % 65_521;
  return sum % shards;
}
