// Tests the complete form service: every route rejects invalid tokens, and the root, health and documentation routes
// work.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestForms, type TestForms } from '../../test/support/forms.ts';
import { call } from '../../test/support/platform.ts';
import { roomInWindow } from '../../test/support/rate-window.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms({ env: () => ({ ANONYMOUS_READ_LIMIT: '2', ANONYMOUS_READ_WINDOW: 'PT30S' }) });
});
afterAll(() => forms.close());

const id = '0197f3a2-7c1e-7b4d-9a55-3f0c8e2d6b11';
/** Every route that requires a bearer token, with a valid body. */
const routes: [method: string, path: string, body?: unknown][] = [
  ['POST', ''],
  ['GET', ''],
  ['GET', `/${id}`],
  ['POST', `/${id}`],
  ['DELETE', `/${id}`],
  ['GET', `/${id}/data`],
  ['GET', `/${id}/history`],
  ['PUT', `/${id}/data`],
];

interface OpenApi {
  openapi: string;
  paths: Record<string, Record<string, { security?: unknown; summary?: string; responses: Record<string, unknown> }>>;
}
const document = async () => (await call(`${forms.url}/openapi.json`)).body as OpenApi;

it('changes of registers record no event, unlike those of forms', async () => {
  const recorded = async () => (await forms.pool.query('SELECT count(*)::int AS n FROM outbox')).rows[0].n;
  const before = await recorded();
  const change = (method: string, path: string, body?: object) =>
    call(`${forms.url}/form/v1/registers${path}`, { method, token: forms.token('admin'), ...(body && { body }) });
  expect((await change('POST', '', { name: 'towns', description: 'Towns', entries: ['Banff'] })).status).toBe(201);
  expect((await change('PATCH', '/towns', { entries: ['Jasper'] })).status).toBe(200);
  expect((await change('DELETE', '/towns')).status).toBe(204);
  expect(await recorded()).toBe(before);
  await forms.draft();
  expect(await recorded()).toBeGreaterThan(before);
});

describe.each(routes)('%s /form/v1/forms%s', (method, path) => {
  const own = () => forms.platform.access.urns.service('form-service');
  const claims = (changes: object = {}) => ({
    aud: own(),
    resource_access: { [own()]: { roles: ['form-admin', 'intake-application'] } },
    ...changes,
  });

  it('returns 401 with WWW-Authenticate without a token', async () => {
    const response = await forms.ask(method, path);
    expect(response).toMatchObject({
      status: 401,
      body: { type: 'urn:formgate:problem:unauthenticated', errorMessage: expect.any(String) },
    });
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer error="/);
  });

  it('returns 401 for an expired token and one of another issuer, realm, audience, algorithm or signature', async () => {
    const { access } = forms.platform;
    const tokens = {
      issuer: await access.foreignToken(claims({ iss: 'https://elsewhere.example.org/auth/realms/demo' })),
      'realm of no tenant': await access.foreignToken(claims({ iss: access.issuer('nowhere') })),
      audience: await access.foreignToken(claims({ aud: 'urn:example:platform:other-service' })),
      'no audience': await access.foreignToken(claims({ aud: undefined })),
      HS256: await access.foreignToken(claims(), { key: 'hmac' }),
      'no signature': await access.foreignToken(claims(), { key: 'none' }),
      'unknown key': await access.foreignToken(claims(), { key: 'unknown' }),
      expired: await access.foreignToken(claims({ exp: Math.floor(Date.now() / 1000) - 60 })),
      'not yet': await access.foreignToken(claims({ nbf: Math.floor(Date.now() / 1000) + 86_400 })),
      nonsense: 'nonsense',
    };
    for (const [what, token] of Object.entries(tokens)) {
      const response = await forms.ask(method, path, { token });
      expect([what, response.status]).toEqual([what, 401]);
    }
  });

  it('returns 400 to a core user who names no tenant', async () => {
    const token = await forms.tokenWith({ realm: 'core', roles: ['form-admin'] });
    expect((await forms.ask(method, path, { token })).status).toBe(400);
  });
});

describe('reads without a token', () => {
  it('are limited by client address, as configured', async () => {
    const tenantId = encodeURIComponent(forms.platform.tenant.id);
    const read = () => call(`${forms.url}/form/v1/registers/nothing/entries?tenantId=${tenantId}`);
    await roomInWindow(30_000, 5_000);
    const responses = [await read(), await read(), await read()];
    expect(responses.map(({ status }) => status)).toEqual([401, 401, 429]);
    expect(responses[2]?.headers.get('ratelimit-policy')).toBe('2;w=30');
  });
});

describe('the OpenAPI document', () => {
  it('is 3.1, at /openapi.json and at /swagger/docs/v1, and has a page at /docs', async () => {
    expect((await document()).openapi).toMatch(/^3\.1/);
    expect((await call(`${forms.url}/swagger/docs/v1`)).body).toEqual(await document());
    expect((await call(`${forms.url}/docs`)).headers.get('content-type')).toContain('text/html');
  });

  it('has every form route, each with a summary, bearer authentication and its responses', async () => {
    const { paths } = await document();
    const found = Object.entries(paths)
      .filter(([path]) => path.startsWith('/form/v1/forms'))
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
      );
    expect(found.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      routes.map(([method, path]) => `${method.toLowerCase()} /form/v1/forms${path.replace(id, '{formId}')}`).sort(),
    );
    for (const { summary, security, responses } of found) {
      expect(summary).toBeTruthy();
      expect(security).toEqual([{ bearer: [] }]);
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['403', '502', '503']));
    }
  });
});

describe('the service’s own pages', () => {
  it('include GET /, with name, description and links', async () => {
    expect((await call(forms.url)).body).toEqual({
      name: 'Form service',
      description: expect.any(String),
      _links: {
        self: { href: expect.any(String) },
        health: { href: expect.stringMatching(/\/health$/) },
        api: { href: expect.stringMatching(/\/form\/v1$/) },
        docs: { href: expect.any(String) },
      },
    });
  });

  it('include GET /health, which returns 200 with booleans as the older platform does', async () => {
    const { status, body } = await call(`${forms.url}/health`);
    expect(status).toBe(200);
    expect(body).toEqual({ access: true, directory: true, tenant: true, configuration: true, event: true, db: true });
  });
});

describe('addresses', () => {
  it('that are unknown return 404, and known ones with another method 405 with Allow', async () => {
    expect((await forms.ask('GET', `/${id}/nothing`, { as: 'admin' })).status).toBe(404);
    const response = await forms.ask('PATCH', `/${id}`, { as: 'admin', body: {} });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, POST, DELETE, HEAD, OPTIONS');
  });
});
