// Tests reads of a register's entries without a token: which registers can be read, how responses are cached, and how
// many reads a client address may make.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startFaultProxy } from '../../../test/support/fault-proxy.ts';
import { roleToken } from '../../../test/support/platform.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { type RegisterBackend, type Replica, startRegisterBackend } from '../../../test/support/registers.ts';

let backend: RegisterBackend;
let api: Replica;
let now = Date.now();
let query: string;

const home = ['platform', 'configuration-service'] as const;
const minutes = 60_000;

beforeAll(async () => {
  backend = await startRegisterBackend();
  api = await backend.start({ clock: () => new Date(now), trustedProxies: 1 });
  query = `?tenantId=${encodeURIComponent(backend.tenant.id)}`;
});

afterAll(() => backend.close());

async function create({ anonymousRead = true, entries = ['Banff', 'Canmore'] as unknown[] } = {}): Promise<string> {
  const name = backend.newName();
  const response = await api.request('POST', '', { body: { name, description: '', entries } });
  expect(response.status).toBe(201);
  if (anonymousRead) await open(name, true);
  return name;
}

/** Allows or forbids anonymous reads of a register in the configuration service, as an administrator does. */
async function open(name: string, anonymousRead: boolean): Promise<void> {
  const place = { tenantId: backend.tenant.id };
  await backend.configuration.update(...home, { [`data-register:${name}`]: { anonymousRead } }, place);
  await letSee();
}

/** Advances the clock beyond the lifetime of cached values, so that changes become visible. */
async function letSee(): Promise<void> {
  now += 6 * minutes;
}

const pathOf = (name: string, of = query) => `/${encodeURIComponent(name)}/entries${of}`;
const read = (name: string, headers: Record<string, string> = {}) =>
  api.request('GET', pathOf(name), { token: null, headers });

describe('GET /form/v1/registers/{name}/entries without a token', () => {
  it('200: only the entries, if anonymousRead is set on the definition', async () => {
    const name = await create({ entries: [{ label: 'Banff' }] });
    const response = await read(name);
    expect(response.status).toBe(200);
    expect(response.body).toEqual([{ label: 'Banff' }]);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  });

  it('200: the entries of the active revision, as forms use them', async () => {
    const name = await create();
    const place = { tenantId: backend.tenant.id };
    await backend.revisions.create('data-register', name, place);
    await backend.configuration.setActiveRevision('data-register', name, 0, place);
    await backend.configuration.replace('data-register', name, ['draft'], place);
    await letSee();
    expect((await read(name)).body).toEqual(['Banff', 'Canmore']);
  });

  it('401: the same response for a closed register, a missing register and a missing tenant', async () => {
    const closed = await create({ anonymousRead: false });
    const unknownTenant = `?tenantId=${encodeURIComponent('urn:example:platform:tenant-service:v2:/tenants/000000000000000000000000')}`;
    const paths = [
      pathOf(closed),
      pathOf(backend.newName()),
      pathOf(closed, unknownTenant),
      pathOf(closed, ''),
      pathOf(closed, '?tenantId=a&tenantId=b'),
    ];
    for (const path of paths) {
      const response = await api.request('GET', path, { token: null });
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.body).toMatchObject({ detail: 'The register is not open to callers without a token.' });
    }
  });

  it('401: a register of another tenant, by the name of an open one of this tenant', async () => {
    const name = await create();
    const other = `?tenantId=${encodeURIComponent(backend.otherTenant.id)}`;
    expect((await api.request('GET', pathOf(name, other), { token: null })).status).toBe(401);
  });

  it('401: an open definition without entries or without an array schema', async () => {
    const [first, second] = [await create(), await create()];
    const place = { tenantId: backend.tenant.id };
    await backend.configuration.remove('data-register', first, place);
    await backend.configuration.update(...home, { [`data-register:${second}`]: { configurationSchema: {} } }, place);
    await letSee();
    for (const name of [first, second]) expect((await read(name)).status).toBe(401);
  });

  it('no other register route works without a token, even if the register is open', async () => {
    const name = await create();
    for (const [method, path] of [
      ['GET', `/${encodeURIComponent(name)}`],
      ['GET', ''],
      ['DELETE', `/${encodeURIComponent(name)}`],
    ] as const)
      expect((await api.request(method, `${path}${query}`, { token: null })).status).toBe(401);
  });

  it('400: an invalid name', async () => {
    expect((await api.request('GET', `/a%3Ab/entries${query}`, { token: null })).status).toBe(400);
  });
});

