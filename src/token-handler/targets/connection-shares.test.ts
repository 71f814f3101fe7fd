// Tests how people and tenants share the connections to upstreams, and when connections are closed. Uses a fake clock.
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Dispatcher } from 'undici';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import type { Problem } from '../../service/http/problem.ts';
import type { ConnectionLimits } from './connection-limits.ts';
import { createConnections, type Lease } from './connections.ts';

const origin = 'http://127.0.0.1:9';
beforeEach(() =>
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] }),
);
afterEach(() => vi.useRealTimers());

function start(limits: Partial<ConnectionLimits> = {}) {
  const refusals: string[] = [];
  const connections = createConnections({
    ...{ perUpstream: 20, personShare: 10, tenantShare: 100, ...limits },
    onRefused: (reason) => refusals.push(reason),
  });
  onTestFinished(() => connections.close());
  const giveUp = new AbortController();
  let waits = 0;
  const waiter = {
    beginWait() {
      waits += 1;
      return giveUp.signal;
    },
  };
  const take = (member = 'ada', tenant = 'town', at = origin) => connections.share(at, { tenant, member }, waiter);
  const hold = async (count: number, ...requester: string[]) => {
    const leases: Lease[] = [];
    for (let nth = 0; nth < count; nth += 1) leases.push(await take(...requester));
    return leases;
  };
  return { connections, refusals, take, hold, giveUp, waits: () => waits };
}

const problemOf = (taking: Promise<Lease>) =>
  taking.then(
    () => 'taken',
    ({ slug, headers }: Problem) => [slug, headers['Retry-After']],
  );
const busy = ['busy', '1'];
const nothing = () => undefined;
const unconcerned: Dispatcher.DispatchHandler = {
  ...{ onRequestStart: nothing, onResponseStart: nothing, onResponseData: nothing, onResponseEnd: nothing },
  onResponseError: nothing,
};
// undici's type definition of a dispatcher lacks the members `closed` and `destroyed`.
const isClosed = (lease: Lease | undefined) => (lease?.dispatcher as { closed?: boolean } | undefined)?.closed;
const isDestroyed = ({ dispatcher }: Lease) => (dispatcher as { destroyed?: boolean }).destroyed;

describe('the connections of one person', () => {
  it.each([
    [20, 10, 8],
    [80, 10, 8],
    [100, 9, 9],
    [105, 9, 9],
    [119, 8, 9],
  ])(
    'with a limit of %i for the upstream and a share of %i percent are at most %i',
    async (perUpstream, personShare, share) => {
      const { connections, hold, take } = start({ perUpstream, personShare });
      const [first] = await hold(share);
      const waiting = take();
      expect(connections.count()).toEqual({ held: share, waiting: 1 });
      await hold(1, 'grace');
      first?.release();
      await waiting;
      expect(connections.count()).toEqual({ held: share + 1, waiting: 0 });
    },
  );

  it('have a queue of four waiting requests each; a further request is refused immediately', async () => {
    const { connections, hold, take, refusals } = start();
    await hold(8);
    const waiting = Array.from({ length: 32 }, () => problemOf(take()));
    expect(connections.count()).toEqual({ held: 8, waiting: 32 });
    expect(await problemOf(take())).toEqual(busy);
    expect(refusals).toEqual(['queue-full']);
    vi.advanceTimersByTime(9_999);
    expect(refusals).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(await Promise.all(waiting)).toEqual(Array(32).fill(busy));
    expect(refusals.slice(1)).toEqual(Array(32).fill('queue-late'));
  });

  it('are no longer waited for once the client has left', async () => {
    const { connections, hold, take, giveUp, waits } = start();
    await hold(8);
    expect(waits()).toBe(0);
    const waiting = take();
    expect(waits()).toBe(1);
    giveUp.abort(new Error('the client left'));
    await expect(waiting).rejects.toThrow('the client left');
    expect(connections.count()).toEqual({ held: 8, waiting: 0 });
  });
});

