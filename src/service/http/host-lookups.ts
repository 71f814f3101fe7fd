// Looks up the addresses of hosts whose name servers the operator does not control, such as upstreams of tenants. The
// system looks up names in a few threads of this process, and a lookup can neither be cancelled nor limited in time. If
// the name servers of one host do not respond, its lookups would therefore occupy all threads, and the process could
// connect to nothing. This module limits concurrent lookups in total and per tenant. Callers that need the same host
// share its lookup. Failures are remembered for 5 s; addresses are not cached, because they may change at any time.
import { type LookupAddress, type LookupAllOptions, lookup as systemLookup, TIMEOUT } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { LRUCache } from 'lru-cache';
import { FairQueue, type ReleaseSlot } from '../limits/fair-queue.ts';

type Addresses = LookupAddress[];
type Callback = (error: NodeJS.ErrnoException | null, addresses: Addresses) => void;

export interface HostLookupOptions {
  /** Maximum number of lookups that run at the same time: in total, and for one tenant. */
  slots: { total: number; perTenant: number };
  /** Called for each lookup that was refused because too many lookups were running. */
  onRefused?(): void;
  /** Looks up a host. By default, the system does. */
  lookup?(host: string, options: LookupAllOptions, callback: Callback): void;
}

/** Number of threads that libuv starts. The image sets 24; without a setting, libuv starts 4. */
const threads = Number(process.env.UV_THREADPOOL_SIZE) || 4;
/** Number of threads that run lookups. libuv keeps the others for files and cryptography. */
const lookupThreads = Math.floor((threads + 1) / 2);
const part = (divisor: number) => Math.max(1, Math.floor(lookupThreads / divisor));
/**
 * Numbers of concurrent lookups. The remaining quarter of the lookup threads is for hosts of the platform, including
 * databases. Lookups of these hosts are not limited.
 */
export const lookupShares = { upstreams: part(2), providers: part(4) };

/** Maximum duration of a lookup in milliseconds. The system repeats a lost query after 5 s. */
const longestLookup = 7_000;
/** Maximum milliseconds for which a lookup waits for a thread. */
const longestWait = 5_000;
/** Milliseconds for which a host whose lookup failed is not looked up again. */
const failureAge = 5_000;
/** Maximum number of hosts whose failure is remembered. */
const mostFailures = 1_000;

export class HostLookups {
  readonly #lookup: NonNullable<HostLookupOptions['lookup']>;
  readonly #queue: FairQueue;
  /** The running lookups by host. A lookup stays here until the system has ended it. */
  readonly #running = new Map<string, Promise<Addresses>>();
  /** Lookups that wait for a thread or run, by tenant and host. */
  readonly #wanted = new Map<string, Promise<Addresses>>();
  readonly #failures = new LRUCache<string, { error: Error; at: number }>({ max: mostFailures });

  constructor({ slots, onRefused, lookup = systemLookup }: HostLookupOptions) {
    this.#lookup = lookup;
    this.#queue = new FairQueue({
      slots: { ...slots, perMember: 1 },
      waiting: { total: 1_000, perTenant: 100, perMember: 1 },
      waitMs: longestWait,
      detail: 'Too many host names are being looked up. Try again.',
      retryAfterSeconds: 1,
      ...(onRefused && { onRefused }),
    });
  }

  /** Returns the option `lookup` for connections. `tenantOf` returns the tenant for which a host is looked up. */
  lookupFor(tenantOf: (host: string) => string): LookupFunction {
    // All connections pass the same options, so that lookups of the same host have the same result.
    return (host, options, callback) => {
      this.#find(host, { ...options, all: true }, tenantOf(host)).then(
        (addresses) => {
          if (options.all) callback(null, addresses);
          else callback(null, addresses[0]?.address ?? '', addresses[0]?.family);
        },
        (error) => callback(error, ''),
      );
    };
  }

  /** True if the latest lookup of the host has failed, or takes too long. */
  hasFailed(host: string): boolean {
    return this.#failures.has(host);
  }

  #find(host: string, options: LookupAllOptions, tenant: string): Promise<Addresses> {
    const known = this.#known(host);
    if (known) return known;
    // Each tenant waits in its own queue, even if another tenant waits for the same host: that wait may be longer.
    const key = `${tenant} ${host}`;
    const wanted = this.#wanted.get(key) ?? this.#want(host, options, tenant).finally(() => this.#wanted.delete(key));
    this.#wanted.set(key, wanted);
    return wanted;
  }

  /** Returns the running lookup of a host, or its remembered failure. */
  #known(host: string): Promise<Addresses> | undefined {
    const failure = this.#failures.get(host);
    const isRecent = failure !== undefined && performance.now() - failure.at < failureAge;
    return isRecent ? Promise.reject(failure.error) : this.#running.get(host);
  }

  async #want(host: string, options: LookupAllOptions, tenant: string): Promise<Addresses> {
    const release = await this.#queue.take({ tenant, member: host });
    const known = this.#known(host);
    if (!known) return this.#run(host, options, release);
    release();
    return known;
  }

  #run(host: string, options: LookupAllOptions, release: ReleaseSlot): Promise<Addresses> {
    const { promise, resolve, reject } = Promise.withResolvers<Addresses>();
    this.#running.set(host, promise);
    // A late lookup cannot be cancelled. It keeps its slot, and until it ends, lookups of its host fail immediately.
    const timer = setTimeout(() => fail(lateError(host)), longestLookup).unref();
    const fail = (error: Error) => {
      this.#failures.set(host, { error, at: performance.now() });
      reject(error);
    };
    this.#lookup(host, options, (error, addresses) => {
      clearTimeout(timer);
      release();
      this.#running.delete(host);
      if (error) return fail(error);
      this.#failures.delete(host);
      resolve(addresses);
    });
    return promise;
  }
}

/** True if a connection failed because its host could not be looked up. */
export function isLookupFailure(error: Error): boolean {
  return 'syscall' in error && error.syscall === 'getaddrinfo';
}

function lateError(hostname: string): Error {
  const error = new Error(`the lookup of ${hostname} took too long`);
  return Object.assign(error, { code: TIMEOUT, syscall: 'getaddrinfo', hostname });
}
