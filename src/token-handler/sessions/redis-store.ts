// Sessions in Redis: `{sess:<handle>}` is what connect-redis writes for express-session, `{sess:<handle>}:tokens` the
// token set and what is known of it. Both end by themselves, at the session's own time.
import { RedisStore } from 'connect-redis';
import type { Redis } from '../../service/redis/redis.ts';
import { recordSeconds, recordSerializer } from './records.ts';
import * as scripts from './redis-scripts.ts';
import type { Marks, SessionIndex, SessionStore, StoredTokens, TokenStore } from './store.ts';

const prefix = '{sess:';
const recordKey = (handle: string) => `${prefix}${handle}}`;
const tokensKey = (handle: string) => `${recordKey(handle)}:tokens`;

/** `idle`: milliseconds from the last mark of a request to the end. */
export function createRedisStore(redis: Redis, { idle, maxAge }: { idle: number; maxAge: number }): SessionStore {
  return {
    records: new RedisStore({
      client: redis.commands,
      prefix,
      serializer: recordSerializer,
      ttl: (record) => recordSeconds(record, maxAge),
    }),
    tokens: createTokenStore(redis, idle),
    index: createIndex(redis),
    marks: createMarks(redis),
  };
}

/** What stands between connect-redis' prefix and the end of the key's hash tag. */
export function recordIdOf(handle: string): string {
  return `${handle}}`;
}

function createTokenStore(redis: Redis, idle: number): TokenStore {
  const keys = (handle: string) => [tokensKey(handle), recordKey(handle)];
  const { tracked } = redis;
  return {
    get mayKeep() {
      return tracked.isLive;
    },
    get toldUntil() {
      return tracked.toldUntil;
    },
    async load(handle) {
      const { reads } = tracked;
      const [record, fields] = await Promise.all([reads.get(recordKey(handle)), reads.hGetAll(tokensKey(handle))]);
      const tokens = tokensOf(fields);
      return record !== null && tokens ? { record, tokens } : undefined;
    },
    onChange: (listener) => tracked.onInvalid((key) => listener(key === null ? null : handleOf(key))),
    async start(handle, { sealed, limit }, now) {
      await redis.run(scripts.startScript, keys(handle), [sealed, limit, now, idle]);
    },
    touch: async (handle, now, interval) =>
      (await redis.run(scripts.touchScript, keys(handle), [now, idle, interval])) === 1,
    claim: async (handle, version, { id, since }) =>
      outcomeOf(await redis.run(scripts.claimScript, [tokensKey(handle)], [version, id, since])),
    async release(handle, intentId) {
      await redis.run(scripts.releaseScript, [tokensKey(handle)], [intentId]);
    },
    replace: async (handle, intentId, { sealed, limit }, now) =>
      (await redis.run(scripts.replaceScript, keys(handle), [intentId, sealed, limit, now, idle])) === 1,
    end: async (handle) => (await redis.run(scripts.endScript, keys(handle), [])) === 1,
  };
}

function handleOf(key: string): string {
  return key.slice(prefix.length, key.indexOf('}'));
}

function tokensOf(fields: Record<string, string>): StoredTokens | undefined {
  const { version, sealed, limit, touched, intent, since } = fields;
  if (sealed === undefined) return undefined;
  return {
    version: Number(version),
    sealed,
    limit: Number(limit),
    touched: Number(touched),
    ...(intent !== undefined && { intent: { id: intent, since: Number(since) } }),
  };
}

const outcomes = ['claimed', 'held', 'changed', 'gone'] as const;

function outcomeOf(reply: unknown): (typeof outcomes)[number] {
  const outcome = outcomes.find((one) => one === reply);
  if (!outcome) throw new Error('the claim script answered something else');
  return outcome;
}

function createIndex(redis: Redis): SessionIndex {
  const key = (index: string) => `{sessions:${index}}`;
  return {
    async enter(indexes, handle, until, now) {
      await Promise.all(indexes.map((index) => redis.run(scripts.enterScript, [key(index)], [handle, until, now])));
    },
    async entries(index, top, after = '') {
      const reply = await redis.run(scripts.entriesScript, [key(index)], [top, after]);
      return Array.isArray(reply) ? reply.map(String) : [];
    },
    async remove(indexes, handle, until = Number.MAX_SAFE_INTEGER) {
      await Promise.all(indexes.map((index) => redis.run(scripts.removeScript, [key(index)], [handle, until])));
    },
  };
}

function createMarks(redis: Redis): Marks {
  const key = (name: string) => `{mark:${name}}`;
  return {
    async raise(name, value, milliseconds) {
      await redis.run(scripts.raiseScript, [key(name)], [value, milliseconds]);
    },
    async value(name) {
      const text = await redis.commands.get(key(name));
      return text === null ? undefined : Number(text);
    },
  };
}
