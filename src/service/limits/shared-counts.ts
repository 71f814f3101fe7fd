// Adds the counts of one process to Redis, and reads the totals of all processes. A key is sent only after it has used
// 1 % of its limit. If the limit is above 100, a flood of keys that are used once therefore does not reach Redis.
import type { Redis } from '../redis/redis.ts';
import { defineScript, NotRun } from '../redis/redis-script.ts';
import type { WindowCount } from './window-counts.ts';

/** Maximum number of keys in one call of the script. */
const batch = 500;
/**
 * Number of hash tags over which the keys are distributed. All keys of a batch have the same tag, because the script
 * needs them in one slot of a Cluster.
 */
const shards = 16;

// KEYS: the names of the counts. ARGV: the milliseconds to keep the counts, then the amount to add to each count.
const addScript = defineScript(`
local totals = {}
for i, key in ipairs(KEYS) do
  totals[i] = redis.call('INCRBY', key, ARGV[i + 1])
  if totals[i] == tonumber(ARGV[i + 1]) then redis.call('PEXPIRE', key, ARGV[1]) end
end
return totals`);

/**
 * Adds `amounts` to the counts of all processes, and returns the totals. Redis keeps a count for two windows. Throws
 * Problem `unavailable`.
 */
export async function addToShared(
  redis: Pick<Redis, 'run'>,
  keys: string[],
  window: number,
  amounts: number[],
): Promise<number[]> {
  const totals = (await redis.run(addScript, keys, [window * 2, ...amounts])) as unknown[];
  return totals.map(Number);
}

export function sharedKey(name: string, index: number, key: string): string {
  return `limit:{${shardOf(key)}}:${name}:${index}:${key}`;
}

export class SharedCounts {
  readonly #redis: Pick<Redis, 'run'>;
  readonly #name: string;
  readonly #window: number;
  readonly #threshold: number;
  #index = 0;
  #changed = new Map<string, WindowCount>();
  #isExchanging = false;

  constructor(limit: { name: string; most: number; window: number }, redis: Pick<Redis, 'run'>) {
    this.#redis = redis;
    this.#name = limit.name;
    this.#window = limit.window;
    this.#threshold = limit.most / 100;
  }

  /** Includes a count of the window `index` in the next exchange, if the count has reached 1 % of the limit. */
  changed(index: number, key: string, count: WindowCount): void {
    if (index !== this.#index) {
      this.#index = index;
      this.#changed = new Map();
    }
    if (count.own + count.total >= this.#threshold) this.#changed.set(key, count);
  }

  /**
   * Sends the changed counts to Redis, and stores the totals of all processes. Throws Problem `unavailable`. The next
   * exchange sends the counts again that Redis certainly did not add.
   */
  async exchange(): Promise<void> {
    if (this.#isExchanging) return;
    this.#isExchanging = true;
    try {
      const byShard = Map.groupBy(this.#changed, ([key]) => shardOf(key));
      const calls: Promise<void>[] = [];
      for (const counts of byShard.values())
        for (let start = 0; start < counts.length; start += batch)
          calls.push(this.#exchangeBatch(counts.slice(start, start + batch)));
      await Promise.all(calls);
    } finally {
      this.#isExchanging = false;
    }
  }

  async #exchangeBatch(counts: [string, WindowCount][]): Promise<void> {
    const changed = this.#changed;
    const keys = counts.map(([key]) => sharedKey(this.#name, this.#index, key));
    const amounts = counts.map(([, { own }]) => own);
    /** Counts the amounts as sent. `totals` are those that Redis has returned, if its reply has arrived. */
    const note = (totals?: number[]) =>
      counts.forEach(([key, count], at) => {
        const amount = amounts[at] ?? 0;
        count.own -= amount;
        count.total = totals?.[at] ?? count.total + amount;
        if (count.own === 0) changed.delete(key);
      });
    try {
      note(await addToShared(this.#redis, keys, this.#window, amounts));
    } catch (error) {
      // If the reply was lost, Redis may have added the amounts. Adding them again could use up the limits of people
      // who are far below them. Not adding them costs at most the requests of one interval.
      if (!(error instanceof Error && error.cause instanceof NotRun)) note();
      throw error;
    }
  }
}

function shardOf(key: string): number {
  let sum = 0;
  for (let index = 0; index < key.length; index += 1) sum = (sum * 31 + key.charCodeAt(index)) % 65_521;
  return sum % shards;
}
