// The steps on a session in Redis that must not be taken apart, in Lua. KEYS[1] holds the tokens, KEYS[2] the record;
// both are in one slot of a Cluster. Times are milliseconds, and come from the caller's clock.
import { defineScript } from '../../service/redis/redis.ts';

// ARGV: now, idle
const expire = `
local function expire(now, idle)
  local limit, touched = unpack(redis.call('HMGET', KEYS[1], 'limit', 'touched'))
  local left = math.ceil(math.min(limit, touched + idle) - now)
  if left <= 0 then redis.call('DEL', KEYS[1], KEYS[2]) return 0 end
  redis.call('PEXPIRE', KEYS[1], left)
  redis.call('PEXPIRE', KEYS[2], left)
  return 1
end
`;

/** ARGV: sealed, limit, now, idle */
export const startScript = defineScript(`${expire}
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'version', 1, 'sealed', ARGV[1], 'limit', ARGV[2], 'touched', ARGV[3])
return expire(ARGV[3], ARGV[4])`);

/** ARGV: now, idle, interval. 0 when the session is gone. */
export const touchScript = defineScript(`${expire}
local touched = redis.call('HGET', KEYS[1], 'touched')
if not touched then return 0 end
if ARGV[1] - touched < tonumber(ARGV[3]) then return 1 end
redis.call('HSET', KEYS[1], 'touched', ARGV[1])
return expire(ARGV[1], ARGV[2])`);

/** ARGV: version, intent, since */
export const claimScript = defineScript(`
local version, intent = unpack(redis.call('HMGET', KEYS[1], 'version', 'intent'))
if not version then return 'gone' end
if intent and intent ~= ARGV[2] then return 'held' end
if version ~= ARGV[1] then return 'changed' end
redis.call('HSET', KEYS[1], 'intent', ARGV[2], 'since', ARGV[3])
return 'claimed'`);

/** ARGV: intent */
export const releaseScript = defineScript(`
if redis.call('HGET', KEYS[1], 'intent') ~= ARGV[1] then return 0 end
return redis.call('HDEL', KEYS[1], 'intent', 'since')`);

/** ARGV: intent, sealed, limit, now, idle. 0 unless the intent stands. */
export const replaceScript = defineScript(`${expire}
if redis.call('HGET', KEYS[1], 'intent') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'sealed', ARGV[2], 'limit', ARGV[3])
redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('HDEL', KEYS[1], 'intent', 'since')
return expire(ARGV[4], ARGV[5])`);

/** 0 when the session was gone. */
export const endScript = defineScript(`
local live = redis.call('EXISTS', KEYS[1])
redis.call('DEL', KEYS[1], KEYS[2])
return live`);

/** KEYS: index. ARGV: handle, until, now */
export const enterScript = defineScript(`
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
local left = math.ceil(ARGV[2] - ARGV[3])
if left > redis.call('PTTL', KEYS[1]) then redis.call('PEXPIRE', KEYS[1], left) end
return 1`);

/** KEYS: index. ARGV: top, handle of the last entry before or '' */
export const entriesScript = defineScript(`
local rank = -1
if ARGV[2] ~= '' then rank = redis.call('ZREVRANK', KEYS[1], ARGV[2]) end
if not rank then return {} end
return redis.call('ZREVRANGE', KEYS[1], rank + 1, rank + tonumber(ARGV[1]))`);

/** KEYS: index. ARGV: handle, until: an entry that is to be kept for longer stays */
export const removeScript = defineScript(`
local kept = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not kept or tonumber(kept) > tonumber(ARGV[2]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])`);

/** KEYS: mark. ARGV: value, milliseconds */
export const raiseScript = defineScript(`
local value = redis.call('GET', KEYS[1])
if not value or tonumber(value) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1`);
