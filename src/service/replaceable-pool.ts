// Keeps the connections to one origin, and can replace them. If a network drops packets, connections stay open at both
// ends. The next request over such an idle connection would wait until it times out. When a response takes long, later
// requests therefore use new connections (decision 0081).
import type { Pool } from 'undici';

/** Minimum time between replacements, in milliseconds. It limits replacements if the server is reachable but slow. */
const shortestLife = 3_000;

export class ReplaceablePool {
  readonly #open: () => Pool;
  /** Replaced pools that still have unfinished requests. */
  readonly #replaced = new Set<Pool>();
  #current: Pool;
  #openedAt = performance.now();

  constructor(open: () => Pool) {
    this.#open = open;
    this.#current = open();
  }

  /** The pool for the next request. */
  get current(): Pool {
    return this.#current;
  }

  /**
   * Call this method when a response takes long. Later requests then use new connections. Closes idle old connections
   * now, and busy old connections after their responses.
   */
  replace(): void {
    const now = performance.now();
    if (now - this.#openedAt < shortestLife) return;
    const old = this.#current;
    this.#current = this.#open();
    this.#openedAt = now;
    this.#replaced.add(old);
    const forget = () => void this.#replaced.delete(old);
    old.close().then(forget, forget);
  }

  /** Closes all connections, each after its response. */
  close(): Promise<void> {
    return this.#current.close();
  }

  /** Closes all connections, and ends all requests. */
  async destroy(): Promise<void> {
    await Promise.all([this.#current, ...this.#replaced].map((pool) => pool.destroy()));
  }
}
