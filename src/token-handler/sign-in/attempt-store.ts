// Where a browser's open attempts to sign in are kept, in Redis or in memory. Each is its own entry, so that many tabs
// can sign in at once, and its secret is handed out once. It holds sealed texts and opens none.
import type { Clock } from '../../service/clock.ts';
import { defineScript, type Redis } from '../../service/redis/redis.ts';

export interface SealedAttempt {
  /** What redeeming the code takes; gone once taken. */
  secret: string;
  /** Where the attempt leads. */
  place: string;
}

export interface AttemptLimits {
  most: number;
  /** Milliseconds */
  memory: number;
}

export interface AttemptStore {
  /** The oldest beyond the limit are forgotten. */
  add(browser: string, id: string, attempt: SealedAttempt): Promise<void>;
  /** The secret is there for the first that asks. */
  take(browser: string, id: string): Promise<(Partial<SealedAttempt> & Pick<SealedAttempt, 'place'>) | undefined>;
}

// KEYS: attempts. ARGV: id, secret, place, now, most, memory
const addScript = defineScript(`
redis.call('HSET', KEYS[1], ARGV[1] .. ':secret', ARGV[2], ARGV[1] .. ':place', ARGV[3], ARGV[1] .. ':at', ARGV[4])
local fields = redis.call('HGETALL', KEYS[1])
local attempts = {}
for i = 1, #fields, 2 do
  local id = string.match(fields[i], '^(.*):at$')
  if id then table.insert(attempts, { id, tonumber(fields[i + 1]) }) end
end
table.sort(attempts, function(one, other) return one[2] > other[2] end)
for i, attempt in ipairs(attempts) do
  if i > tonumber(ARGV[5]) or attempt[2] <= ARGV[4] - ARGV[6] then
    redis.call('HDEL', KEYS[1], attempt[1] .. ':secret', attempt[1] .. ':place', attempt[1] .. ':at')
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 1`);

// KEYS: attempts. ARGV: id
const takeScript = defineScript(`
local found = redis.call('HMGET', KEYS[1], ARGV[1] .. ':place', ARGV[1] .. ':secret')
redis.call('HDEL', KEYS[1], ARGV[1] .. ':secret')
return found`);

export function createRedisAttemptStore(redis: Redis, { most, memory }: AttemptLimits, clock: Clock): AttemptStore {
  const key = (browser: string) => `{attempts:${browser}}`;
  return {
    async add(browser, id, { secret, place }) {
      const now = clock().getTime();
      await redis.run(addScript, [key(browser)], [id, secret, place, now, most, memory]);
    },
    async take(browser, id) {
      const reply = await redis.run(takeScript, [key(browser)], [id]);
      const [place, secret] = Array.isArray(reply) ? reply : [];
      if (typeof place !== 'string') return undefined;
      return { place, ...(typeof secret === 'string' && { secret }) };
    },
  };
}

interface MemoryAttempt {
  place: string;
  secret?: string;
  at: number;
}

export function createMemoryAttemptStore({ most, memory }: AttemptLimits, clock: Clock): AttemptStore {
  const browsers = new Map<string, Map<string, MemoryAttempt>>();
  const isOver = ({ at }: MemoryAttempt) => at <= clock().getTime() - memory;
  const forget = () => {
    for (const [browser, attempts] of browsers) if ([...attempts.values()].every(isOver)) browsers.delete(browser);
  };
  return {
    async add(browser, id, attempt) {
      forget();
      const attempts = browsers.get(browser) ?? new Map<string, MemoryAttempt>();
      attempts.set(id, { ...attempt, at: clock().getTime() });
      const latest = [...attempts].filter(([, one]) => !isOver(one)).slice(-most);
      browsers.set(browser, new Map(latest));
    },
    async take(browser, id) {
      const attempt = browsers.get(browser)?.get(id);
      if (!attempt || isOver(attempt)) return undefined;
      const { place, secret } = attempt;
      delete attempt.secret;
      return { place, ...(secret !== undefined && { secret }) };
    },
  };
}
