// Creates the rate limiters of all processes. An `exact` limiter queries Redis before each decision. A `local` limiter
// decides in this process, and exchanges counts with the other processes once per second. While Redis is down, each
// process counts only its own requests.
import type { Clock } from '../clock.ts';
import { networkOf } from '../http/client-address.ts';
import type { PlainGuard, SyncGuard } from '../http/http-app.ts';
import { Problem } from '../http/problem.ts';
import { addHeader, type HttpResponse } from '../http/request-context.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import type { Redis } from '../redis/redis.ts';
import { addToShared, SharedCounts, sharedKey } from './shared-counts.ts';
import { WindowCounts, windowAt } from './window-counts.ts';

export interface RateLimit {
  /** Name in the Redis keys, in metrics and in the route table. Routes that share a limiter share the limit. */
  name: string;
  /** Maximum number of requests in a window. */
  most: number;
  /** Length of a window in milliseconds. The windows of all processes begin and end at the same time. */
  window: number;
}

export interface Counted {
  isAllowed: boolean;
  remaining: number;
  /** Seconds until the window ends. */
  reset: number;
}

export interface RateLimiter extends RateLimit {
  /** Counts one request of the client or session that `key` names. */
  count(key: string): Counted | Promise<Counted>;
}

export interface LocalRateLimiter extends RateLimiter {
  count(key: string): Counted;
  /** Takes back one counted request of the key in the current window. Call this for a request that had no effect. */
  uncount(key: string): void;
}

export interface RateLimits {
  /** Creates a limiter that counts the requests of all processes before each decision. */
  exact(limit: RateLimit): RateLimiter;
  /**
   * Creates a limiter that never waits for Redis. All processes together may exceed the limit by the requests of one
   * second.
   */
  local(limit: RateLimit): LocalRateLimiter;
  close(): void;
}

export interface RateLimitsOptions {
  /** Connection to Redis; absent if each process counts alone. */
  redis?: Pick<Redis, 'run'> | undefined;
  clock: Clock;
  log: Logger;
  metrics: Pick<Metrics, 'rateLimited'>;
}

/** Milliseconds between two exchanges of counts with the other processes. */
const exchangeInterval = 1_000;

export function createRateLimits({ redis, clock, log, metrics }: RateLimitsOptions): RateLimits {
  const shared: SharedCounts[] = [];
  const exchange = async () => {
    // Logged at debug level, because the connection to Redis has already logged the reason.
    await Promise.all(shared.map((counts) => counts.exchange())).catch((error: unknown) =>
      log.debug({ err: error }, 'exchange of request counts failed'),
    );
  };
  let timer: NodeJS.Timeout | undefined;

  function judge({ name, most }: RateLimit, used: number, reset: number): Counted {
    const isAllowed = used <= most;
    if (!isAllowed) metrics.rateLimited.inc({ limit: name });
    return { isAllowed, remaining: Math.max(most - used, 0), reset };
  }

  function local(given: RateLimit, isShared = true): LocalRateLimiter {
    const limit = withSeconds(given);
    const counts = new WindowCounts(limit.window);
    const exchanged = redis && isShared ? new SharedCounts(limit, redis) : undefined;
    if (exchanged) {
      shared.push(exchanged);
      timer ??= setInterval(() => void exchange(), exchangeInterval).unref();
    }
    const count = (key: string): Counted => {
      const now = clock().getTime();
      const { index, secondsLeft } = windowAt(now, limit.window);
      const counted = counts.at(index, key);
      const used = counted.own + counted.total + 1;
      // A refused request is not counted, because its key has already reached the limit.
      if (used <= limit.most) {
        counted.own += 1;
        exchanged?.changed(index, key, counted);
      }
      return judge(limit, used, secondsLeft);
    };
    const uncount = (key: string): void => {
      const { index } = windowAt(clock().getTime(), limit.window);
      const counted = counts.at(index, key);
      // The count is 0 if a new window has begun since the request.
      if (counted.own + counted.total === 0) return;
      exchanged?.changed(index, key, counted);
      counted.own -= 1;
    };
    return { ...limit, count, uncount };
  }

  return {
    local: (limit) => local(limit),
    exact(given) {
      const limit = withSeconds(given);
      const alone = local(limit, false);
      if (!redis) return alone;
      const count = async (key: string): Promise<Counted> => {
        const { index, secondsLeft } = windowAt(clock().getTime(), limit.window);
        const storeKey = sharedKey(limit.name, index, key);
        const used = await addToShared(redis, [storeKey], limit.window, [1]).catch((error: unknown) => {
          if (error instanceof Problem && error.slug === 'unavailable') return undefined;
          throw error;
        });
        return used ? judge(limit, used[0] ?? 0, secondsLeft) : alone.count(key);
      };
      return { ...limit, count };
    },
    close: () => clearInterval(timer),
  };
}

/** A window lasts at least a second, because the headers state whole seconds. */
function withSeconds(limit: RateLimit): RateLimit {
  return { ...limit, window: Math.max(1_000, limit.window) };
}

/**
 * Returns a guard that counts each request under the key that `keyOf` returns, and throws Problem `too-many-requests`
 * above the limit. It sets the response headers of draft-ietf-httpapi-ratelimit-headers-07. If a route has several
 * limits, the headers describe the limit that was checked last.
 */
export function rateLimit(limiter: LocalRateLimiter, keyOf: KeyOf): SyncGuard;
export function rateLimit(limiter: RateLimiter, keyOf: KeyOf): PlainGuard;
export function rateLimit(limiter: RateLimiter, keyOf: KeyOf): PlainGuard {
  const { name, most } = limiter;
  const seconds = Math.ceil(limiter.window / 1_000);
  const policy = `${most};w=${seconds}`;
  const judge = (response: HttpResponse, { isAllowed, remaining, reset }: Counted) => {
    addHeader(response, 'ratelimit-policy', policy);
    addHeader(response, 'ratelimit', `limit=${most}, remaining=${remaining}, reset=${reset}`);
    if (isAllowed) return;
    const headers = { 'Retry-After': String(reset) };
    throw new Problem('too-many-requests', `More than ${most} requests in ${seconds} s.`, { headers });
  };
  return {
    name: `rateLimit(${name})`,
    check(_request, response) {
      const counted = limiter.count(keyOf(response));
      return counted instanceof Promise ? counted.then((later) => judge(response, later)) : judge(response, counted);
    },
  };
}

type KeyOf = (response: HttpResponse) => string;

/** Limits requests by client address. All IPv6 addresses of a /64 network count as one. */
export function addressLimit(limiter: LocalRateLimiter): SyncGuard;
export function addressLimit(limiter: RateLimiter): PlainGuard;
export function addressLimit(limiter: RateLimiter): PlainGuard {
  const limit = rateLimit(limiter, ({ locals }) => networkOf(locals.forwarded.address));
  return { ...limit, name: `addressLimit(${limiter.name})` };
}
