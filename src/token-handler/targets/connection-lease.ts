// Leases a connection to an upstream for one proxied request: waits for a connection, passes the request to undici, and
// releases the connection when undici is done. If the client aborts, the connection counts as used until undici has
// aborted the request, even during a TLS handshake. Otherwise, connections would count as free although aborted
// requests still fill the pool.
import type { Dispatcher } from 'undici';
import type { Lease, Waiter } from './connections.ts';
import type { Outgoing, ProxyOptions } from './proxy-options.ts';
import type { RequestWatch } from './request-watch.ts';

export class ConnectionLease implements Waiter {
  readonly #options: ProxyOptions;
  readonly #outgoing: Outgoing;
  readonly #watch: RequestWatch;
  #lease: Lease | undefined;
  #giveUp: AbortController | undefined;
  #isDispatched = false;
  #isClosed = false;

  constructor(options: ProxyOptions, outgoing: Outgoing, watch: RequestWatch) {
    this.#options = options;
    this.#outgoing = outgoing;
    this.#watch = watch;
  }

  /** Waits for a connection. Throws Problem `busy` or `too-many-requests`. */
  async take(): Promise<void> {
    const { isStream, origin, session } = this.#outgoing;
    const { connections } = this.#options;
    const { tenantId, user } = session.session;
    if (isStream) {
      this.#watch.openStream();
      this.#lease = connections.own(origin, tenantId);
      return;
    }
    this.#lease = await connections.share(origin, { tenant: tenantId, member: user.id }, this);
    if (this.#isClosed) this.#lease.release();
  }

  beginWait(): AbortSignal {
    this.#watch.session();
    this.#giveUp = new AbortController();
    return this.#giveUp.signal;
  }

  /** Passes the request to undici. undici calls `handler` until the request has completed or failed. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#isDispatched = true;
    this.#lease?.dispatcher.dispatch(request, handler);
  }

  /** Call this when the response takes long, so that later requests use new connections to this upstream. */
  suspect(): void {
    this.#lease?.suspect();
  }

  /** Call this when undici reports that the request has completed or failed. */
  onDone(): void {
    this.#isDispatched = false;
    if (this.#isClosed) this.#lease?.release();
  }

  /** Call this when the response to the client has ended, or when the client has left. */
  close(): void {
    this.#isClosed = true;
    this.#giveUp?.abort();
    if (!this.#isDispatched || this.#outgoing.isStream) this.#lease?.release();
  }
}
