// Limits how often something may be done in a window of time. The one rate limiter of all processes, in two kinds: `exact`
// asks Redis before each decision; `local` decides in this process and tells the others once a second. Without Redis, and
// while it is away, each process counts alone.
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
  /** Names the count in the store, in metrics and in the route table. Routes that share a limiter share the limit. */
  name: string;
  /** Requests in a window. */
  most: number;
  /** Milliseconds. Windows of all processes begin and end together. */
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

/** Decides at once. */
export interface LocalRateLimiter extends RateLimiter {
  count(key: string): Counted;
}

export interface RateLimits {
  /** Every request of every process counts before the next decision. */
  exact(limit: RateLimit): RateLimiter;
  /** No request waits for a store: processes together may let a second's worth of requests too many pass. */
  local(limit: RateLimit): LocalRateLimiter;
  close(): void;
}

export interface RateLimitsOptions {
  /** Absent where there is one process only, or where each counts alone. */
  redis?: Pick<Redis, 'run'> | undefined;
  clock: Clock;
  log: Logger;
  metrics: Pick<Metrics, 'rateLimited'>;
}

/** Milliseconds between tellings. */
const tellInterval = 1_000;

export function createRateLimits({ redis, clock, log, metrics }: RateLimitsOptions): RateLimits {
  const shared: SharedCounts[] = [];
  const tell = async () => {
    // The connection has logged why.
    await Promise.all(shared.map((counts) => counts.tell())).catch((error: unknown) =>
      log.debug({ err: error }, 'request counts were not told'),
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
    const told = redis && isShared ? new SharedCounts(limit, redis) : undefined;
    if (told) {
      shared.push(told);
      timer ??= setInterval(() => void tell(), tellInterval).unref();
    }
    const count = (key: string): Counted => {
      const now = clock().getTime();
      const { index, secondsLeft } = windowAt(now, limit.window);
      const counted = counts.at(index, key);
      const used = counted.own + counted.told + 1;
      // Refused requests do not count: the key is over its limit anyway.
      if (used <= limit.most) {
        counted.own += 1;
        told?.changed(index, key, counted);
      }
      return judge(limit, used, secondsLeft);
    };
    return { ...limit, count };
  }

  return {
    local: (limit) => local(limit),
    exact(given) {
      const limit = withSeconds(given);
      const alone = local(limit, false);
      if (!redis) return alone;
      const count = async (key: string): Promise<Counted> => {
        const { index, secondsLeft } = windowAt(clock().getTime(), limit.window);
        const place = sharedKey(limit.name, index, key);
        const used = await addToShared(redis, [place], limit.window, [1]).catch((error: unknown) => {
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

/** A window is told in seconds. */
function withSeconds(limit: RateLimit): RateLimit {
  return { ...limit, window: Math.max(1_000, limit.window) };
}

/**
 * Counts a request for the key that `keyOf` returns. Throws Problem `too-many-requests` over the limit. The response says
 * how many requests are left, in the headers of draft-ietf-httpapi-ratelimit-headers-07; of several limits, the last one.
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

/** 429 for an address, or an IPv6 network, with more requests than it may make. */
export function addressLimit(limiter: LocalRateLimiter): SyncGuard;
export function addressLimit(limiter: RateLimiter): PlainGuard;
export function addressLimit(limiter: RateLimiter): PlainGuard {
  const limit = rateLimit(limiter, ({ locals }) => networkOf(locals.forwarded.address));
  return { ...limit, name: `addressLimit(${limiter.name})` };
}
