import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';

let platform: TestPlatform;
let core: string;
let user: string;

const service = { 'tenant-service': ['platform-service'] };
const list = (query: Record<string, string> = {}, token?: string) =>
  call(`${platform.url}/api/tenant/v2/tenants?${new URLSearchParams(query)}`, { token });
const one = (id: string, token?: string) => call(`${platform.url}/api/tenant/v2/tenants/${id}`, { token });
const names = (body: unknown) => (body as { results: { name: string }[] }).results.map(({ name }) => name);

beforeAll(async () => {
  platform = await startTestPlatform();
  core = await roleToken(platform.access, service);
  user = await roleToken(platform.access, service, { realm: 'demo' });
});

afterAll(() => platform.close());

const demo = {
  id: 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6',
  name: 'Demo',
  realm: 'demo',
  status: 'active',
};

describe('the list of tenants', () => {
  it('contains all tenants for core, and a user’s own tenant for the user, without pages', async () => {
    expect((await list({}, core)).body).toEqual({
      results: [
        { ...demo, adminEmail: 'admin@example.com' },
        expect.objectContaining({ name: 'Other Town', adminEmail: 'admin@other.example.com' }),
      ],
      page: { size: 2 },
    });
    expect(names((await list({}, user)).body)).toEqual(['Demo']);
    expect(names((await list({ name: 'Other Town' }, user)).body)).toEqual([]);
  });

  it('requires a name or a realm of an anonymous caller (else 401), who gets no addresses', async () => {
    expect((await list()).status).toBe(401);
    expect((await list({ adminEmail: 'admin@example.com' })).status).toBe(401);
    expect((await list({ name: 'demo' })).body).toEqual({ results: [demo], page: { size: 1 } });
    expect((await list({ realm: 'demo' })).body).toEqual({ results: [demo], page: { size: 1 } });
  });

  it('does not tell an anonymous caller whether an address is that of a tenant’s administrator', async () => {
    for (const adminEmail of ['admin@example.com', 'other@example.com'])
      expect(names((await list({ name: 'demo', adminEmail })).body)).toEqual(['Demo']);
  });

  it('responds with 401 to an invalid token, which does not count as anonymous', async () => {
    const elsewhere = await roleToken(platform.access, { 'form-service': ['x'] });
    expect((await list({ name: 'demo' }, 'nonsense')).status).toBe(401);
    expect((await list({ name: 'demo' }, elsewhere)).status).toBe(401);
  });

  it('can be filtered by the whole name in any letter case, and by several filters together', async () => {
    expect(names((await list({ name: 'OTHER town' }, core)).body)).toEqual(['Other Town']);
    for (const name of ['Other', 'Other.Town', '%', 'other-town'])
      expect(names((await list({ name }, core)).body)).toEqual([]);
    expect(names((await list({ adminEmail: 'Admin@Example.com' }, core)).body)).toEqual(['Demo']);
    expect(names((await list({ name: 'demo', realm: 'other' }, core)).body)).toEqual([]);
  });

  it('name and realm have 1 to 50 characters', async () => {
    expect((await list({ name: 'x'.repeat(51) }, core)).status).toBe(400);
    expect((await list({ realm: '' }, core)).status).toBe(400);
  });
});

describe('a tenant by id', () => {
  it('is read by core and by its own users: 401 anonymous, 403 other tenant, 404 unknown, 400 malformed', async () => {
    const id = '65f0c2a9e4b0a1d2c3f4a5b6';
    expect((await one(id, core)).body).toEqual({ ...demo, adminEmail: 'admin@example.com' });
    expect((await one(id, user)).status).toBe(200);
    expect((await one(id)).status).toBe(401);
    expect((await one('65f0c2a9e4b0a1d2c3f4a5b7', user)).status).toBe(403);
    expect((await one('f'.repeat(24), user)).status).toBe(403);
    expect((await one('f'.repeat(24), core)).status).toBe(404);
    expect((await one('x', core)).status).toBe(400);
  });
});
