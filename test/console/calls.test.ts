// Sends every request of the console to the services as a browser would: signed in through the core client
// formgate-console, and through the token handler's targets. Each change is read back.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerConsole } from '../../dev/demo-data/console.ts';
import { findFreePort } from '../../dev/ports.ts';
import { configSchema } from '../../src/forms/config.ts';
import { startForms } from '../../src/forms/start.ts';
import { parseConfig } from '../../src/service/operations/config.ts';
import type { RunningService } from '../../src/service/operations/serve.ts';
import { testServiceSecret } from '../support/access.ts';
import { permit, startTestForms, type TestForms } from '../support/forms.ts';
import { call } from '../support/platform.ts';
import { createSiteBrowser, type SiteBrowser, type Visit } from '../support/site-browser.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../support/token-handler.ts';

let forms: TestForms;
let service: RunningService;
let handler: TestTokenHandler;
let admin: SiteBrowser;

beforeAll(async () => {
  forms = await startTestForms();
  service = await startFormsInRealTime();
  const port = await findFreePort();
  const site = `http://127.0.0.1:${port}`;
  const { url } = forms.platform;
  handler = await startTestTokenHandler({
    platform: forms.platform,
    env: { PORT: String(port), CONSOLE_URL: site },
    directory: {
      DIR_PLATFORM_FORM_SERVICE: service.url,
      DIR_PLATFORM_CONFIGURATION_SERVICE: url,
      DIR_PLATFORM_TOKEN_HANDLER: site,
    },
  });
  await registerConsole({ url: site, token: await handler.adminToken(), publicUrl: site });
  admin = await signIn('admin@example.com');
});
afterAll(async () => {
  await service.close();
  await handler.close();
  await forms.close();
});

/**
 * Starts a second form service on the same database, with the real time. The service in `forms` would reject people's
 * tokens as expired, because its clock is ahead.
 */
async function startFormsInRealTime(): Promise<RunningService> {
  const { access, directoryUrl } = forms.platform;
  const env = {
    ...{
      HOST: '127.0.0.1',
      PORT: '0',
      METRICS_PORT: '0',
      DATABASE_URL: forms.databaseUrl,
      DIRECTORY_URL: directoryUrl,
    },
    ...{ ACCESS_SERVICE_URL: access.url, URN_PREFIX: access.urns.prefix },
    CLIENT_SECRET: testServiceSecret(access.urns.service('form-service')),
    CODE_KEY: 'another key of tests with more than 32 characters',
  };
  return startForms({ config: parseConfig(configSchema, env), log: forms.log.log, env });
}