describe('anonymousRead is checked no more than 5 minutes stale', () => {
  it('a register that is closed again is refused within 5 minutes, and within a minute if the configuration service responds', async () => {
    const name = await create();
    const close = () =>
      backend.configuration.update(
        ...home,
        { [`data-register:${name}`]: { anonymousRead: false } },
        { tenantId: backend.tenant.id },
      );
    expect((await read(name)).status).toBe(200);
    await close();
    now += 5 * minutes;
    expect((await read(name)).status).toBe(401);
    await open(name, true);
    expect((await read(name)).status).toBe(200);
    await close();
    now += minutes;
    // The first read after a minute may get the cached definition while the new one is being read.
    await expect.poll(async () => (await read(name)).status).toBe(401);
  });

  it('while the configuration service fails, the cached definition is used for less than 5 minutes, then 502', async () => {
    const { origin, pathname } = new URL(backend.configurationUrl);
    const proxy = await startFaultProxy(origin);
    onTestFinished(() => proxy.close());
    const replica = await backend.start({ configurationUrl: `${proxy.url}${pathname}`, clock: () => new Date(now) });
    const name = await create();
    const ask = () => replica.request('GET', pathOf(name), { token: null });
    expect((await ask()).status).toBe(200);
    await proxy.break('reset', { at: 1 });
    now += 5 * minutes - 1;
    expect((await ask()).status).toBe(200);
    now += 1;
    expect((await ask()).status).toBe(502);
  });

  it('reads of registers that are not open cause no further calls', async () => {
    const { origin, pathname } = new URL(backend.configurationUrl);
    const proxy = await startFaultProxy(origin);
    onTestFinished(() => proxy.close());
    const replica = await backend.start({ configurationUrl: `${proxy.url}${pathname}` });
    for (let index = 0; index < 20; index += 1)
      expect((await replica.request('GET', pathOf(`nothing ${index}`), { token: null })).status).toBe(401);
    expect(proxy.calls).toHaveLength(1);
  });

  it('an open definition that was left over does not open a new register of that name', async () => {
    const name = await create();
    await backend.configuration.remove('data-register', name, { tenantId: backend.tenant.id });
    const created = await api.request('POST', '', { body: { name, description: '', entries: ['secret'] } });
    expect(created.status).toBe(201);
    expect((await read(name)).status).toBe(401);
  });
});

describe('Caching of the response', () => {
  it('Cache-Control: max-age=60 and Vary: Accept, Authorization; the ETag is strong and changes with the content', async () => {
    const name = await create();
    const first = await read(name);
    expect(first.headers.get('cache-control')).toBe('max-age=60');
    expect(first.headers.get('vary')).toBe('Accept, Authorization');
    expect(first.headers.get('etag')).toMatch(/^"[\w-]{43}"$/);
    expect((await read(name)).headers.get('etag')).toBe(first.headers.get('etag'));
    await api.request('PATCH', `/${encodeURIComponent(name)}`, { body: { entries: ['Jasper'] } });
    const second = await read(name);
    expect(second.body).toEqual(['Jasper']);
    expect(second.headers.get('etag')).not.toBe(first.headers.get('etag'));
  });

  it('304 without a body for If-None-Match with the ETag, also among others, weak, or *', async () => {
    const name = await create();
    const etag = (await read(name)).headers.get('etag') ?? '';
    for (const match of [etag, `"x", ${etag}`, `W/${etag}`, '*']) {
      const response = await read(name, { 'if-none-match': match });
      expect(response.status).toBe(304);
      expect(response.text).toBe('');
      expect(response.headers.get('etag')).toBe(etag);
      expect(response.headers.get('cache-control')).toBe('max-age=60');
      expect(response.headers.get('vary')).toBe('Accept, Authorization');
    }
    expect((await read(name, { 'if-none-match': '"x"' })).status).toBe(200);
  });

  it('HEAD returns what GET does, without a body', async () => {
    const name = await create();
    const response = await api.request('HEAD', pathOf(name), { token: null });
    expect(response.status).toBe(200);
    expect(response.headers.get('etag')).toBe((await read(name)).headers.get('etag'));
    expect(response.text).toBe('');
  });
});

