// Every route of the form service, as listed in its OpenAPI document, rejects invalid tokens, callers without a role,
// forms of another tenant, and invalid bodies.
import { randomUUID } from 'node:crypto';
import { exportSPKI, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { draft, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { permit } from '../support/forms.ts';
import { forbiddenValues, malformedBodies } from '../support/malformed-bodies.ts';
import { type Answered, call, roleToken } from '../support/platform.ts';

interface Operation {
  /** Method and path, as in the OpenAPI document: `PUT /form/v1/forms/{formId}/data`. */
  name: string;
  method: string;
  path: string;
  hasBearer: boolean;
  hasBody: boolean;
  /** True if the route takes a JSON body. */
  hasJson: boolean;
}

let world: FormWorld;
let forms: FormReplica;
let operations: Operation[];
/** The id of a draft and the name of a register, both of the tenant demo. */
let formId: string;
const register = 'countries';
beforeAll(async () => {
  world = await startFormWorld();
  forms = await world.start();
  formId = await draft(forms);
  const body = { name: register, description: 'Countries', entries: ['Canada'] };
  expect((await ask('POST', '/form/v1/registers', await adminOf('demo'), body)).status).toBe(201);
  operations = await readTable();
});
afterAll(() => world.close());

async function readTable(): Promise<Operation[]> {
  const { body } = await call(`${forms.url}/openapi.json`);
  type Described = { security?: unknown; requestBody?: { content: object } };
  const { paths } = body as { paths: Record<string, Record<string, Described>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security, requestBody }]) => ({
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      hasBearer: security !== undefined,
      hasBody: requestBody !== undefined,
      hasJson: requestBody !== undefined && 'application/json' in requestBody.content,
    })),
  );
}

/** Valid bodies. A test adds one fault, so only this fault can be the reason for a rejection. */
const validBodies: Record<string, unknown> = {
  'POST /form/v1/forms': { definitionId: permit.id },
  'POST /form/v1/forms/{formId}': { operation: 'submit' },
  'PUT /form/v1/forms/{formId}/data': { data: { name: 'Ana' }, files: {} },
  'POST /form/v1/registers': { name: 'colours', description: 'Colours', entries: ['red'] },
  'PATCH /form/v1/registers/{name}': { description: 'Changed' },
  'PUT /form/v1/registers/{name}/active-revision': { revision: 0 },
  'PUT /form/v1/registers/{name}/entries/{key}': '"Canada"',
  'PUT /form/v1/registers/{name}/entries': '"Canada"',
  'POST /form/v1/registers/{name}/entries': 'value\nCanada\n',
  'POST /form/v1/definitions/check': { ...permit },
  'POST /form/v1/quarantine/{itemId}': { operation: 'release' },
};

const ask = (method: string, path: string, token?: string, body?: unknown, headers?: Record<string, string>) =>
  call(`${forms.url}${path}`, { method, token, body, ...(headers && { headers }) });

function perform({ name, method, path }: Operation, token?: string, query = ''): Promise<Answered> {
  const target = targetOf(path);
  const address = `${target}${target.includes('?') ? query.replace('?', '&') : query}`;
  return ask(method, address, token, validBodies[name], typeOf(name));
}

/** Returns the path with ids for its parameters, and with the key of an entry if a method of the path needs one. */
function targetOf(path: string): string {
  const ids = { formId, itemId: formId, definitionId: permit.id, name: register, key: 'Canada', revision: '0' };
  const target = Object.entries(ids).reduce((given, [name, id]) => given.replace(`{${name}}`, id), path);
  return path.endsWith('/entries') ? `${target}?key=${ids.key}` : target;
}

function typeOf(name: string): Record<string, string> | undefined {
  const isText = operations.some((one) => one.name === name && one.hasBody && !one.hasJson);
  return isText ? { 'content-type': 'text/csv' } : undefined;
}

const guarded = () => operations.filter(({ hasBearer }) => hasBearer);
const ofForms = () => guarded().filter(({ path }) => path.includes('{formId}'));
/**
 * Returns the routes of one register. Omits the search for references, which searches the caller's tenant even if the
 * register does not exist.
 */
const ofRegisters = () => guarded().filter(({ path }) => path.includes('{name}') && !path.endsWith('/references'));
const ownRoles = { 'form-service': ['form-admin'] };
const realmRoles = ['applicant', 'clerk', 'assessor'];
const adminOf = (realm: string) => roleToken(world.platform.access, ownRoles, { realm, realmRoles });