describe('the connections of one tenant', () => {
  it.each([
    [10, 10, 1],
    [4, 10, 1],
    [15, 10, 1],
    [9, 50, 4],
  ])(
    'with a limit of %i for the upstream and a share of %i percent are at most %i, however many people use them',
    async (perUpstream, tenantShare, share) => {
      const { connections, hold, take, refusals } = start({ perUpstream, tenantShare });
      for (let nth = 0; nth < share; nth += 1) await hold(1, `person ${nth}`);
      const waiting = Array.from({ length: share * 4 }, (_, nth) => problemOf(take(`waiting ${nth}`)));
      expect(await problemOf(take('another'))).toEqual(busy);
      expect(refusals).toEqual(['queue-full']);
      await hold(1, 'grace', 'other town');
      expect(connections.count()).toEqual({ held: share + 1, waiting: share * 4 });
      vi.advanceTimersByTime(10_000);
      await Promise.all(waiting);
    },
  );
});

describe('the connections of one upstream', () => {
  it('are refused immediately while all of them are in use', async () => {
    const { connections, hold, take, refusals, waits } = start({ perUpstream: 2 });
    const [first] = await hold(2);
    expect(await problemOf(take('grace'))).toEqual(busy);
    expect([refusals, waits()]).toEqual([['pool'], 0]);
    await hold(1, 'ada', 'town', 'http://127.0.0.1:10');
    first?.release();
    first?.release();
    expect(connections.count().held).toBe(2);
    await hold(1, 'grace');
    expect(await problemOf(take('grace'))).toEqual(busy);
  });

  it('are limited for all upstreams together to sixteen times the limit of one', async () => {
    const { connections, take, refusals } = start({ perUpstream: 1, personShare: 100 });
    const leases: Lease[] = [];
    const at = (nth: number) => `http://127.0.0.1:${9 + nth}`;
    for (let nth = 0; nth < 16; nth += 1) leases.push(await take('ada', 'town', at(nth)));
    expect(connections.count().held).toBe(16);
    expect(await problemOf(take('grace', 'other town', at(16)))).toEqual(busy);
    expect(refusals).toEqual(['process']);
    // The refused request holds no connection to its upstream.
    leases[0]?.release();
    expect(await problemOf(take('grace', 'other town', at(16)))).toBe('taken');
  });
});

describe('the pool of an upstream', () => {
  it('is shared by requests to the same origin only', async () => {
    const { take } = start();
    const [one, same, other] = [await take(), await take('grace'), await take('ada', 'town', 'http://127.0.0.1:10')];
    expect(one.dispatcher).toBe(same.dispatcher);
    expect(one.dispatcher).not.toBe(other.dispatcher);
  });

  it('is closed once it was unused for more than a minute, counted from the last request', async () => {
    const { take } = start();
    const lease = await take();
    const earlier = await take('ada', 'town', 'http://127.0.0.1:10');
    vi.advanceTimersByTime(29_999);
    earlier.release();
    vi.advanceTimersByTime(1);
    lease.release();
    // The timer that closes unused pools runs every half minute.
    vi.advanceTimersByTime(60_000);
    expect([isClosed(earlier), isClosed(lease)]).toEqual([true, false]);
    vi.advanceTimersByTime(29_999);
    expect(isClosed(lease)).toBe(false);
    vi.advanceTimersByTime(1);
    expect(isClosed(lease)).toBe(true);
    expect((await take()).dispatcher).not.toBe(lease.dispatcher);
  });

  it('stays open while a request uses it, however many wait', async () => {
    const { hold, take } = start();
    const [first] = await hold(8);
    vi.advanceTimersByTime(119_000);
    const waiting = Array.from({ length: 8 }, () => problemOf(take()));
    vi.advanceTimersByTime(2_000);
    expect(isClosed(first)).toBe(false);
    vi.advanceTimersByTime(10_000);
    await Promise.all(waiting);
    expect(isClosed(first)).toBe(false);
  });
});