describe('GET /form/v1/registers/{name}/entries with a bearer', () => {
  it('200 with no-store for an administrator, open or not, without a cache; 404 if there is no register', async () => {
    const name = await create({ anonymousRead: false });
    const response = await api.request('GET', pathOf(name, ''));
    expect(response.status).toBe(200);
    expect(response.body).toEqual(['Banff', 'Canmore']);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('vary')).toBe('Accept, Authorization');
    await backend.configuration.replace('data-register', name, ['Jasper'], { tenantId: backend.tenant.id });
    expect((await api.request('GET', pathOf(name, ''))).body).toEqual(['Jasper']);
    expect((await api.request('GET', pathOf(backend.newName(), ''))).status).toBe(404);
  });

  it('a caller without a role reads only open registers, with no-store', async () => {
    const token = await roleToken(backend.access, { 'form-service': [] }, { realm: 'demo' });
    const open = await api.request('GET', pathOf(await create(), ''), { token });
    expect(open.status).toBe(200);
    expect(open.headers.get('cache-control')).toBe('no-store');
    const closed = await create({ anonymousRead: false });
    expect((await api.request('GET', pathOf(closed, ''), { token })).status).toBe(403);
  });

  it('401: an invalid bearer is not treated as a missing one', async () => {
    const name = await create();
    for (const authorization of ['Bearer rubbish', 'Basic YTpi', 'Bearer', ' '])
      expect((await read(name, { authorization })).status).toBe(401);
  });

  it('403: a caller who names another tenant', async () => {
    const name = await create();
    const other = `?tenantId=${encodeURIComponent(backend.otherTenant.id)}`;
    expect((await api.request('GET', pathOf(name, other))).status).toBe(403);
  });
});

describe('Rate limit by client address', () => {
  const from = (address: string) => ({ 'x-forwarded-for': address });

  it('every response has RateLimit headers of draft 7; beyond the limit 429 with Retry-After; other addresses are not affected', async () => {
    const replica = await backend.start({ anonymousReads: { reads: 3, seconds: 60 }, trustedProxies: 1 });
    const name = await create();
    const ask = (address: string) => replica.request('GET', pathOf(name), { token: null, headers: from(address) });
    await roomInWindow(60_000, 10_000);
    for (const remaining of [2, 1, 0]) {
      const response = await ask('203.0.113.7');
      expect(response.status).toBe(200);
      expect(response.headers.get('ratelimit-policy')).toBe('3;w=60');
      expect(response.headers.get('ratelimit')).toMatch(new RegExp(`^limit=3, remaining=${remaining}, reset=\\d+$`));
    }
    const refused = await ask('203.0.113.7');
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.headers.get('ratelimit')).toMatch(/^limit=3, remaining=0, reset=\d+$/);
    expect(refused.body).toMatchObject({ type: 'urn:formgate:problem:too-many-requests' });
    expect((await ask('203.0.113.8')).status).toBe(200);
    expect((await replica.request('GET', pathOf(name, ''), { headers: from('203.0.113.7') })).status).toBe(200);
  });

  it('refusals count too, and addresses of one IPv6 /64 count together', async () => {
    const replica = await backend.start({ anonymousReads: { reads: 2, seconds: 60 }, trustedProxies: 1 });
    const ask = (address: string) => replica.request('GET', pathOf('nothing'), { token: null, headers: from(address) });
    await roomInWindow(60_000, 10_000);
    const responses = [
      await ask('2001:db8::1'),
      await ask('2001:db8::2'),
      await ask('2001:db8::ffff:3'),
      await ask('2001:db8:0:1::1'),
    ];
    expect(responses.map(({ status }) => status)).toEqual([401, 401, 429, 401]);
  });

  it('addresses are not logged', async () => {
    await read(await create(), from('203.0.113.77'));
    expect(api.logText()).not.toContain('203.0.113.77');
  });
});
