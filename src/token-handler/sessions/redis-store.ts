// Stores sessions in Redis. The key `{sess:<handle>}` holds the record of express-session, which connect-redis writes.
// `{sess:<handle>}:tokens` holds the token set and its state. Both keys expire together with the session.
// `{sess:<handle>}:alive` is the heartbeat of an attempt to refresh the session. When this key has expired, the attempt
// counts as ended by a crash. The scripts change a session atomically. Times are in milliseconds and come from the
// caller's clock, except the time at which an attempt declared its intent to refresh: it comes from the clock of Redis.
// The indexes `{sessions:open:<n>}` contain all sessions with their expiry, so that sessions can be counted (decision
// 0060).
import type { Redis } from '../../service/redis/redis.ts';
import { defineScript } from '../../service/redis/redis-script.ts';
import { createIndex, createOpenSessions } from './redis-indexes.ts';
import { recordKey } from './session.ts';
import type { ClaimResult, SessionStore, StoredSession, TokenStore } from './store.ts';

/** `idle` is the time in milliseconds from the last recorded request to the end of a session. */
export function createRedisStore(redis: Redis, { idle }: { idle: number }): SessionStore {
  const markKey = (name: string) => `{mark:${name}}`;
  return {
    records: redis.commands,
    tokens: createTokenStore(redis, idle),
    index: createIndex(redis),
    marks: {
      // In a Redis Cluster, the key selects the node, so that all replicas read the same clock.
      time: async () => Number(await redis.run(timeScript, [markKey('time')], [])),
      async raise(name, value, milliseconds) {
        await redis.run(raiseScript, [markKey(name)], [value, milliseconds]);
      },
      async value(name) {
        const text = await redis.commands.get(markKey(name));
        return text === null ? undefined : Number(text);
      },
      claim: async (name, value, milliseconds) =>
        (await redis.run(markScript, [markKey(name)], [value, milliseconds])) === 1,
      async remove(name, value) {
        await redis.run(unmarkScript, [markKey(name)], [value]);
      },
    },
  };
}

const tokensKey = (handle: string) => `${recordKey(handle)}:tokens`;
const keysOf = (handle: string) => [tokensKey(handle), recordKey(handle), `${recordKey(handle)}:alive`];
const handleIn = (key: string) => key.slice(key.indexOf(':') + 1, key.indexOf('}'));

/** Milliseconds for which a heartbeat is kept. */
const lifeTime = 5_000;
/** After the connection to Redis was lost, heartbeats of other replicas may be missing for this many milliseconds. */
const settleTime = 3_000;

function createTokenStore(redis: Redis, idle: number): TokenStore {
  const { tracked } = redis;
  const open = createOpenSessions(redis);
  let disturbed = Number.NEGATIVE_INFINITY;
  tracked.onInvalid((key) => {
    if (key === null) disturbed = performance.now();
  });
  return {
    get isTracked() {
      return tracked.isLive;
    },
    get trackedUntil() {
      return tracked.toldUntil;
    },
    async load(handle) {
      const { reads } = tracked;
      const [record, fields] = await Promise.all([reads.get(recordKey(handle)), reads.hGetAll(tokensKey(handle))]);
      const tokens = tokensOf(fields);
      return record !== null && tokens ? { record, tokens } : undefined;
    },
    onChange(listener) {
      tracked.onInvalid((key) => listener(key === null ? null : handleIn(key)));
    },
    async start(handle, { sealed, limit }, now) {
      open.note(handle, await redis.run(startScript, keysOf(handle), [sealed, limit, now, idle]), now);
    },
    async touch(handle, now, interval) {
      const expiry = await redis.run(touchScript, keysOf(handle), [now, idle, interval]);
      if (expiry !== recently) open.note(handle, expiry, now);
      return expiry !== 0;
    },
    claim: async (handle, version, intentId) =>
      (await redis.run(claimScript, keysOf(handle), [version, intentId, lifeTime])) as ClaimResult,
    async heartbeat(handle, intentId) {
      await redis.run(heartbeatScript, keysOf(handle), [intentId, lifeTime]);
    },
    async abandon(handle, intentId) {
      if (performance.now() - disturbed < settleTime) return false;
      return (await redis.run(abandonScript, keysOf(handle), [intentId, lifeTime])) === 1;
    },
    async conclude(handle, intentId, now, { sealed, limit } = { sealed: '', limit: 0 }) {
      const expiry = await redis.run(concludeScript, keysOf(handle), [intentId, sealed, limit, now, idle]);
      open.note(handle, expiry, now);
      return expiry !== 0;
    },
    async end(handle) {
      const wasLive = (await redis.run(endScript, keysOf(handle), [])) === 1;
      open.remove(handle);
      return wasLive;
    },
    count: open.count,
  };
}

