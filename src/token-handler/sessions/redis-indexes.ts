// Indexes of sessions in Redis: sorted sets of handles by expiry. The indexes of `SessionIndex` list the sessions of a
// tenant, of a person, or of a session at the identity provider. A session that is missing from them could not be
// revoked. One more index contains all sessions and is only used to count them.
import type { Redis } from '../../service/redis/redis.ts';
import { defineScript } from '../../service/redis/redis-script.ts';
import { positionLife } from './session-indexes.ts';
import type { SessionIndex } from './store.ts';

export function createIndex(redis: Redis): SessionIndex {
  const key = (index: string) => `{sessions:${index}}`;
  const positionKey = (index: string, handle: string) => `${key(index)}:removed:${handle}`;
  return {
    async enter(indexes, handle, until, now) {
      const enterOne = async (index: string): Promise<[string, number]> => [
        index,
        Number(await redis.run(enterScript, [key(index)], [handle, until, now])),
      ];
      return new Map(await Promise.all(indexes.map(enterOne)));
    },
    async entries(index, top, after = '') {
      const found = await redis.run(entriesScript, [key(index), positionKey(index, after)], [top, after]);
      return (found as string[] | null) ?? undefined;
    },
    async oldest(index, count) {
      return (await redis.run(oldestScript, [key(index)], [count])) as string[];
    },
    async remove(indexes, handle, until = Number.MAX_SAFE_INTEGER) {
      await Promise.all(
        indexes.map((index) =>
          redis.run(removeScript, [key(index), positionKey(index, handle)], [handle, until, positionLife]),
        ),
      );
    },
  };
}

/**
 * Keys of the parts of the index of all sessions. In a Redis Cluster, the parts are on different nodes, so that no node
 * gets all writes.
 */
const openIndexes = Array.from({ length: 16 }, (_, part) => `{sessions:open:${part}}`);
const openIndexOf = (handle: string) => openIndexes[handle.charCodeAt(0) % openIndexes.length] as string;

/**
 * Maintains the index of all sessions, and counts its entries. The entry of a session is written after the session's
 * own keys. A sign-in does not wait for this write, and succeeds even if the write fails. The session's next recorded
 * request then writes the missing entry.
 */
export function createOpenSessions(redis: Redis) {
  return {
    /** `expiry` is in milliseconds since 1970, or 0 if the session has ended. */
    note(handle: string, expiry: unknown, now: number): void {
      if (typeof expiry !== 'number' || expiry === 0) return;
      redis.run(enterScript, [openIndexOf(handle)], [handle, expiry, now]).catch(() => undefined);
    },
    remove(handle: string): void {
      const { MAX_SAFE_INTEGER: always } = Number;
      redis.run(removeScript, [openIndexOf(handle)], [handle, always]).catch(() => undefined);
    },
    async count(now: number): Promise<number> {
      const counts = await Promise.all(openIndexes.map((key) => redis.run(countScript, [key], [now])));
      return counts.reduce<number>((sum, count) => sum + Number(count), 0);
    },
  };
}

/**
 * Adds a session to an index, and removes expired entries. Returns the number of entries. KEYS: index. ARGV: handle,
 * expiry of the entry, now.
 */
const enterScript = defineScript(`
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
local left = math.ceil(ARGV[2] - ARGV[3])
if left > redis.call('PTTL', KEYS[1]) then redis.call('PEXPIRE', KEYS[1], left) end
return redis.call('ZCARD', KEYS[1])`);

/** Returns the number of entries of an index that have not expired. KEYS: index. ARGV: now. */
const countScript = defineScript(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
return redis.call('ZCARD', KEYS[1])`);

/**
 * Returns one page of an index: the entries after the last handle of the previous page. Returns nil if the position of
 * that handle is unknown. If the entry of that handle was removed, adds it again while the script runs, so that Redis
 * finds the entries after it. KEYS: index, position of that handle. ARGV: size of the page, last handle of the previous
 * page or ''.
 */
const entriesScript = defineScript(`
local rank = -1
local removed = false
if ARGV[2] ~= '' then
  rank = redis.call('ZREVRANK', KEYS[1], ARGV[2])
  if not rank then
    removed = redis.call('GET', KEYS[2])
    if not removed then return false end
    redis.call('ZADD', KEYS[1], removed, ARGV[2])
    rank = redis.call('ZREVRANK', KEYS[1], ARGV[2])
  end
end
local entries = redis.call('ZREVRANGE', KEYS[1], rank + 1, rank + tonumber(ARGV[1]))
if removed then redis.call('ZREM', KEYS[1], ARGV[2]) end
return entries`);

/** Returns the first entries of an index, by expiry. KEYS: index. ARGV: number of entries. */
const oldestScript = defineScript(`return redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)`);

/**
 * Removes an entry of an index, unless the entry expires after `until`. KEYS: index, and optionally a key under which
 * the entry's position is kept. ARGV: handle, until, milliseconds for which the position is kept.
 */
const removeScript = defineScript(`
local kept = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not kept or tonumber(kept) > tonumber(ARGV[2]) then return 0 end
if KEYS[2] then redis.call('SET', KEYS[2], kept, 'PX', ARGV[3]) end
return redis.call('ZREM', KEYS[1], ARGV[1])`);
