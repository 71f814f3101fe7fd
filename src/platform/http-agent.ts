// Keeps connections to all platform services. If a service does not respond, later requests use new connections.
import type { LookupFunction } from 'node:net';
import { type Dispatcher, Pool } from 'undici';
import { ReplaceablePool } from '../service/replaceable-pool.ts';

/** Maximum size of a response in bytes. Enough for a page of registers of 1 MiB each. */
const responseLimit = 16 * 1_048_576;
/**
 * Milliseconds without a response after which the idle connections to a service are replaced, because they may be dead.
 */
const suspicious = 3_000;

export interface HttpAgentOptions {
  /** Maximum size of a response in bytes. */
  maxResponse?: number;
  /** Looks up host names. By default, the system does, without a limit. */
  lookup?: LookupFunction;
}

export class HttpAgent {
  readonly #options: Pool.Options;
  /** The connection pools by origin. */
  readonly #pools = new Map<string, ReplaceablePool>();

  constructor({ maxResponse = responseLimit, lookup }: HttpAgentOptions = {}) {
    this.#options = {
      connections: 64,
      connect: { timeout: 3_000, ...(lookup && { lookup }) },
      // Undici's own timeouts are off, because they cover only parts of an exchange. Callers set a timeout for the
      // whole exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxResponseSize: maxResponse,
      allowH2: false,
      // Through a Kubernetes Service, a connection always leads to the same pod. Only new connections can reach a new
      // pod.
      clientTtl: 60_000,
    };
  }

  /** Sends a request like undici's `request`. Throws the same errors. */
  async request(request: Dispatcher.RequestOptions & { origin: string }): Promise<Dispatcher.ResponseData> {
    const { origin, ...options } = request;
    const pool = this.#pools.get(origin) ?? this.#open(origin);
    const timer = setTimeout(() => pool.replace(), suspicious);
    try {
      return await pool.current.request(options);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Aborts all requests and closes all connections. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()));
  }

  #open(origin: string): ReplaceablePool {
    const pool = new ReplaceablePool(() => new Pool(origin, this.#options));
    this.#pools.set(origin, pool);
    return pool;
  }
}