function tokensOf(fields: Record<string, string>): StoredSession['tokens'] | undefined {
  const { version, sealed, limit, touched, intent } = fields;
  if (sealed === undefined) return undefined;
  return {
    version: Number(version),
    sealed,
    limit: Number(limit),
    touched: Number(touched),
    ...(intent !== undefined && { intent }),
  };
}

// In the scripts that change a session, KEYS[1] holds the tokens, KEYS[2] the record and KEYS[3] the heartbeat.

// `time` returns the time of Redis, because the clocks of replicas may differ.
const time = `
local function time()
  local seconds, microseconds = unpack(redis.call('TIME'))
  return seconds * 1000 + math.floor(microseconds / 1000)
end
`;

// Sets the expiry of the tokens and of the record, and returns it. Returns 0 if the session has ended. If the pod's
// clock is ahead of Redis, uses the time of Redis. The pod could otherwise end a session early while another pod
// refreshes the session.
const expire = `${time}
local function expire(asked, idle)
  local now = math.min(asked, time())
  local limit, touched = unpack(redis.call('HMGET', KEYS[1], 'limit', 'touched'))
  local left = math.ceil(math.min(limit, touched + idle) - now)
  if left <= 0 then redis.call('DEL', KEYS[1], KEYS[2]) return 0 end
  redis.call('PEXPIRE', KEYS[1], left)
  redis.call('PEXPIRE', KEYS[2], left)
  return now + left
end
`;

/** Starts a session. ARGV: sealed, limit, now, idle. Returns the expiry. */
const startScript = defineScript(`${expire}
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'version', 1, 'sealed', ARGV[1], 'limit', ARGV[2], 'touched', ARGV[3])
return expire(ARGV[3], ARGV[4])`);

/** Result of `touchScript` if the previous request was recorded less than `interval` ago. */
const recently = 1;

/** Records a request. ARGV: now, idle, interval. Returns the expiry, `recently`, or 0 if the session has ended. */
const touchScript = defineScript(`${expire}
local touched = redis.call('HGET', KEYS[1], 'touched')
if not touched then return 0 end
if ARGV[1] - touched < tonumber(ARGV[3]) then return ${recently} end
redis.call('HSET', KEYS[1], 'touched', ARGV[1])
return expire(ARGV[1], ARGV[2])`);

/** Claims a refresh of the session. ARGV: version, intent, milliseconds for which a heartbeat is kept. */
const claimScript = defineScript(`${time}
local version, intent = unpack(redis.call('HMGET', KEYS[1], 'version', 'intent'))
if not version then return 'gone' end
if intent and intent ~= ARGV[2] then return 'held' end
if version ~= ARGV[1] then return 'changed' end
redis.call('HSET', KEYS[1], 'intent', ARGV[2], 'since', time())
redis.call('SET', KEYS[3], '1', 'PX', ARGV[3])
return 'claimed'`);

/** Writes the heartbeat of a refresh. ARGV: intent, milliseconds for which a heartbeat is kept. */
const heartbeatScript = defineScript(`
if redis.call('HGET', KEYS[1], 'intent') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[3], '1', 'PX', ARGV[2])
return 1`);

// Replicas of version 0.2 write no heartbeats. A refresh whose intent is recent therefore counts as running.
/**
 * Ends the session and returns 1 if the attempt to refresh it no longer runs. ARGV: intent, milliseconds for which a
 * heartbeat is kept.
 */
const abandonScript = defineScript(`${time}
local intent, since = unpack(redis.call('HMGET', KEYS[1], 'intent', 'since'))
if intent ~= ARGV[1] or redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
if since and time() - since < tonumber(ARGV[2]) then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
return 1`);

/**
 * Ends a refresh attempt, and stores its tokens. ARGV: intent, sealed or '', limit, now, idle. Returns the expiry, or 0
 * if the session has ended or has another intent.
 */
const concludeScript = defineScript(`${expire}
if redis.call('HGET', KEYS[1], 'intent') ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'intent', 'since')
redis.call('DEL', KEYS[3])
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'sealed', ARGV[2], 'limit', ARGV[3])
  redis.call('HINCRBY', KEYS[1], 'version', 1)
end
return expire(ARGV[4], ARGV[5])`);

/** Ends a session. Returns 0 if it had already ended. */
const endScript = defineScript(`
local live = redis.call('EXISTS', KEYS[1])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return live`);

/** Returns the time of Redis. */
const timeScript = defineScript(`${time}
return time()`);

/** Stores a value in a mark, unless the mark has an equal or greater value. KEYS: mark. ARGV: value, lifetime in ms. */
const raiseScript = defineScript(`
local value = redis.call('GET', KEYS[1])
if not value or tonumber(value) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1`);

/** Creates a mark. Returns 0 if the mark already exists. KEYS: mark. ARGV: value, lifetime in ms. */
const markScript = defineScript(`
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') and 1 or 0`);

/** Removes a mark if it has this value. KEYS: mark. ARGV: value. */
const unmarkScript = defineScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`);
