// Tests how long a proxied request holds its connection, with real pools and an upstream that never responds.
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { Problem } from '../../service/http/problem.ts';
import { ConnectionLease } from './connection-lease.ts';
import { type Connections, createConnections } from './connections.ts';
import type { Outgoing, ProxyOptions } from './proxy-options.ts';
import type { RequestWatch } from './request-watch.ts';

let server: Server;
let origin: string;
let connections: Connections;
const sockets: Socket[] = [];
beforeAll(async () => {
  server = createServer((socket) => sockets.push(socket.on('error', () => undefined).resume()));
  origin = `http://127.0.0.1:${await listenOnLoopback(server)}`;
});
afterAll(() => void server.close());
beforeEach(() => {
  sockets.length = 0;
  // A tenant may hold ten of twenty connections. A person may hold eight, the minimum for every person.
  connections = createConnections({ perUpstream: 20, personShare: 10, tenantShare: 50, onRefused: () => undefined });
});
afterEach(() => connections.close());

interface Leasing {
  user?: string;
  tenantId?: string;
  isStream?: boolean;
  isRefused?: boolean;
}

const nothing = () => undefined;
const unconcerned: Dispatcher.DispatchHandler = {
  ...{ onRequestStart: nothing, onResponseStart: nothing, onResponseData: nothing, onResponseEnd: nothing },
  onResponseError: nothing,
};

/** Returns a lease for one request, and the list in which its request watch records each step. */
function leasing({ user = 'ada', tenantId = 'town', isStream = false, isRefused = false }: Leasing = {}) {
  const steps: string[] = [];
  const watch = {
    session: () => steps.push('session watched'),
    openStream() {
      steps.push('stream opened');
      if (isRefused) throw new Problem('too-many-requests');
    },
  } as unknown as RequestWatch;
  const outgoing = { origin, isStream, session: { session: { tenantId, user: { id: user } } } } as Outgoing;
  const lease = new ConnectionLease({ connections } as ProxyOptions, outgoing, watch);
  const dispatch = async () => {
    const connected = once(server, 'connection');
    lease.dispatch({ path: '/', method: 'GET' }, unconcerned);
    await connected;
  };
  return { lease, dispatch, steps };
}
const held = () => connections.count().held;

async function fill(count: number, options: Leasing = {}) {
  const all = Array.from({ length: count }, () => leasing(options).lease);
  await Promise.all(all.map((lease) => lease.take()));
  return all;
}

describe('the connection of a request', () => {
  it('is free again when the request ends before it was sent', async () => {
    const { lease, steps } = leasing();
    await lease.take();
    expect(held()).toBe(1);
    lease.close();
    expect([held(), steps]).toEqual([0, []]);
  });

  it('stays in use until undici is done with it, even after the client has left', async () => {
    const { lease, dispatch } = leasing();
    await lease.take();
    await dispatch();
    lease.close();
    expect(held()).toBe(1);
    lease.onDone();
    expect(held()).toBe(0);
  });

  it('stays in use after undici is done, until the client has received the whole response', async () => {
    const { lease, dispatch } = leasing();
    await lease.take();
    await dispatch();
    lease.onDone();
    expect(held()).toBe(1);
    lease.close();
    expect(held()).toBe(0);
  });

  it('stays in use if the request is sent again', async () => {
    const { lease, dispatch } = leasing();
    await lease.take();
    await dispatch();
    lease.onDone();
    await dispatch();
    lease.close();
    expect(held()).toBe(1);
    lease.onDone();
    expect(held()).toBe(0);
  });

  it('is free again if the client leaves while the connection is being assigned', async () => {
    const { lease } = leasing();
    const taking = lease.take();
    lease.close();
    await taking;
    expect(held()).toBe(0);
  });

  it('counts in the share of the person and of the tenant', async () => {
    await fill(8);
    const { lease } = leasing();
    const waiting = lease.take().catch(() => undefined);
    await fill(2, { user: 'grace' });
    const { lease: third } = leasing({ user: 'grace' });
    const alsoWaiting = third.take().catch(() => undefined);
    await fill(1, { user: 'grace', tenantId: 'other town' });
    expect(connections.count()).toEqual({ held: 11, waiting: 2 });
    lease.close();
    third.close();
    await Promise.all([waiting, alsoWaiting]);
  });
});

describe('a request that waits for a connection', () => {
  it('is watched for the end of its session', async () => {
    const [first] = await fill(8);
    const { lease, steps } = leasing();
    const waiting = lease.take();
    expect(steps).toEqual(['session watched']);
    first?.close();
    await waiting;
    expect(connections.count()).toEqual({ held: 8, waiting: 0 });
  });

  it('no longer waits once its client has left', async () => {
    await fill(8);
    const { lease } = leasing();
    const waiting = lease.take();
    lease.close();
    await expect(waiting).rejects.toThrow();
    expect(connections.count()).toEqual({ held: 8, waiting: 0 });
  });

  it('returns the connection if its client leaves at the moment when it gets one', async () => {
    const [first] = await fill(8);
    const { lease } = leasing();
    const waiting = lease.take();
    first?.close();
    lease.close();
    await waiting;
    expect(connections.count()).toEqual({ held: 7, waiting: 0 });
  });
});

describe('a stream', () => {
  it('has its own connection, which counts in no share and closes immediately when the stream ends', async () => {
    const { lease, dispatch, steps } = leasing({ isStream: true });
    await lease.take();
    await dispatch();
    expect([held(), steps]).toEqual([0, ['stream opened']]);
    const closed = once(sockets[0] as Socket, 'close');
    lease.close();
    await closed;
  });

  it('that is over a limit opens no connection', async () => {
    const { lease } = leasing({ isStream: true, isRefused: true });
    await expect(lease.take()).rejects.toMatchObject({ slug: 'too-many-requests' });
    lease.close();
    expect(held()).toBe(0);
  });
});
