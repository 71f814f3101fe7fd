// Defines how many connections to upstreams a person, a tenant and all people together may hold, and how many requests
// may wait for a connection, and to how many upstreams there may be connections.
import { Problem } from '../../service/http/problem.ts';
import type { FairQueueOptions } from '../../service/limits/fair-queue.ts';

/**
 * Why a request was refused. `process`: the limit for all upstreams together was reached. `pool`: all connections to
 * the upstream were in use. `queue-full`: too many requests were waiting. `queue-late`: the request waited for too
 * long. `lookup`: too many host names were being looked up.
 */
export type ConnectionRefusal = 'process' | 'pool' | 'queue-full' | 'queue-late' | 'lookup';

export interface ConnectionLimits {
  /** Maximum number of shared connections to one upstream. */
  perUpstream: number;
  /** Percentage of the shared connections that one person may hold. This limit is never less than eight connections. */
  personShare: number;
  /** Percentage of the shared connections that one tenant may hold. */
  tenantShare: number;
  onRefused(reason: ConnectionRefusal): void;
}

/** Maximum wait of a request in milliseconds, while its person or tenant holds all connections of its share. */
const longestWait = 10_000;
/** Maximum number of waiting requests for each connection that a person, a tenant or a pool may hold. */
export const waitingPerConnection = 4;
/** The limit of a person is never less than this number, because a page loads several resources concurrently. */
const leastOfPerson = 8;
/** Maximum number of upstreams to which connections are kept, because even unused connections take memory. */
const mostUpstreams = { total: 1_000, perTenant: 500 };

/**
 * Returns the options of a queue for connections. `times` multiplies the number of connections to one upstream.
 * `waiting` is the maximum number of waiting requests per connection.
 */
export function queueOptions(
  { perUpstream, personShare, tenantShare, onRefused }: ConnectionLimits,
  { times, waiting }: { times: number; waiting: number },
): FairQueueOptions {
  const total = perUpstream * times;
  const part = (percent: number) => Math.max(1, Math.floor((total * percent) / 100));
  const slots = {
    total,
    perTenant: part(tenantShare),
    perMember: Math.max(part(personShare), leastOfPerson),
  };
  return {
    slots,
    waiting: {
      total: total * waiting,
      perTenant: slots.perTenant * waiting,
      perMember: slots.perMember * waiting,
    },
    waitMs: longestWait,
    detail: 'This person or tenant has too many requests to this upstream. Try again.',
    retryAfterSeconds: 1,
    onRefused: (reason: 'full' | 'late') => onRefused(`queue-${reason}`),
  };
}

interface KeptUpstream {
  /** The tenant of the latest request. */
  tenant: string;
  /** When the latest request ended, by `performance.now()`. */
  lastUsed: number;
  isInUse: boolean;
}

/**
 * Returns the upstream that must be dropped before the tenant may use another one: of those that are unused, the one
 * whose latest request ended first. Returns undefined if the limits are not reached. Throws Problem `busy` if requests
 * use all upstreams.
 */
export function surplusOf<U extends KeptUpstream>(
  upstreams: Iterable<U>,
  tenant: string,
  limits: ConnectionLimits,
): U | undefined {
  const all = [...upstreams];
  const own = all.filter((upstream) => upstream.tenant === tenant);
  const isOwnFull = own.length >= mostUpstreams.perTenant;
  if (!isOwnFull && all.length < mostUpstreams.total) return undefined;
  const unused = (isOwnFull ? own : all).filter(({ isInUse }) => !isInUse);
  const [oldest] = unused.sort((one, other) => one.lastUsed - other.lastUsed);
  if (oldest) return oldest;
  throw refusal('process', 'The requests of this tenant or service go to too many upstreams.', limits);
}

/** Counts a refused request, and returns the problem for the client. */
export function refusal(reason: ConnectionRefusal, detail: string, { onRefused }: ConnectionLimits): Problem {
  onRefused(reason);
  return new Problem('busy', detail, { headers: { 'Retry-After': '1' } });
}
