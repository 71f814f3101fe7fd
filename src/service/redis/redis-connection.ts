// Connects to Redis: to a single server, a Sentinel group or a Cluster. Opens and reopens the connection in the
// background, and pings Redis over it. While Redis is disconnected, commands fail instead of being queued.
import { setTimeout as sleep } from 'node:timers/promises';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import {
  type BasicPooledClientSideCache,
  ClientOfflineError,
  createCluster,
  createSentinel,
  type RedisClientOptions,
  type RedisFunctions,
  type RedisModules,
  type RedisScripts,
  type RespVersions,
} from '@redis/client';
import type { DependencyStatus } from '../operations/dependency-state.ts';
import { retryDelay } from '../retry.ts';
import { createClusterClient } from './redis-cluster-client.ts';
import type { RedisSettings } from './redis-fields.ts';
import { type ClientKind, type RawClient, ServerClient } from './redis-server-client.ts';

/**
 * Milliseconds without traffic after which a connection is closed. Also the timeout of a connection attempt and of a
 * ping.
 */
const socketTimeout = 2_500;
const pingInterval = 1_000;

type CommonOptions = Pick<
  RedisClientOptions<RedisModules, RedisFunctions, RedisScripts, RespVersions>,
  'RESP' | 'username' | 'password' | 'pingInterval' | 'disableOfflineQueue' | 'maintNotifications'
>;

/**
 * Creates a client of Redis. `onCertificate` gets the certificate of each server to which a TLS connection is opened.
 * Pass `tracking` for a connection that reads tracked keys, which needs Redis 6.
 */
export function createRawClient(
  settings: RedisSettings,
  onCertificate: (certificate: PeerCertificate) => void,
  tracking?: BasicPooledClientSideCache,
): ClientKind {
  const { topology } = settings;
  const RESP: RespVersions = tracking ? 3 : 2;
  const common: CommonOptions = {
    RESP,
    ...credentials(settings.username, settings.password),
    pingInterval,
    disableOfflineQueue: true,
    maintNotifications: 'disabled',
  };
  const socket = {
    ...tlsOptions(settings, onCertificate),
    socketTimeout,
    connectTimeout: socketTimeout,
    reconnectStrategy,
  };
  const cache = tracking ? { clientSideCache: tracking } : {};
  if (topology.kind === 'server') {
    const client = new ServerClient({ ...common, ...cache, url: topology.url, socket });
    return { client, ping: () => client.checkPrimary(), send: (args) => client.sendCommand(args) };
  }
  if (topology.kind === 'sentinel') {
    const client = createSentinel({
      RESP,
      ...cache,
      name: topology.name,
      sentinelRootNodes: topology.nodes,
      nodeClientOptions: { ...common, socket },
      sentinelClientOptions: {
        ...common,
        ...credentials(settings.sentinelUsername, settings.sentinelPassword),
        socket,
      },
      scanInterval: 1_000,
      passthroughClientErrorEvents: true,
    });
    return {
      client: client as unknown as RawClient,
      ping: () => client.ping(),
      send: (args) => client.sendCommand(false, args),
    };
  }
  return createClusterClient({
    nodes: topology.nodes,
    create: (nodes) =>
      createCluster({
        RESP,
        ...cache,
        rootNodes: nodes.map((node) => ({ socket: { ...socket, ...node } })),
        defaults: { ...common, socket },
      }),
  });
}

function credentials(username: string | undefined, password: string | undefined) {
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
}

function tlsOptions({ tls }: RedisSettings, onCertificate: (certificate: PeerCertificate) => void) {
  if (!tls) return {};
  return {
    ...{ tls: true as const, ...tls },
    // node-redis gives no access to its sockets. Node calls this function with each certificate that a trusted
    // authority has signed.
    checkServerIdentity(host: string, certificate: PeerCertificate) {
      onCertificate(certificate);
      return checkServerIdentity(host, certificate);
    },
  };
}

/** Returns the milliseconds until the next attempt to connect. Never gives up. */
function reconnectStrategy(retries: number): number {
  return retryDelay(retries + 1, { first: 100, cap: 1_000 });
}

export interface ConnectionWatch {
  /** True if Redis responded to the last ping in time. */
  readonly isUp: boolean;
  /** The time, by `performance.now()`, at which the last ping with a response was sent. */
  readonly lastResponse: number;
  close(): void;
}

/** True if Redis refuses the credentials, or a command that the user may not run (NOPERM). */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^(?:WRONGPASS|NOAUTH|NOPERM|ERR (?:invalid password|AUTH ))/.test(error.message);
}

/**
 * Calls `onChange` whenever the connection comes up or goes down, and when the first attempt to connect fails. Also
 * calls `onChange` if Redis refuses the credentials of a connection that is already down.
 */
export function watchConnection(
  { client, ping }: ClientKind,
  onChange: (state: DependencyStatus, error?: unknown) => void,
): ConnectionWatch {
  let state: DependencyStatus | undefined;
  let isClosed = false;
  let lastResponse = Number.NEGATIVE_INFINITY;
  let lastError: unknown;
  const set = (isUp: boolean, error?: unknown) => {
    const next = isUp ? 'up' : isRefusal(error) ? 'refused' : 'unreachable';
    // `refused` does not become `unreachable`, because the errors of a Cluster's nodes may alternate between the two.
    if (isClosed || state === next || (state === 'refused' && next === 'unreachable')) return;
    state = next;
    onChange(next, error);
  };
  // A client that reconnects by itself reports its failed attempts only through this event. The pings detect the loss
  // of an established connection.
  client.on('error', (error: unknown) => {
    lastError = error;
    if (state !== 'up') set(false, error);
  });
  const check = async () => {
    const asked = performance.now();
    const late = setTimeout(() => set(false, new Error(`no response in ${socketTimeout} ms`)), socketTimeout);
    try {
      await ping();
      lastResponse = asked;
      lastError = undefined;
      set(true);
    } catch (error) {
      // The ping was not sent. Only the event tells why the connection is broken.
      if (error instanceof ClientOfflineError) error.cause = lastError;
      set(false, error);
    } finally {
      clearTimeout(late);
    }
  };
  const run = async () => {
    await connect(
      client,
      () => isClosed,
      (error) => set(false, error),
    );
    while (!isClosed) {
      const pause = sleep(pingInterval, undefined, { ref: false });
      const checked = check();
      await Promise.race([pause, checked]);
      // While Redis is up, a ping starts every interval, even if earlier pings have no response yet. If Redis is slow,
      // the age of `lastResponse` therefore exceeds its response time by at most one interval.
      if (state === 'up') await pause;
      if (state === 'up') continue;
      // While Redis is down, only one ping runs: a second one would count as traffic and keep a dead socket open.
      await checked;
      await sleep(pingInterval / 4, undefined, { ref: false });
    }
  };
  run().catch(() => undefined);
  return {
    get isUp() {
      return state === 'up';
    },
    get lastResponse() {
      return lastResponse;
    },
    close() {
      isClosed = true;
      state = undefined;
      client.destroy();
    },
  };
}

/**
 * Connects, and retries until a connection is open. The client of a single server retries on its own; the other clients
 * fail if no node responds.
 */
async function connect(client: RawClient, isClosed: () => boolean, onFailure: (error: unknown) => void): Promise<void> {
  while (!isClosed()) {
    try {
      await client.connect();
      return;
    } catch (error) {
      onFailure(error);
      await sleep(pingInterval / 2, undefined, { ref: false });
    }
  }
}
