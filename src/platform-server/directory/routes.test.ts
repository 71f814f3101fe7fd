import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';

let platform: TestPlatform;
const get = (path: string) => call(`${platform.url}/directory/v2/namespaces/${path}`);

beforeAll(async () => {
  platform = await startTestPlatform();
});

afterAll(() => platform.close());

describe('the directory', () => {
  it('lists the entries of the namespace platform to everybody, with APIs as service:api', async () => {
    const { status, body } = await get('platform/entries');
    expect(status).toBe(200);
    expect(body).toContainEqual({
      namespace: 'platform',
      service: 'event-service:v1',
      url: `${platform.url}/event/v1`,
      urn: 'urn:example:platform:event-service:v1',
    });
  });

  it('returns [] for a tenant without entries, whose name may have hyphens for spaces, and 404 for a namespace that names no tenant', async () => {
    expect((await get('demo/entries')).body).toEqual([]);
    expect((await get('other-town/entries')).body).toEqual([]);
    expect((await get('nobody/entries')).status).toBe(404);
  });

  it('returns the entry of an API, or 404 if there is none', async () => {
    expect((await get('platform/services/event-service/apis/v1')).body).toMatchObject({
      url: `${platform.url}/event/v1`,
    });
    expect((await get('platform/services/event-service/apis/v9')).status).toBe(404);
  });

  it('rejects malformed names with 400, and writes with 405', async () => {
    for (const name of ['a:b', 'x'.repeat(51), 'a b', '..%2fx'])
      expect((await get(`${encodeURIComponent(name)}/entries`)).status).toBe(400);
    const write = await call(`${platform.url}/directory/v2/namespaces/platform/entries`, { method: 'POST', body: {} });
    expect([write.status, write.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });
});
