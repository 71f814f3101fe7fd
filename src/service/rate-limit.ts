// Limits how often something may be done, exactly, among all replicas: counted in Redis, or in memory without it and
// while it is away. Addresses come from Express, which believes trusted proxies only.
import { isIP } from 'node:net';
import type { Request } from 'express';
import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import type { Guard } from './http-app.ts';
import { rateLimiters } from './late-packages.ts';
import { Problem } from './problem.ts';
import type { RedisCommands } from './redis.ts';

export interface RateLimit {
  /** Names the count: routes that share a name share a limit. */
  name: string;
  /** Requests in a window. */
  most: number;
  /** Milliseconds */
  window: number;
}

export interface RateLimiter extends RateLimit {
  consume(key: string): Promise<Consumed>;
}

export interface Consumed {
  isAllowed: boolean;
  remaining: number;
  /** Seconds until the window ends. */
  reset: number;
}

export function createRateLimiter(limit: RateLimit, redis?: { commands: Pick<RedisCommands, 'eval'> }): RateLimiter {
  let limiter: RateLimiterAbstract | undefined;
  return {
    ...limit,
    async consume(key) {
      limiter ??= createLimiter(limit, redis);
      try {
        return describe(await limiter.consume(key), true);
      } catch (refusal) {
        if (refusal instanceof rateLimiters().RateLimiterRes) return describe(refusal, false);
        throw refusal;
      }
    },
  };
}

function createLimiter(limit: RateLimit, redis?: { commands: Pick<RedisCommands, 'eval'> }): RateLimiterAbstract {
  const { RateLimiterMemory, RateLimiterRedis } = rateLimiters();
  const options = { points: limit.most, duration: Math.ceil(limit.window / 1_000), keyPrefix: `limit:${limit.name}` };
  const memory = new RateLimiterMemory(options);
  if (!redis) return memory;
  return new RateLimiterRedis({
    ...options,
    storeClient: redis.commands,
    useRedisPackage: true,
    insuranceLimiter: memory,
  });
}

function describe({ remainingPoints, msBeforeNext }: RateLimiterRes, isAllowed: boolean): Consumed {
  return { isAllowed, remaining: remainingPoints, reset: Math.ceil(msBeforeNext / 1_000) };
}

/**
 * Counts the request against its client's address; 429 over the limit. Says how much is left in the headers of
 * draft-ietf-httpapi-ratelimit-headers-07.
 */
export function rateLimit(limiter: RateLimiter): Guard {
  const window = Math.ceil(limiter.window / 1_000);
  return {
    name: `rateLimit(${limiter.name})`,
    async check(request, response) {
      const { isAllowed, remaining, reset } = await limiter.consume(clientKey(request));
      response.setHeader('RateLimit-Policy', `${limiter.most};w=${window}`);
      response.setHeader('RateLimit', `limit=${limiter.most}, remaining=${remaining}, reset=${reset}`);
      if (isAllowed) return;
      const headers = { 'Retry-After': String(reset) };
      throw new Problem('too-many-requests', `More than ${limiter.most} requests in ${window} s.`, { headers });
    },
  };
}

/** Who a request is counted against: its client's address, of IPv6 the network that a household has. */
function clientKey(request: Pick<Request, 'ip'>): string {
  return networkOf(request.ip ?? '');
}

/** An address as a socket or a proxy writes it, without mapping, zone and port; undefined for what is none. */
export function addressOf(written: string): string | undefined {
  const bare = /^(?:\[([^\]]*)\](?::\d+)?|(\d+(?:\.\d+){3}):\d+)$/.exec(written);
  const plain = (bare?.[1] ?? bare?.[2] ?? written).replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return isIP(plain) === 0 ? undefined : plain;
}

/** An IPv4 address as it is, an IPv6 address as its /64, `unknown` for what is neither. */
export function networkOf(written: string): string {
  const plain = addressOf(written);
  if (plain === undefined) return 'unknown';
  if (isIP(plain) === 4) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  // A dotted part stands for two groups.
  const length = [...before, ...after].reduce((sum, group) => sum + (group.includes('.') ? 2 : 1), 0);
  const middle = tail === undefined ? [] : Array.from({ length: 8 - length }, () => '0');
  const first = [...before, ...middle, ...after].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${first.join(':')}::/64`;
}
