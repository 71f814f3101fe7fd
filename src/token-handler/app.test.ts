// Tests the token handler's route table, API documentation, health and metrics.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { tokenHandlerApiRoutes } from '../../test/rules/route-tables.ts';
import { accessibilityViolations, launchChromium } from '../../test/support/chromium.ts';
import { call, roleToken } from '../../test/support/platform.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../../test/support/token-handler.ts';
import { isGuarded, type Route } from '../service/http/http-app.ts';

let handler: TestTokenHandler;
beforeAll(async () => {
  handler = await startTestTokenHandler();
});
afterAll(() => handler.close());

interface Operation {
  summary?: string;
  parameters?: { in: string; name: string; required?: boolean; description?: string }[];
  responses: Record<string, unknown>;
}

interface OpenApi {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
}
const document = async () => (await call(`${handler.url}/openapi.json`)).body as OpenApi;

const root = '/token-handler/v1';
const routes = tokenHandlerApiRoutes();
const api = routes.filter(({ path }) => path.startsWith(root));

describe('the route table', () => {
  it('declares for every route who may call it', () => {
    expect(routes.length).toBeGreaterThan(8);
    expect(routes.filter((route) => !isGuarded(route)).map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  });

  it('has every route of the API under /token-handler as well, with the same guards', () => {
    const guards = ({ guards: list }: Route) => list.map(({ name }) => name);
    const expected = api.map((route) => [route.method, route.path.replace(root, '/token-handler'), guards(route)]);
    const unversioned = routes.filter(({ path }) => path.startsWith('/token-handler') && !path.startsWith(root));
    expect(unversioned.map((route) => [route.method, route.path, guards(route)])).toEqual(expected);
  });

  it('lets only token-handler-admins list, read, register and update clients', () => {
    const ofClients = api.filter(({ path }) =>
      [`${root}/clients`, `${root}/clients/:clientId`, `${root}/clients/:clientId/leftovers`].includes(path),
    );
    expect(ofClients.map(({ method }) => method)).toEqual(['get', 'get', 'post', 'put', 'get']);
    for (const { guards } of ofClients)
      expect(guards.map(({ name }) => name)).toEqual(['bearer', 'role(token-handler-admin)', 'tenant']);
  });

  it('responds with 401 to a request without credentials on every route that is not anonymous', async () => {
    const isOpen = ({ guards }: Route) => guards.some(({ name }) => name === 'anonymous');
    for (const { method, path, guards } of routes.filter((route) => !isOpen(route))) {
      const url = `${handler.url}${path.replace(/[:*]\w+/g, 'x')}`;
      const { status } = await call(url, { method: method === 'all' ? 'GET' : method.toUpperCase() });
      expect([method, path, guards.map(({ name }) => name), status].join(' ')).toMatch(/ 401$/);
    }
  });
});

describe('the API documentation', () => {
  it('describes every route of the API once, under its versioned path', async () => {
    const { openapi, paths } = await document();
    expect(openapi).toBe('3.1.0');
    const documented = (path: string) => path.replaceAll(/[:*](\w+)/g, '{$1}');
    const expected = new Set(api.map(({ path }) => documented(path)));
    expect(expected).toContain('/token-handler/v1/clients/{clientId}');
    const described = Object.keys(paths).filter((path) => path.startsWith('/token-handler'));
    expect(described.toSorted()).toEqual([...expected].toSorted());
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(['/', '/health']));
  });

  it('requires the tenant and the callbackUrl of a sign-in, and says which clients may omit them', async () => {
    const { paths } = await document();
    const auth = paths['/token-handler/v1/clients/{clientId}/auth']?.get;
    const required = auth?.parameters?.filter((one) => one.in === 'query' && one.required) ?? [];
    expect(required.map(({ name }) => name)).toEqual(['tenant', 'callbackUrl']);
    expect(required[0]?.description).toContain('tenant header');
    expect(required[1]?.description).toContain('authCallbackUrl');
  });

  it('is available at the address of the older platform, and as a page', async () => {
    expect((await call(`${handler.url}/swagger/docs/v1`)).body).toEqual(await document());
    expect((await call(`${handler.url}/docs`)).text).toContain('Token handler');
  });

  it('has a page that loads and has no accessibility violations', async () => {
    const browser = await launchChromium();
    onTestFinished(() => browser.close());
    for (const [colorScheme, width] of [['light', 1200] as const, ['dark', 360] as const]) {
      const viewport = { width, height: 800 };
      const page = await (await browser.newContext({ colorScheme, viewport, bypassCSP: true })).newPage();
      await page.goto(`${handler.url}/docs`);
      expect(await page.locator('main h3 code').allTextContents()).toContain(
        '/token-handler/v1/targets/{targetId}/{path}',
      );
      expect(await accessibilityViolations(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    }
  });
});

it('an unknown path is a 404, and an unsupported method a 405 with Allow, under both roots', async () => {
  for (const root of ['/token-handler/v1', '/token-handler']) {
    expect((await call(`${handler.url}${root}/nothing`)).status).toBe(404);
    const answer = await call(`${handler.url}${root}/clients/x`, { method: 'DELETE' });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toMatch(/POST, PUT/);
  }
});

it('GET /health shows whether each dependency works', async () => {
  expect((await call(`${handler.url}/health`)).body).toEqual({
    access: true,
    directory: true,
    tenant: true,
    configuration: true,
    event: true,
    db: true,
    sessions: true,
  });
});

it('the token handler registers its configuration definition, role and event at the platform when it starts', async () => {
  const { access, url } = handler.platform;
  const token = await roleToken(access, { 'configuration-service': ['configured-service'] });
  const document = async (name: string) =>
    (await call(`${url}/configuration/v2/configuration/platform/${name}/latest?core`, { token })).body;
  await expect
    .poll(() => document('configuration-service'))
    .toMatchObject({
      'platform:token-handler': { configurationSchema: { properties: { clients: expect.anything() } } },
    });
  await expect
    .poll(() => document('tenant-service'))
    .toMatchObject({
      [access.urns.service('token-handler')]: { roles: [{ role: 'token-handler-admin', inTenantAdmin: true }] },
    });
  await expect
    .poll(() => document('event-service'))
    .toMatchObject({
      'token-handler': {
        definitions: { 'client-registered': { payloadSchema: { required: ['client', 'registeredBy'] } } },
      },
    });
});

it('the token handler serves its liveness, readiness and metrics on the metrics port', async () => {
  expect((await fetch(`${handler.metricsUrl}/livez`)).status).toBe(200);
  await expect.poll(async () => (await fetch(`${handler.metricsUrl}/readyz`)).status).toBe(200);
  const metrics = await (await fetch(`${handler.metricsUrl}/metrics`)).text();
  expect(metrics).toContain('formgate_registration_leftovers{kind="deletion"} 0');
});
