// The connections to upstreams: shared ones for requests that are answered soon, one of its own for each stream. It limits
// how many requests of this process an upstream has at once, keeps nothing of upstreams that nobody asks for any more, and
// never retries.
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { Problem } from '../../service/problem.ts';

/** A way to an upstream; `release` when the exchange is over. */
export interface Lease {
  dispatcher: Dispatcher;
  release(): void;
}

export interface Connections {
  /** Throws Problem `unavailable` when too many requests to this origin wait already. */
  share(origin: string): Lease;
  /** A connection that nothing else waits for. */
  own(origin: string): Lease;
  close(): Promise<void>;
}

export interface ConnectionLimits {
  /** Connections to one origin that requests share. */
  perUpstream: number;
}

/** Milliseconds to connect, TLS included. */
const connectTimeout = 10_000;
/** Milliseconds without a byte in the middle of an answer. */
const longestPause = 300_000;
/** Requests that may wait, for each connection. */
const waitingPerConnection = 4;
/** Milliseconds after which connections to an unused origin are closed. */
const longestIdle = 60_000;

const common = { headersTimeout: 0, pipelining: 1, allowH2: false } as const;

export function createConnections({ perUpstream }: ConnectionLimits): Connections {
  const connect = buildConnector({ timeout: connectTimeout, allowH2: false });
  const shared = new Map<string, SharedConnections>();
  const owned = new Set<Client>();
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const [origin, connections] of shared)
      if (connections.isUnused(now)) {
        shared.delete(origin);
        connections.close().catch(() => undefined);
      }
  }, longestIdle / 2);
  sweep.unref();

  return {
    share(origin) {
      let connections = shared.get(origin);
      if (!connections) {
        const pool = new Pool(origin, { ...common, connect, connections: perUpstream, bodyTimeout: longestPause });
        connections = new SharedConnections(pool, perUpstream * (1 + waitingPerConnection));
        shared.set(origin, connections);
      }
      connections.take();
      return connections;
    },
    own(origin) {
      const dispatcher = new Client(origin, { ...common, connect, bodyTimeout: 0 });
      owned.add(dispatcher);
      return {
        dispatcher,
        release() {
          if (owned.delete(dispatcher)) dispatcher.destroy().catch(() => undefined);
        },
      };
    },
    async close() {
      clearInterval(sweep);
      const all = [...[...shared.values()].map((connections) => connections.dispatcher), ...owned];
      shared.clear();
      owned.clear();
      await Promise.all(all.map((dispatcher) => dispatcher.destroy()));
    },
  };
}

/** Is the lease itself: one for all of its requests. */
class SharedConnections implements Lease {
  readonly dispatcher: Pool;
  readonly #most: number;
  #running = 0;
  #lastUsed = 0;

  constructor(pool: Pool, most: number) {
    this.dispatcher = pool;
    this.#most = most;
  }

  take(): void {
    if (this.#running >= this.#most)
      throw new Problem('unavailable', 'Too many requests wait for this upstream.', {
        headers: { 'Retry-After': '1' },
      });
    this.#running += 1;
  }

  release(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#lastUsed = performance.now();
  }

  isUnused(now: number): boolean {
    return this.#running === 0 && now - this.#lastUsed > longestIdle;
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }
}