/** Checks that the draft and the register have not changed, and that no others were created. */
async function expectUntouched(): Promise<void> {
  const { rows } = await world.pool.query('SELECT id, status, revision, data::text FROM forms');
  expect(rows).toEqual([{ id: formId, status: 'Draft', revision: '1', data: '{}' }]);
  const { body } = await ask('GET', '/form/v1/registers', await adminOf('demo'));
  expect(body).toMatchObject({ results: [{ name: register, description: 'Countries', entries: ['Canada'] }] });
}

describe('the API', () => {
  it('requires a bearer token on every route, except for the two that describe the service', () => {
    expect(operations.filter(({ hasBearer }) => !hasBearer).map(({ name }) => name)).toEqual(['GET /', 'GET /health']);
    expect(guarded().length).toBeGreaterThanOrEqual(13);
    const withBody = operations.filter(({ hasBody }) => hasBody).map(({ name }) => name);
    expect(withBody.sort()).toEqual(Object.keys(validBodies).sort());
  });
});

describe('every route that requires a bearer token', () => {
  it('responds with 401 to a request without a token, or with another scheme', async () => {
    for (const operation of guarded()) {
      expectRefusal(await perform(operation), 401, operation.name);
      for (const authorization of ['', 'Bearer', 'Bearer ', 'Basic YWRtaW46YWRtaW4=', 'Bearer a b', 'Bearer null']) {
        const { name, method, path } = operation;
        const headers = { ...typeOf(name), authorization };
        const response = await ask(method, targetOf(path), undefined, validBodies[name], headers);
        expectRefusal(response, 401, `${name} ${authorization}`);
      }
    }
    await expectUntouched();
  });

  it('responds with 401 to a token that is expired, or of another issuer, realm, audience, key or algorithm', async () => {
    const tokens = await wrongTokens();
    expect(Object.keys(tokens).length).toBeGreaterThanOrEqual(16);
    for (const operation of guarded())
      for (const [what, token] of Object.entries(tokens)) {
        const response = await perform(operation, token);
        expectRefusal(response, 401, `${operation.name}: ${what}`);
        expect(response.headers.get('www-authenticate')).toMatch(/^Bearer error="invalid_token"/);
      }
    await expectUntouched();
  });

  it('responds with 403 to a token without a role, or with the same roles for another service', async () => {
    const { access } = world.platform;
    const own = access.urns.service('form-service');
    const audience = [own];
    const others = { 'other-service': ownRoles['form-service'], 'configuration-service': ['configuration-reader'] };
    const tokens = [
      await roleToken(access, {}, { realm: 'demo', audience }),
      await roleToken(access, others, { realm: 'demo', audience }),
      await roleToken(access, { 'form-service': ['form-adminx', 'FORM-ADMIN'] }, { realm: 'demo' }),
    ];
    for (const operation of guarded())
      for (const token of tokens) expectRefusal(await perform(operation, token), 403, operation.name);
    await expectUntouched();
  });

  it('responds with 403 to an administrator who names another tenant, and with 400 to a core user who names no known tenant', async () => {
    // A core user may call these routes without naming a tenant. Such a call covers all tenants.
    const ofAll = (name: string) => /\/form\/v1\/(?:quarantine|operations)/.test(name);
    const { platform } = world;
    const named = `?tenantId=${encodeURIComponent(platform.tenant.id)}`;
    const [stranger, core] = [await adminOf('other'), await adminOf('core')];
    for (const operation of guarded()) {
      expectRefusal(await perform(operation, stranger, named), 403, operation.name);
      if (!ofAll(operation.name)) expectRefusal(await perform(operation, core), 400, operation.name);
      expectRefusal(await perform(operation, core, `${named}x`), 400, operation.name);
    }
    await expectUntouched();
  });

  it('responds with 404 to administrators and core users of another tenant than the form’s', async () => {
    const [stranger, core] = [await adminOf('other'), await adminOf('core')];
    const named = `?tenantId=${encodeURIComponent(world.platform.otherTenant.id)}`;
    expect(ofForms().length).toBeGreaterThanOrEqual(5);
    for (const operation of ofForms())
      for (const response of [await perform(operation, stranger), await perform(operation, core, named)])
        expectRefusal(response, 404, operation.name);
    await expectUntouched();
  });

  it('responds with 404 to every operation on a form of another tenant', async () => {
    const stranger = await adminOf('other');
    for (const operation of ['send-code', 'submit', 'unlock', 'archive', 'to-draft', 'hold', 'release'])
      expectRefusal(await ask('POST', `/form/v1/forms/${formId}`, stranger, { operation }), 404, operation);
    await expectUntouched();
  });

  it('responds with 404 for a register of another tenant, and lists none of its registers and forms', async () => {
    const stranger = await adminOf('other');
    expect(ofRegisters().length).toBeGreaterThanOrEqual(4);
    for (const operation of ofRegisters()) expectRefusal(await perform(operation, stranger), 404, operation.name);
    for (const path of ['/form/v1/registers', '/form/v1/forms'])
      expect((await ask('GET', path, stranger)).body).toMatchObject({ results: [] });
    await expectUntouched();
  });
});

