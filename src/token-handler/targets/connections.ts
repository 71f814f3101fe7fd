// Manages connections to upstreams. Requests share a pool of connections for each upstream. Each stream has a separate
// connection. Each person and each tenant may hold only a limited share of a pool. Requests beyond this share wait in a
// limited queue. Requests to a full pool are refused immediately. Limits the number of pools. Closes the connections of
// unused pools, and idle connections that the network may have dropped. Never retries a request.
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { HostLookups, lookupShares } from '../../service/http/host-lookups.ts';
import type { Problem } from '../../service/http/problem.ts';
import { FairQueue, type ReleaseSlot, type Requester } from '../../service/limits/fair-queue.ts';
import { ReplaceablePool } from '../../service/replaceable-pool.ts';
import {
  type ConnectionLimits,
  type ConnectionRefusal,
  queueOptions,
  refusal,
  surplusOf,
  waitingPerConnection,
} from './connection-limits.ts';

/** A connection to an upstream, for one request. */
export interface Lease {
  readonly dispatcher: Dispatcher;
  /**
   * Call this when the response takes long. If the network has silently dropped this connection, idle connections to
   * the same upstream may be dead too. Later requests therefore use new connections.
   */
  suspect(): void;
  /** Call this when the request is over. Further calls do nothing. */
  release(): void;
}

/** A request that needs a lease. */
export interface Waiter {
  /** Called if the request has to wait for a connection. The returned signal aborts the wait. */
  beginWait(): AbortSignal;
}

export interface Connections {
  /**
   * Leases a shared connection. Waits if the person or the tenant already holds all connections of its share. Throws
   * Problem `busy`.
   */
  share(origin: string, requester: Requester, waiter: Waiter): Promise<Lease>;
  /** Leases a new connection for one stream. */
  own(origin: string, tenant: string): Lease;
  /** Returns the number of shared connections in use, and the number of requests that wait for a connection. */
  count(): { held: number; waiting: number };
  close(): Promise<void>;
}

/** Timeout for connecting to an upstream, including TLS, in milliseconds. */
const connectTimeout = 10_000;
/** Longest pause within a response body, in milliseconds. */
const longestPause = 300_000;
/**
 * The limit for all upstreams together is `perUpstream` times this number. The limit exists because the number of file
 * descriptors is limited.
 */
const fullUpstreams = 16;
/** Milliseconds without a request after which the connections to an upstream are closed. */
const longestIdle = 60_000;

const common = {
  headersTimeout: 0,
  pipelining: 1,
  allowH2: false,
  // Limits the time in milliseconds for which the header Keep-Alive of an upstream may keep an idle connection open.
  keepAliveMaxTimeout: 10_000,
} as const;

/** Creates the connections. Tests replace `lookups`. */
export function createConnections(limits: ConnectionLimits, lookups = upstreamLookups(limits)): Connections {
  const shared = new Map<string, SharedConnections>();
  const owned = new Set<Client>();
  const all = new FairQueue(queueOptions(limits, { times: fullUpstreams, waiting: 0 }));
  const drop = (connections: SharedConnections) => {
    shared.delete(connections.origin);
    connections.close();
  };
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const connections of shared.values())
      if (!connections.isInUse && now - connections.lastUsed > longestIdle) drop(connections);
  }, longestIdle / 2);
  sweep.unref();

  const at = (origin: string, tenant: string) => {
    let connections = shared.get(origin);
    if (!connections) {
      const surplus = surplusOf(shared.values(), tenant, limits);
      if (surplus) drop(surplus);
      connections = new SharedConnections({ origin, tenant, limits, all, lookups });
      shared.set(origin, connections);
    }
    return connections;
  };

  return {
    share: (origin, requester, waiter) => at(origin, requester.tenant).take(requester, waiter),
    own(origin, tenant) {
      const connect = at(origin, tenant).connectFor(tenant);
      const dispatcher = new Client(origin, { ...common, connect, bodyTimeout: 0 });
      owned.add(dispatcher);
      return {
        dispatcher,
        suspect: () => undefined,
        release() {
          if (owned.delete(dispatcher)) dispatcher.destroy().catch(() => undefined);
        },
      };
    },
    count() {
      let waiting = 0;
      for (const { queue } of shared.values()) waiting += queue.waiting;
      return { held: all.running, waiting };
    },
    async close() {
      clearInterval(sweep);
      const ending = [...shared.values(), ...owned].map((connections) => connections.destroy());
      shared.clear();
      owned.clear();
      await Promise.all(ending);
    },
  };
}

