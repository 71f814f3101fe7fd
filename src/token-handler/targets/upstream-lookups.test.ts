// Tests the lookups of upstreams' hosts: a host whose name servers do not respond delays neither other tenants nor the
// service. The connections are real; only the system's name resolution is scripted.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Answer, createSystemLookups } from '../../../test/support/system-lookups.ts';
import { HostLookups, lookupShares } from '../../service/http/host-lookups.ts';
import { createConnections, type Lease } from './connections.ts';

let servers: Server[];
let port: number;
beforeAll(async () => {
  const listen = async (host: string, at: number) => {
    const server = createServer((_request, response) => response.end(host)).listen(at, host);
    await once(server, 'listening');
    return server;
  };
  const first = await listen('127.0.0.1', 0);
  ({ port } = first.address() as AddressInfo);
  servers = [first, await listen('127.0.0.2', port)];
});
afterAll(() => {
  for (const server of servers) server.close();
});
afterEach(() => vi.useRealTimers());

const waiter = { beginWait: () => new AbortController().signal };

const twoForUpstreams = { total: 2, perTenant: 1 };

/** Creates connections. The simulated system has one lookup thread more than upstreams may use. */
function start(answers: Record<string, Answer>, slots = { total: 1, perTenant: 1 }) {
  const refusals: string[] = [];
  const onRefused = (reason: string) => void refusals.push(reason);
  const system = createSystemLookups(slots.total + 1, answers);
  const lookups = new HostLookups({ slots, lookup: system.lookup, onRefused: () => onRefused('lookup') });
  const limits = { perUpstream: 100, personShare: 100, tenantShare: 100, onRefused };
  const connections = createConnections(limits, lookups);
  onTestFinished(async () => {
    system.endAll();
    await connections.close();
  });
  // Closes the connection, so that the next request looks up the host again.
  const read = async (lease: Lease) => {
    const request = { path: '/', method: 'GET', headers: { connection: 'close' } } as const;
    const { body } = await lease.dispatcher.request(request);
    return body.text().finally(() => lease.release());
  };
  const origin = (host: string) => `http://${host}:${port}`;
  return {
    ...{ system, connections, refusals },
    get: async (host: string, tenant: string) =>
      read(await connections.share(origin(host), { tenant, member: 'ada' }, waiter)),
    stream: async (host: string, tenant: string) => read(connections.own(origin(host), tenant)),
  };
}

const codeOf = (response: Promise<string>) => response.catch((error) => error.code ?? error.slug);

describe('an upstream whose name servers do not respond', () => {
  it('costs one thread, so that the service can look up its own hosts, however many requests it gets', async () => {
    const { get, stream, system } = start({ 'silent.example': 'silent', 'sign-in.example': '127.0.0.1' });
    const requests = Array.from({ length: 50 }, (_, nth) =>
      codeOf((nth % 2 === 0 ? get : stream)('silent.example', 'town')),
    );
    await expect.poll(() => system.running()).toBe(1);
    const own = Promise.withResolvers<unknown>();
    system.lookup('sign-in.example', {}, (_error, addresses) => own.resolve(addresses));
    expect(await own.promise).toEqual([{ address: '127.0.0.1', family: 4 }]);
    expect(system.asked).toEqual(['silent.example', 'sign-in.example']);
    system.endAll();
    expect(new Set(await Promise.all(requests))).toEqual(new Set(['ENOTFOUND']));
  });

  it('does not delay requests of other tenants to other hosts', async () => {
    const { get, system } = start(
      { 'silent.example': 'silent', 'mute.example': 'silent', 'well.example': '127.0.0.1' },
      twoForUpstreams,
    );
    const requests = Array.from({ length: 50 }, (_, nth) =>
      codeOf(get(nth % 2 === 0 ? 'silent.example' : 'mute.example', 'town')),
    );
    await expect.poll(() => system.running()).toBe(1);
    expect(await get('well.example', 'city')).toBe('127.0.0.1');
    system.endAll();
    await expect.poll(() => system.asked.length).toBe(3);
    system.endAll();
    await Promise.all(requests);
  });

  it('does not delay other tenants’ requests to a host for which its own tenant waits too', async () => {
    const { get, system } = start({ 'silent.example': 'silent', 'well.example': '127.0.0.1' }, twoForUpstreams);
    const requests = [codeOf(get('silent.example', 'hostile'))];
    await expect.poll(() => system.running()).toBe(1);
    // The hostile tenant has used up its share of lookups, so its second request waits.
    requests.push(codeOf(get('well.example', 'hostile')));
    await delay(0);
    expect(await get('well.example', 'city')).toBe('127.0.0.1');
    system.endAll();
    expect(await Promise.all(requests)).toEqual(['ENOTFOUND', '127.0.0.1']);
  });
});

describe('the hosts of one tenant', () => {
  it('wait in a limited queue for their lookup by the system; the refusals of further hosts are counted', async () => {
    const refusals: string[] = [];
    const limits = { perUpstream: 8, personShare: 100, tenantShare: 100 };
    const connections = createConnections({ ...limits, onRefused: (reason) => refusals.push(reason) });
    onTestFinished(() => connections.close());
    const requests = Array.from({ length: 110 }, async (_, nth) => {
      // A name whose first label has more than 63 characters. The system refuses it without asking a name server.
      const origin = `http://${'a'.repeat(64)}${nth}.example`;
      const lease = await connections.share(origin, { tenant: 'town', member: 'ada' }, waiter);
      return codeOf(lease.dispatcher.request({ path: '/', method: 'GET' }).then(({ body }) => body.text()));
    });
    const codes = await Promise.all(requests);
    const refused = 110 - 100 - Math.ceil(lookupShares.upstreams / 3);
    expect(codes.filter((code) => code === 'busy')).toHaveLength(refused);
    expect(refusals).toEqual(Array(refused).fill('lookup'));
  });
});

describe('an upstream', () => {
  it('whose lookup failed is not looked up again for five seconds', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const answers: Record<string, Answer> = {};
    const { get, system } = start(answers);
    for (let nth = 0; nth < 3; nth += 1) expect(await codeOf(get('new.example', 'town'))).toBe('ENOTFOUND');
    answers['new.example'] = '127.0.0.1';
    vi.advanceTimersByTime(4_999);
    expect(await codeOf(get('new.example', 'city'))).toBe('ENOTFOUND');
    expect(system.asked).toEqual(['new.example']);
    vi.advanceTimersByTime(1);
    expect(await get('new.example', 'town')).toBe('127.0.0.1');
  });

  it('that has moved to another address is called there by the next connection', async () => {
    const answers: Record<string, Answer> = { 'moves.example': '127.0.0.1' };
    const { get } = start(answers);
    expect(await get('moves.example', 'town')).toBe('127.0.0.1');
    answers['moves.example'] = '127.0.0.2';
    expect(await get('moves.example', 'town')).toBe('127.0.0.2');
  });

  it('is looked up by the system, which knows the hosts of /etc/hosts', async () => {
    const { connections } = start({});
    await connections.close();
    const system = createConnections({
      perUpstream: 8,
      personShare: 100,
      tenantShare: 100,
      onRefused: () => undefined,
    });
    onTestFinished(() => system.close());
    const lease = await system.share(`http://localhost:${port}`, { tenant: 'town', member: 'ada' }, waiter);
    const { body } = await lease.dispatcher.request({ path: '/', method: 'GET' });
    expect(await body.text()).toBe('127.0.0.1');
    lease.release();
  });
});
