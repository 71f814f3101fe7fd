// The connections to all platform services. A network that drops packets leaves connections open at both ends. If such a
// connection is idle, only the next call that uses it finds out, and waits until its time limit. So when a call has
// waited for a while, later calls to the same service use new connections.
import { type Dispatcher, Pool } from 'undici';

/** Largest response in bytes: enough for a page of registers of 1 MiB each. */
const responseLimit = 16 * 1_048_576;
/** Milliseconds without a response after which a service's other connections may be dead, too. */
const suspicious = 3_000;

export interface HttpAgentOptions {
  /** Largest response in bytes. */
  maxResponse?: number;
}

export class HttpAgent {
  readonly #options: Pool.Options;
  /** The pool for new calls, by origin. */
  readonly #pools = new Map<string, Pool>();
  /** Replaced pools whose last calls are not complete. */
  readonly #replaced = new Set<Pool>();

  constructor({ maxResponse = responseLimit }: HttpAgentOptions = {}) {
    this.#options = {
      connections: 64,
      connect: { timeout: 3_000 },
      // Callers set the timeout, because undici's timeouts cover only parts of an exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxResponseSize: maxResponse,
      allowH2: false,
      // A connection through a Kubernetes Service stays with one pod, so new pods get requests over new connections
      // only.
      clientTtl: 60_000,
    };
  }

  /** Sends a request, as undici's `request`. Throws its errors. */
  async request({
    origin,
    ...options
  }: Dispatcher.RequestOptions & { origin: string }): Promise<Dispatcher.ResponseData> {
    const pool = this.#pools.get(origin) ?? this.#open(origin);
    const timer = setTimeout(() => this.#replace(origin, pool), suspicious);
    try {
      return await pool.request(options);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends all calls. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#pools.values(), ...this.#replaced].map((pool) => pool.destroy()));
  }

  #open(origin: string): Pool {
    const pool = new Pool(origin, this.#options);
    this.#pools.set(origin, pool);
    return pool;
  }

  /** Closes idle connections now, and the others after their responses. */
  #replace(origin: string, pool: Pool): void {
    if (this.#pools.get(origin) !== pool) return;
    this.#pools.delete(origin);
    this.#replaced.add(pool);
    const forget = () => void this.#replaced.delete(pool);
    pool.close().then(forget, forget);
  }
}
