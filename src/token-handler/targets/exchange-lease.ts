// The connection of one proxied request: waits for it, hands the request to undici, and gives it back when undici is done.
// A request that its client gave up keeps its place until undici has given it up too, even one that still waits for a TLS
// handshake: else aborted requests could use up a pool that counts as free.
import type { Dispatcher } from 'undici';
import type { Lease, Waiter } from './connections.ts';
import type { ExchangeWatch } from './exchange-watch.ts';
import type { Outgoing, RelayOptions } from './relay-options.ts';

export class ExchangeLease implements Waiter {
  readonly #options: RelayOptions;
  readonly #outgoing: Outgoing;
  readonly #watch: ExchangeWatch;
  #lease: Lease | undefined;
  #giveUp: AbortController | undefined;
  #isDispatched = false;
  #isClosed = false;

  constructor(options: RelayOptions, outgoing: Outgoing, watch: ExchangeWatch) {
    this.#options = options;
    this.#outgoing = outgoing;
    this.#watch = watch;
  }

  /** A promise only where the request has to wait. Throws, or rejects with, what it is refused with. */
  take(): Promise<void> | undefined {
    const { isStream, origin, session } = this.#outgoing;
    const { connections } = this.#options;
    if (isStream) {
      this.#watch.openStream();
      this.#lease = connections.own(origin);
      return undefined;
    }
    const { tenantId, user } = session.session;
    const lease = connections.share(origin, { tenant: tenantId, member: user.id }, this);
    if (lease instanceof Promise) return lease.then((granted) => this.#keep(granted));
    this.#lease = lease;
    return undefined;
  }

  beginWait(): AbortSignal {
    this.#watch.session();
    this.#giveUp = new AbortController();
    return this.#giveUp.signal;
  }

  #keep(lease: Lease): void {
    this.#lease = lease;
    if (this.#isClosed) lease.release();
  }

  /** undici then calls the handler until it is done with the request, whatever happens. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#isDispatched = true;
    this.#lease?.dispatcher.dispatch(request, handler);
  }

  /** undici is done with the request. */
  onDone(): void {
    this.#isDispatched = false;
    if (this.#isClosed) this.#lease?.release();
  }

  /** The request is over. */
  close(): void {
    this.#isClosed = true;
    this.#giveUp?.abort();
    if (!this.#isDispatched || this.#outgoing.isStream) this.#lease?.release();
  }
}