interface SharedOptions {
  origin: string;
  tenant: string;
  limits: ConnectionLimits;
  /** The slots for all upstreams together. */
  all: FairQueue;
  lookups: HostLookups;
}

class SharedConnections {
  readonly origin: string;
  readonly queue: FairQueue;
  /** The tenant of the latest request. The upstream's host is looked up for this tenant. */
  tenant: string;
  lastUsed = performance.now();
  readonly #connect: buildConnector.connector;
  readonly #limits: ConnectionLimits;
  readonly #all: FairQueue;
  /** Opened by the first request that gets a connection. */
  #pool: ReplaceablePool | undefined;

  constructor({ origin, tenant, limits, all, lookups }: SharedOptions) {
    const lookup = lookups.lookupFor(() => this.tenant);
    this.origin = origin;
    this.tenant = tenant;
    this.#connect = buildConnector({ timeout: connectTimeout, allowH2: false, lookup });
    this.#limits = limits;
    this.#all = all;
    this.queue = new FairQueue(queueOptions(limits, { times: 1, waiting: waitingPerConnection }));
  }

  get isInUse(): boolean {
    return this.queue.running + this.queue.waiting > 0;
  }

  /** Returns the function that opens connections for a request of the tenant. */
  connectFor(tenant: string): buildConnector.connector {
    this.tenant = tenant;
    return this.#connect;
  }

  async take(requester: Requester, waiter: Waiter): Promise<Lease> {
    const slot = this.queue.tryTake(requester);
    if (slot) return this.#lease(requester, slot);
    if (this.queue.running >= this.#limits.perUpstream)
      throw this.#refusal('pool', 'All connections to this upstream are in use.');
    return this.#lease(requester, await this.queue.take(requester, waiter.beginWait()));
  }

  /** Closes all connections, each after its response. */
  close(): void {
    this.#pool?.close().catch(() => undefined);
  }

  /** Closes all connections, and ends all requests. */
  async destroy(): Promise<void> {
    await this.#pool?.destroy();
  }

  #lease(requester: Requester, slot: ReleaseSlot): Lease {
    const slotOfAll = this.#all.tryTake(requester);
    if (!slotOfAll) {
      slot();
      throw this.#refusal('process', 'This person, tenant or service has too many requests to upstreams.');
    }
    this.tenant = requester.tenant;
    this.#pool ??= this.#open();
    return new SharedLease(this, this.#pool, slot, slotOfAll);
  }

  #open(): ReplaceablePool {
    const connections = this.#limits.perUpstream;
    const options = { ...common, connect: this.#connect, connections, bodyTimeout: longestPause };
    return new ReplaceablePool(() => new Pool(this.origin, options));
  }

  #refusal(reason: ConnectionRefusal, detail: string): Problem {
    return refusal(reason, detail, this.#limits);
  }
}

function upstreamLookups({ onRefused }: ConnectionLimits): HostLookups {
  const total = lookupShares.upstreams;
  const slots = { total, perTenant: Math.ceil(total / 3) };
  return new HostLookups({ slots, onRefused: () => onRefused('lookup') });
}

class SharedLease implements Lease {
  readonly #connections: SharedConnections;
  readonly #pool: ReplaceablePool;
  readonly #slot: ReleaseSlot;
  readonly #slotOfAll: ReleaseSlot;

  constructor(connections: SharedConnections, pool: ReplaceablePool, slot: ReleaseSlot, slotOfAll: ReleaseSlot) {
    this.#connections = connections;
    this.#pool = pool;
    this.#slot = slot;
    this.#slotOfAll = slotOfAll;
  }

  get dispatcher(): Dispatcher {
    return this.#pool.current;
  }

  suspect(): void {
    this.#pool.replace();
  }

  release(): void {
    this.#slot();
    this.#slotOfAll();
    this.#connections.lastUsed = performance.now();
  }
}