async function signIn(email: string): Promise<SiteBrowser> {
  const browser = createSiteBrowser();
  const client = `${handler.url}/token-handler/clients/formgate-console`;
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${client}/callback`, returnTo: '/console/demo' });
  const isConsole = (url: URL) => url.pathname.startsWith('/console/');
  const form = await browser.follow(await browser.request(`${client}/auth?${query}`));
  const password = email.split('@')[0] ?? '';
  const landed = await browser.follow(await browser.submit(form, { username: email, password }), isConsole);
  expect(landed.location?.pathname).toBe('/console/demo');
  await browser.request(`${handler.url}/token-handler/sessions`);
  return browser;
}

interface Reply extends Visit {
  body: unknown;
}

/** Sends a request as the console does. `path` is below `/token-handler/targets`. */
async function send(method: string, path: string, body?: unknown, browser = admin): Promise<Reply> {
  const isText = typeof body === 'string';
  const visit = await browser.request(`${handler.url}/token-handler/targets${path}`, {
    method,
    headers: {
      ...(method !== 'GET' && { 'X-XSRF-TOKEN': browser.cookie(handler.url, 'XSRF-TOKEN') ?? '' }),
      ...(body !== undefined && { 'Content-Type': isText ? 'text/csv' : 'application/json' }),
    },
    ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
  });
  const isJson = visit.headers.get('content-type')?.includes('json') ?? false;
  return { ...visit, body: isJson ? JSON.parse(visit.text) : undefined };
}

/** Sends a request that must succeed. Returns the response body. */
async function done<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
  const { status, text, body: answer } = await send(method, path, body);
  expect(status, `${method} ${path}: ${text}`).toBeLessThan(300);
  return answer as T;
}

const form = '/form-service/form/v1';
const configuration = '/configuration-service/configuration/v2/configuration';
const tokenHandler = '/token-handler/token-handler/v1';

/** Sends a request of an intake application. `path` is below /form/v1/forms. */
async function intake(method: string, path: string, body: object): Promise<{ id: string }> {
  const answer = await call(`${service.url}/form/v1/forms${path}`, { method, token: forms.token('intake'), body });
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body as { id: string };
}

async function draft(): Promise<string> {
  const channels = [{ channel: 'email', address: `${randomUUID()}@example.org` }];
  const { id } = await intake('POST', '', { definitionId: 'permit', applicant: { channels } });
  await intake('PUT', `/${id}/data`, { data: { name: 'Ana' }, files: {} });
  return id;
}

const submit = (id: string) => intake('POST', `/${id}`, { operation: 'submit' });

describe('forms', () => {
  const operate = (id: string, operation: string, more: object = {}) =>
    done('POST', `${form}/forms/${id}`, { operation, ...more });
  const read = (id: string) => done('GET', `${form}/forms/${id}`);

  it('are listed, held for a reason, released, unlocked, archived, returned, and deleted; their history contains all of it', async () => {
    const [id, other] = [await draft(), await draft()];
    await forms.pool.query("UPDATE forms SET status = 'Locked', locked = now() WHERE id = $1", [id]);
    const criteria = encodeURIComponent(JSON.stringify({ statusEquals: 'Locked' }));
    const list = await done<{ results: { id: string }[] }>(
      'GET',
      `${form}/forms?criteria=${criteria}&includeTotal=true`,
    );
    expect(list.results.map((found) => found.id)).toContain(id);
    await operate(id, 'unlock');
    expect(await read(id)).toMatchObject({ status: 'Draft', locked: null });
    await operate(id, 'hold', { reason: 'An appeal is pending.' });
    expect(await read(id)).toMatchObject({ held: true, hold: { reason: 'An appeal is pending.' } });
    expect((await send('DELETE', `${form}/forms/${id}`)).status).toBe(409);
    await operate(id, 'release');
    expect(await read(id)).toMatchObject({ held: false, hold: null });
    await submit(id);
    await operate(id, 'to-draft');
    expect(await read(id)).toMatchObject({ status: 'Draft' });
    await submit(other);
    await operate(other, 'archive');
    expect(await read(other)).toMatchObject({ status: 'Archived' });
    const { results } = await done<{ results: { event: string; by: object }[] }>('GET', `${form}/forms/${id}/history`);
    expect(results.map(({ event }) => event)).toEqual([
      'created',
      'unlocked',
      'held',
      'released',
      'submitted',
      'to-draft',
    ]);
    expect(results.at(-1)).toMatchObject({ by: { role: 'admin', isCaller: true } });
    expect((await send('DELETE', `${form}/forms/${id}`)).status).toBe(204);
    expect((await send('GET', `${form}/forms/${id}`)).status).toBe(410);
  });

  it('show their data with the schema of their definition', async () => {
    const id = await draft();
    expect(await done('GET', `${form}/forms/${id}/data`)).toEqual({ data: { name: 'Ana' }, files: {} });
    expect(await done('GET', `${form}/definitions/permit`)).toMatchObject({ dataSchema: permit.dataSchema });
  });
});

describe('definitions', () => {
  const definition = (name: string) => ({ ...permit, id: 'console', name });

  it('are checked, saved, published and compared in a document of their own', async () => {
    const document = `${configuration}/form-service/console`;
    const broken = { ...definition('First'), dataSchema: { type: 'nonsense' } };
    expect(await done('POST', `${form}/definitions/check`, broken)).toMatchObject({
      problems: [{ pointer: '/dataSchema/type', severity: 'error' }],
    });
    await done('PATCH', document, { operation: 'REPLACE', configuration: definition('First') });
    await done('POST', document, { operation: 'SET-ACTIVE-REVISION', revision: 0 });
    expect(await done('POST', document, { operation: 'CREATE-REVISION' })).toMatchObject({ latest: { revision: 1 } });
    await done('PATCH', document, { operation: 'REPLACE', configuration: definition('Second') });
    expect(await done('GET', document)).toMatchObject({
      latest: { revision: 1, configuration: { name: 'Second' } },
      active: { revision: 0, configuration: { name: 'First' } },
    });
    const { results } = await done<{ results: { revision: number }[] }>('GET', `${document}/revisions?top=10`);
    expect(results.map(({ revision }) => revision)).toEqual([1, 0]);
    expect(await done('GET', `${document}/revisions/0`)).toMatchObject({ name: 'First' });
    await done('POST', document, { operation: 'SET-ACTIVE-REVISION', revision: 1 });
    expect(await done('GET', `${document}/active`)).toMatchObject({ revision: 1 });
    const listed = async () => (await done<{ results: object[] }>('GET', `${form}/definitions`)).results;
    await expect
      .poll(listed)
      .toContainEqual({ id: 'console', name: 'Second', source: 'document', anonymousApply: true });
    expect(await done('DELETE', document)).toEqual({ deleted: true });
  });

  it('are saved, lose members and have revisions in the tenant’s collection, without touching others', async () => {
    const collection = `${configuration}/platform/form-service`;
    const update = { inCollection: { ...definition('In the collection'), id: 'inCollection' } };
    await done('PATCH', collection, { operation: 'UPDATE', update });
    await done('PATCH', collection, { operation: 'DELETE', property: 'inCollection.clerkRoles' });
    await done('POST', collection, { operation: 'CREATE-REVISION' });
    const { latest } = await done<{ latest: { revision: number; configuration: Record<string, object> } }>(
      'GET',
      collection,
    );
    expect(latest.configuration).toMatchObject({
      permit: { name: 'Permit' },
      inCollection: { name: 'In the collection' },
    });
    expect(latest.configuration.inCollection).not.toHaveProperty('clerkRoles');
    const { results } = await done<{ results: object[] }>('GET', `${collection}/revisions`);
    expect(results).toHaveLength(latest.revision + 1);
    await done('PATCH', collection, { operation: 'DELETE', property: 'inCollection' });
    expect(
      (await done<{ latest: { configuration: object } }>('GET', collection)).latest.configuration,
    ).not.toHaveProperty('inCollection');
  });
});

describe('registers', () => {
  it('are edited by entry and by CSV after a preview, kept, compared, pinned, and their references are found', async () => {
    const one = `${form}/registers/towns`;
    await done('POST', `${form}/registers`, { name: 'towns', entries: [{ value: 'banff', label: 'Banff' }] });
    await done('PUT', `${one}/entries/olds`, { value: 'olds', label: 'Olds' });
    expect(await done('POST', `${one}/revisions`)).toEqual({ latest: 1 });
    const csv = 'value,label\nbanff,Town of Banff\njasper,Jasper\n';
    const preview = await done('POST', `${one}/entries?dryRun=true`, csv);
    expect(preview).toMatchObject({ dryRun: true, added: 1, changed: 1, unchanged: 1 });
    expect(await done('GET', `${one}/entries`)).toHaveLength(2);
    expect(await done('POST', `${one}/entries`, csv)).toMatchObject({ ...preview, dryRun: false });
    expect(await done('GET', `${one}/revisions/0/changes`)).toMatchObject({ added: 1, changed: 1 });
    expect(await done('PUT', `${one}/active-revision`, { revision: 0 })).toEqual({ active: 0 });
    const { results } = await done<{ results: object[] }>('GET', `${one}/revisions`);
    expect(results).toMatchObject([
      { revision: 1, latest: true, active: false },
      { revision: 0, active: true },
    ]);
    expect((await send('DELETE', `${one}/entries/olds`)).status).toBe(204);
    expect(await done('GET', `${one}/references`)).toEqual({ results: [], truncated: false });
    expect(await done('GET', `${form}/register-references/dead`)).toEqual({ results: [], truncated: false });
    expect((await send('DELETE', one)).status).toBeLessThan(300);
    expect((await send('GET', one)).status).toBe(404);
  });
});

describe('clients', () => {
  it('of a tenant are created, registered by a token, updated, and have their leftovers shown', async () => {
    const redirectUris = ['https://permits.example.org/token-handler/clients/permits/callback'];
    const targets = [{ id: 'form-service', upstream: 'urn:example:platform:form-service' }];
    const update = { clients: { permits: { id: 'permits', name: 'Permits', redirectUris, targets } } };
    await done('PATCH', `${configuration}/platform/token-handler`, { operation: 'UPDATE', update });
    const find = async () =>
      (await done<{ id: string }[]>('GET', `${tokenHandler}/clients`)).find(({ id }) => id === 'permits');
    await expect.poll(find).toMatchObject({ core: false, registered: false, targets });
    const body = { registrationToken: 'demo-registration-token' };
    expect(await done('POST', `${tokenHandler}/clients/permits`, body)).toEqual({ registered: true });
    const more = [...redirectUris, 'https://www.permits.example.org/token-handler/clients/permits/callback'];
    expect(await done('PUT', `${tokenHandler}/clients/permits`, { redirectUris: more })).toEqual({ updated: true });
    expect(await find()).toMatchObject({ registered: true, registration: { redirectUris: more, management: 'kept' } });
    expect(await done('GET', `${tokenHandler}/clients/permits/leftovers`)).toEqual([]);
  });
});

describe('sessions', () => {
  it('of the tenant are listed and ended', async () => {
    const alice = await signIn('alice@example.com');
    const list = () => done<{ id: string; email: string }[]>('GET', `${tokenHandler}/sessions`);
    const found = (await list()).find(({ email }) => email === 'alice@example.com');
    expect(await done('DELETE', `${tokenHandler}/sessions/${found?.id}`)).toEqual({ deleted: true });
    expect((await list()).map(({ id }) => id)).not.toContain(found?.id);
    expect((await alice.request(`${handler.url}/token-handler/sessions`)).status).toBe(401);
  });
});

describe('operations', () => {
  it('show the tenant its own share, and list its quarantine', async () => {
    expect(await done('GET', `${form}/operations`)).toMatchObject({ scope: 'tenant', quarantine: { count: 0 } });
    expect(await done('GET', `${form}/quarantine`)).toMatchObject({ results: [] });
  });
});

it('a person without roles is refused every area with the reason, and a change without the CSRF token is refused', async () => {
  const alice = await signIn('alice@example.com');
  const areas = {
    [`${form}/forms`]: 403,
    [`${form}/definitions`]: 403,
    [`${form}/registers`]: 403,
    [`${form}/operations`]: 403,
    [`${configuration}/platform/form-service`]: 403,
    // The person has no role at the token handler, so the token lacks the token handler's audience.
    [`${tokenHandler}/clients`]: 401,
    [`${tokenHandler}/sessions`]: 401,
  };
  for (const [path, status] of Object.entries(areas))
    expect([path, (await send('GET', path, undefined, alice)).status]).toEqual([path, status]);
  const { status } = await admin.request(`${handler.url}/token-handler/targets${form}/registers`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: 'forged' }),
  });
  expect(status).toBe(403);
});