describe('connections to many upstreams', () => {
  const at = (nth: number) => `http://127.0.0.1:${1_000 + nth}`;

  it('are kept for 500 of a tenant and for 1,000 in total; the one unused for longest is closed', async () => {
    const { take } = start();
    const leases: Lease[] = [];
    const use = async (nth: number, tenant: string) => {
      const lease = await take('ada', tenant, at(nth));
      leases[nth] = lease;
      lease.release();
      vi.advanceTimersByTime(1);
    };
    const closed = () => leases.flatMap((lease, nth) => (isClosed(lease) ? [nth] : []));
    for (let nth = 0; nth < 500; nth += 1) await use(nth, 'town');
    await use(0, 'town');
    expect(closed()).toEqual([]);
    await use(500, 'town');
    expect(closed()).toEqual([1]);
    for (let nth = 501; nth < 1_001; nth += 1) await use(nth, nth % 2 ? 'village' : 'city');
    expect(closed()).toEqual([1]);
    await use(1_001, 'hamlet');
    expect(closed()).toEqual([1, 2]);
  });

  it('are refused to a tenant that uses 500 upstreams, but not to others', async () => {
    const { connections, hold, take, refusals } = start({ perUpstream: 256, personShare: 100 });
    for (let nth = 0; nth < 500; nth += 1) await hold(1, 'ada', 'town', at(nth));
    expect(() => take('ada', 'town', at(500))).toThrow(/too many upstreams/);
    expect(() => connections.own(at(500), 'town')).toThrow(/too many upstreams/);
    expect(refusals).toEqual(['process', 'process']);
    await hold(1, 'ada', 'town', at(499));
    await hold(1, 'ada', 'village', at(500));
  });
});

describe('connections to an upstream that responds late', () => {
  it('are replaced for later requests once in 3 s, and end with the requests that use them', async () => {
    const { connections, take } = start();
    const late = await take();
    const pools = [late.dispatcher];
    vi.advanceTimersByTime(2_999);
    late.suspect();
    expect(late.dispatcher).toBe(pools[0]);
    vi.advanceTimersByTime(1);
    late.suspect();
    late.suspect();
    const other = await take();
    pools.push(other.dispatcher);
    expect(pools[1]).not.toBe(pools[0]);
    // An earlier request that is sent again also uses the new connections.
    expect(late.dispatcher).toBe(pools[1]);
    expect(pools.map((pool) => (pool as { closed?: boolean }).closed)).toEqual([true, false]);
    await connections.close();
    expect(pools.map((pool) => (pool as { destroyed?: boolean }).destroyed)).toEqual([true, true]);
  });
});

describe('the connection of a stream', () => {
  it('is used by no other request, counts in no share, and is closed with the stream', async () => {
    const { connections, take } = start({ perUpstream: 1 });
    const [one, other] = [connections.own(origin, 'town'), connections.own(origin, 'town')];
    expect(one.dispatcher).not.toBe(other.dispatcher);
    expect(connections.count()).toEqual({ held: 0, waiting: 0 });
    expect(await problemOf(take())).toBe('taken');
    one.release();
    one.release();
    expect([isDestroyed(one), isDestroyed(other)]).toEqual([true, false]);
  });
});

it('all connections and the timer end with the process', async () => {
  const { connections, take } = start();
  const leases = [await take(), connections.own(origin, 'town')];
  await connections.close();
  expect(leases.map(isDestroyed)).toEqual([true, true]);
  expect(vi.getTimerCount()).toBe(0);
});

describe('an upstream', () => {
  it('cannot keep an idle connection open for longer than about 10 s', { timeout: 30_000 }, async () => {
    vi.useRealTimers();
    const { take } = start();
    const server = createServer();
    onTestFinished(() => void server.close());
    const lease = await take('ada', 'town', `http://127.0.0.1:${await listenOnLoopback(server)}`);
    lease.dispatcher.dispatch({ path: '/', method: 'GET' }, unconcerned);
    const [socket] = await once(server, 'connection');
    const closed = once(socket.on('error', nothing).resume(), 'close');
    socket.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 0\r\n\r\n');
    const began = performance.now();
    await closed;
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  it('is offered HTTP/1.1 only, because upgrades and trailers are proxied as HTTP/1.1', async () => {
    // Uses the real clock, because undici would otherwise keep a timer of the fake clock for later connections.
    vi.useRealTimers();
    const { connections, take } = start();
    const server = createServer();
    onTestFinished(() => void server.close());
    const url = `https://127.0.0.1:${await listenOnLoopback(server)}`;
    for (const lease of [await take('ada', 'town', url), connections.own(url, 'town')]) {
      lease.dispatcher.dispatch({ path: '/', method: 'GET' }, unconcerned);
      const [socket] = await once(server, 'connection');
      const [hello] = await once(socket, 'data');
      // The TLS ClientHello lists protocols (RFC 7301 section 3.1). There, a byte with the length precedes each name.
      expect(hello.includes('\x08http/1.1')).toBe(true);
      expect(hello.includes('\x02h2')).toBe(false);
      socket.destroy();
    }
  });
});