function expectRefusal({ status, headers, body }: Answered, expected: number, what: string): void {
  expect([what, status]).toEqual([what, expected]);
  expect(headers.get('content-type')).toContain('application/problem+json');
  expect(body).toMatchObject({ status: expected, type: expect.stringMatching(/^urn:formgate:problem:/) });
}

/** Returns invalid tokens, keyed by their defect. Each token would grant all rights if it were valid. */
async function wrongTokens(): Promise<Record<string, string>> {
  const { access } = world.platform;
  const own = access.urns.service('form-service');
  const sign = (changes: object, options: Parameters<typeof access.foreignToken>[1] = {}) =>
    access.foreignToken(
      {
        aud: own,
        resource_access: { [own]: { roles: ownRoles['form-service'] } },
        realm_access: { roles: realmRoles },
        ...changes,
      },
      options,
    );
  const now = Math.floor(Date.now() / 1000);
  const genuine = await sign({});
  const [header = '', payload = '', signature = ''] = genuine.split('.');
  const changed = Buffer.from(payload, 'base64url').toString().replace('"sub":"', '"sub":"x');
  return {
    'another issuer': await sign({ iss: 'https://elsewhere.example.org/auth/realms/demo' }),
    'an issuer that only begins like the right one': await sign({ iss: `${access.issuer('demo')}/` }),
    'the realm of no tenant': await sign({ iss: access.issuer('nowhere') }),
    'a path as its realm': await sign({ iss: access.issuer('../realms/demo') }),
    'another realm’s key for this realm': await sign({ iss: access.issuer('demo') }, { realm: 'other' }),
    'this realm’s key for core': await sign({ iss: access.issuer('core') }),
    'another audience': await sign({ aud: access.urns.service('event-service') }),
    'no audience': await sign({ aud: undefined }),
    'HS256 with some secret': await sign({}, { key: 'hmac' }),
    'HS256 with the public key as its secret': await confusedToken(payload),
    'no algorithm': await sign({}, { key: 'none' }),
    'no signature': `${header}.${payload}.`,
    'an unpublished key': await sign({}, { key: 'unknown' }),
    'a changed payload': `${header}.${Buffer.from(changed).toString('base64url')}.${signature}`,
    'a past expiry': await sign({ exp: now - 60 }),
    'no end': await sign({ exp: undefined }),
    'a start in the future': await sign({ nbf: now + 3_600 }),
    'no subject': await sign({ sub: undefined }),
    'the type of an ID token': await sign({ typ: 'ID' }),
    'the type of a refresh token': await sign({ typ: 'Refresh' }),
    'no token': 'nonsense',
  };
}

/** Returns a token for an algorithm confusion attack: its signature is an HMAC whose secret is the public key. */
async function confusedToken(payload: string): Promise<string> {
  const { body } = await call(`${world.platform.access.url}/realms/demo/protocol/openid-connect/certs`);
  const [key] = (body as { keys: JWK[] }).keys;
  const published = await importJWK({ ...key }, 'RS256', { extractable: true });
  if (published instanceof Uint8Array) throw new Error('The realm publishes no public key.');
  const secret = await exportSPKI(published);
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as JWTPayload;
  return new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(secret));
}

