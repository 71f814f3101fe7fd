// Watches whether this process can use its identity provider. Requests the discovery document of the realm core every
// ten seconds, and two seconds after a failed request. Also reports whether the provider refuses the service's own
// account. Calls on behalf of users would not show an outage reliably: a call may fail because of a single realm,
// client or issuer of TENANT_ISSUERS. In a period without such calls, an outage or its end would go unnoticed.
import type http from 'node:http';
import { get as getByHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { get as getByHttp } from '../http/node-http.ts';
import type { Certificates } from '../operations/certificate-metrics.ts';
import type { DependencyState } from '../operations/dependency-state.ts';

/** Times in milliseconds. */
export interface WatchPace {
  interval: number;
  /** Time from a failed request to the next one. */
  retry: number;
  timeout: number;
}

/** The service's own account at the identity provider. */
export interface WatchedAccount {
  /** True if the identity provider rejected the credentials when a token was last requested. */
  readonly isRefused: boolean;
  /** Gets a token. Rejects if there is none. */
  authenticate(): Promise<void>;
}

export interface IdentityProviderWatchOptions {
  /** The value of ACCESS_SERVICE_URL. */
  accessUrl: string;
  /** Undefined if the process has no account. */
  account?: WatchedAccount | undefined;
  state: DependencyState;
  certificates: Certificates;
  pace?: Partial<WatchPace> | undefined;
}

const usualPace: WatchPace = { interval: 10_000, retry: 2_000, timeout: 5_000 };
/**
 * Number of consecutive failed requests after which the identity provider counts as unreachable. One failed request
 * is not enough, because the restart of one replica may cause it.
 */
const mostFailures = 2;

/**
 * Starts the watch. Returns a function that ends it. The first request follows after one interval, because the startup
 * check has already sent a request.
 */
export function watchIdentityProvider(options: IdentityProviderWatchOptions): () => void {
  const { accessUrl, account, state, certificates } = options;
  const pace = { ...usualPace, ...options.pace };
  const url = `${accessUrl}/realms/core/.well-known/openid-configuration`;
  const stopping = new AbortController();
  const { signal } = stopping;
  let failures = 0;

  async function look(): Promise<void> {
    try {
      const { status, certificate } = await request(url, pace.timeout, signal);
      certificates.recordServer('identity-provider', certificate);
      if (status !== 200) throw new UnexpectedStatus(status);
      failures = 0;
      if (await isRefused(account)) state.down('refused', {});
      else state.up();
    } catch (error) {
      failures += 1;
      if (signal.aborted || failures < mostFailures) return;
      state.down('unreachable', error instanceof UnexpectedStatus ? { status: error.status } : { err: error });
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await sleep(failures > 0 ? pace.retry : pace.interval, undefined, { signal, ref: false });
      await look();
    }
  }
  run().catch(() => undefined);
  return () => stopping.abort();
}

/**
 * True if the identity provider still refuses the account. Requests a token to find out, because the service itself may
 * request none.
 */
async function isRefused(account: WatchedAccount | undefined): Promise<boolean> {
  if (!account?.isRefused) return false;
  await account.authenticate().catch(() => undefined);
  return account.isRefused;
}

class UnexpectedStatus extends Error {
  override name = 'UnexpectedStatus';
  readonly status: number;

  constructor(status: number) {
    super(`the identity provider responded with ${status}`);
    this.status = status;
  }
}

interface Seen {
  status: number;
  certificate: { valid_to?: string } | undefined;
}

/**
 * Sends the request over a new connection, because an open connection does not show whether a new one can be opened.
 * Resolves as soon as the head of the response has arrived, and discards the body.
 */
function request(url: string, timeout: number, stop: AbortSignal): Promise<Seen> {
  const { promise, resolve, reject } = Promise.withResolvers<Seen>();
  const signal = AbortSignal.any([stop, AbortSignal.timeout(timeout)]);
  const get: typeof getByHttp = url.startsWith('https:') ? getByHttps : getByHttp;
  const onResponse = (response: http.IncomingMessage) => {
    const { socket, statusCode = 0 } = response;
    resolve({ status: statusCode, certificate: socket instanceof TLSSocket ? socket.getPeerCertificate() : undefined });
    response.destroy();
  };
  get(url, { agent: false, signal }, onResponse).on('error', reject);
  return promise;
}
