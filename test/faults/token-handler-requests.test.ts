// Every bearer route of the token handler, as listed in its OpenAPI document, rejects invalid tokens, callers without
// the role, other tenants, and invalid bodies.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { malformedBodies } from '../support/malformed-bodies.ts';
import { type Answered, call, roleToken } from '../support/platform.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../support/token-handler.ts';

interface Operation {
  method: string;
  path: string;
  hasBody: boolean;
}

const limit = 131_072;
let handler: TestTokenHandler;
let operations: Operation[];
beforeAll(async () => {
  handler = await startTestTokenHandler({ env: { BODY_LIMIT: String(limit) } });
  await handler.configure({ web: {} });
  await handler.configure({ theirs: {} }, { tenant: handler.platform.otherTenant });
  await handler.register('web');
  const { body } = await call(`${handler.url}/openapi.json`);
  operations = bearerOperations(body as Document);
});
afterAll(() => handler.close());

interface Document {
  paths: Record<string, Record<string, { security?: Record<string, unknown>[]; requestBody?: unknown }>>;
}

function bearerOperations({ paths }: Document): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { security = [] }]) => security.some((requirement) => 'bearer' in requirement))
      .map(([method, { requestBody }]) => ({ method: method.toUpperCase(), path, hasBody: requestBody !== undefined })),
  );
}

const valid: Record<string, unknown> = { POST: { registrationToken: 'x' }, PUT: { redirectUris: [] } };

function ask({ method, path, hasBody }: Operation, token?: string, query = ''): Promise<Answered> {
  const url = `${handler.url}${path.replace('{clientId}', 'web').replace('{sessionId}', 'x')}${query}`;
  return call(url, { method, ...(token !== undefined && { token }), ...(hasBody && { body: valid[method] }) });
}

async function statuses(token?: string, query?: string): Promise<number[]> {
  const responses = await Promise.all(operations.map((operation) => ask(operation, token, query)));
  return [...new Set(responses.map(({ status }) => status))];
}

const audience = () => handler.platform.access.urns.service('token-handler');

it('the OpenAPI document lists the list, registration and update of clients, and the sessions', () => {
  expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
    'DELETE /token-handler/v1/sessions/{sessionId}',
    'GET /token-handler/v1/clients',
    'GET /token-handler/v1/clients/{clientId}',
    'GET /token-handler/v1/clients/{clientId}/leftovers',
    'GET /token-handler/v1/sessions',
    'POST /token-handler/v1/clients/{clientId}',
    'PUT /token-handler/v1/clients/{clientId}',
  ]);
});

describe('every route of the token handler that requires a bearer token', () => {
  it('responds with 401 to a token that is expired, or of another issuer, realm, audience or key', async () => {
    const { foreignToken } = handler.platform.access;
    const now = Math.floor(Date.now() / 1_000);
    const roles = { resource_access: { [audience()]: { roles: ['token-handler-admin'] } } };
    const own = { aud: audience(), ...roles };
    const tokens = [
      'nonsense',
      await foreignToken({ ...own, iss: 'https://evil.example/realms/demo' }),
      await foreignToken({ ...own, iss: handler.platform.access.issuer('other') }),
      await foreignToken({ ...roles, aud: handler.platform.access.urns.service('form-service') }),
      await foreignToken({ ...own, exp: now - 60 }),
      await foreignToken({ ...own, nbf: now + 60 }),
      await foreignToken(own, { key: 'unknown' }),
      await foreignToken(own, { key: 'none' }),
    ];
    for (const token of tokens) expect(await statuses(token)).toEqual([401]);
  });

  it('responds with 403 to callers without the role token-handler-admin, whatever their roles in other services', async () => {
    const roles = {
      'token-handler': [],
      'form-service': ['form-admin'],
      'configuration-service': ['configuration-admin'],
    };
    expect(await statuses(await roleToken(handler.platform.access, roles, { realm: 'demo' }))).toEqual([403]);
  });

  it('responds with 403 to an administrator who names another tenant, and with 400 to a core user who names no known tenant', async () => {
    const other = `?tenantId=${encodeURIComponent(handler.platform.otherTenant.id)}`;
    expect(await statuses(await handler.adminToken(), other)).toEqual([403]);
    const core = await roleToken(handler.platform.access, { 'token-handler': ['token-handler-admin'] });
    expect(await statuses(core)).toEqual([400]);
    expect(await statuses(core, '?tenantId=urn:example:platform:tenant-service:v2:/tenants/none')).toEqual([400]);
  });

  it('responds with 404 for clients of another tenant', async () => {
    const token = await handler.adminToken();
    for (const [method, body] of Object.entries(valid))
      expect((await handler.api('/clients/theirs', { method, token, body })).status).toBe(404);
  });
});

it('the token handler rejects malformed, oversized and wrong-typed bodies with 400, 413 or 415 and a pointer, and changes nothing', async () => {
  const token = await handler.adminToken();
  const before = await handler.rows('SELECT * FROM client_registrations');
  for (const method of ['POST', 'PUT'])
    for (const { kind, body, headers, status } of malformedBodies(limit)) {
      const response = await fetch(`${handler.url}/token-handler/v1/clients/web`, {
        method,
        body,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      });
      const problem = (await response.json()) as {
        errors?: { pointer: string }[];
        errorMessage: string;
        detail: string;
      };
      expect([method, kind, response.status]).toEqual([method, kind, status]);
      expect(problem.errors?.length, kind).toBeGreaterThan(0);
      expect(problem.errorMessage).toBe(problem.detail);
    }
  expect(await handler.rows('SELECT * FROM client_registrations')).toEqual(before);
  expect(handler.log.lines().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
});