describe('every route that takes a body', () => {
  const limit = 1_048_576;
  /** Largest bodies, in bytes, of routes that take no form data. */
  const limits: Record<string, number> = { 'POST /form/v1/forms/{formId}': 16_384 };
  const pointersOf = ({ status, headers, body }: Answered, expected: number, what: string): string[] => {
    expect([what, status]).toEqual([what, expected]);
    expect(headers.get('content-type')).toContain('application/problem+json');
    const { errors = [] } = body as { errors?: { pointer: string }[] };
    return errors.map(({ pointer }) => pointer);
  };
  const taking = () => operations.filter(({ hasJson }) => hasJson);
  /** True if the body may be a string, as for an entry of a register. */
  const takesText = ({ path }: Operation) => /\/entries(?:\/\{key\})?$/.test(path);
  const send = async (
    { method, path }: Operation,
    body: string | Buffer<ArrayBuffer>,
    headers: Record<string, string> = {},
  ) => {
    const response = await fetch(`${forms.url}${targetOf(path)}`, {
      method,
      body,
      headers: {
        authorization: `Bearer ${await adminOf('demo')}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
        ...headers,
      },
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as unknown };
  };

  it('rejects 38 kinds of malformed, oversized, deeply nested and wrong-typed bodies with 400, 413 or 415, with a pointer to the body', async () => {
    const kinds = malformedBodies(limit);
    expect(kinds).toHaveLength(38);
    for (const operation of taking())
      for (const { kind, body, headers, status } of kinds) {
        if (kind === 'a text' && takesText(operation)) continue;
        const what = `${operation.name}: ${kind}`;
        const expected = body.length > (limits[operation.name] ?? limit) ? 413 : status;
        expect([what, pointersOf(await send(operation, body, headers), expected, what)[0]]).toEqual([what, '']);
      }
    await expectUntouched();
  });

  /** For each route: the text before and after a value in the body, and the JSON pointer to this value. */
  const places: Record<string, [before: string, after: string, pointer: string]> = {
    'POST /form/v1/forms': [`{"definitionId":"${permit.id}","applicant":{"addressAs":`, '}}', '/applicant/addressAs'],
    'POST /form/v1/forms/{formId}': ['{"operation":', '}', '/operation'],
    'PUT /form/v1/forms/{formId}/data': ['{"data":{"a":[', ']},"files":{}}', '/data/a/0'],
    'POST /form/v1/registers': ['{"name":"x","description":"x","entries":[{"label":', '}]}', '/entries/0/label'],
    'PATCH /form/v1/registers/{name}': ['{"entries":[{"label":', '}]}', '/entries/0/label'],
    'PUT /form/v1/registers/{name}/entries/{key}': ['{"label":', '}', '/label'],
    'PUT /form/v1/registers/{name}/entries': ['{"label":', '}', '/label'],
    'PUT /form/v1/registers/{name}/active-revision': ['{"revision":', '}', '/revision'],
    'POST /form/v1/definitions/check': ['{"id":"x","dataSchema":{"title":', '}}', '/dataSchema/title'],
  };

  it.each(forbiddenValues)('rejects %s anywhere in a body with 400 and its pointer', async (kind, json, below) => {
    for (const operation of taking()) {
      const [before, after, pointer] = places[operation.name] ?? ['', '', ''];
      const pointers = pointersOf(await send(operation, before + json + after), 400, `${operation.name}: ${kind}`);
      expect(pointers).toContain(pointer + below);
    }
    await expectUntouched();
  });

  it.each([
    ['POST /form/v1/forms', '{"definitionId":7}', '/definitionId'],
    ['POST /form/v1/forms', '{"definitionId":""}', '/definitionId'],
    ['POST /form/v1/forms', '{"definitionId":"a/b"}', '/definitionId'],
    ['POST /form/v1/forms', '{"definitionId":"permit","status":"Submitted"}', '/status'],
    ['POST /form/v1/forms', '{"definitionId":"permit","applicant":[]}', '/applicant'],
    ['POST /form/v1/forms', '{"definitionId":"permit","applicant":{"channels":{}}}', '/applicant/channels'],
    [
      'POST /form/v1/forms',
      '{"definitionId":"permit","applicant":{"channels":[{"channel":"fax","address":"1"}]}}',
      '/applicant/channels/0/channel',
    ],
    [
      'POST /form/v1/forms',
      '{"definitionId":"permit","applicant":{"channels":[{"channel":"email","address":"x"}]}}',
      '/applicant/channels/0/address',
    ],
    ['POST /form/v1/forms/{formId}', '{"operation":"delete"}', '/operation'],
    ['POST /form/v1/forms/{formId}', '{"operation":["submit"]}', '/operation'],
    ['POST /form/v1/forms/{formId}', '{"operation":"submit","dryRun":true}', '/dryRun'],
    ['PUT /form/v1/forms/{formId}/data', '{"data":"x","files":{}}', '/data'],
    ['PUT /form/v1/forms/{formId}/data', '{"data":{},"files":{"a":{}}}', '/files/a'],
    ['PUT /form/v1/forms/{formId}/data', '{"data":{},"files":{"a~/b":1}}', '/files/a~0~1b'],
  ])('%s rejects %s with 400 and the pointer %s', async (name, body, pointer) => {
    const operation = operations.find((one) => one.name === name);
    if (!operation) throw new Error(`There is no ${name}.`);
    expect(pointersOf(await send(operation, body), 400, name)).toContain(pointer);
  });

  it('has logged no error, sent no 5xx, and let no body change a prototype', async () => {
    expect(forms.logText()).not.toContain('request failed');
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    const { text } = await call(`${forms.metricsUrl}/metrics`);
    expect(text).toMatch(/formgate_http_requests_total\{.*status="4xx"/);
    expect(text).not.toMatch(/formgate_http_requests_total\{.*status="5xx"\} [1-9]/);
  });
});
