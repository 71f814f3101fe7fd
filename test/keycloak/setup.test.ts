// Sets up a real Keycloak with `npm run keycloak:setup`, and checks the accounts, audiences and registrations that
// Formgate needs.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createAdminApi, type KeycloakServer, requestToken } from './admin-api.ts';
import { keycloakOfRun } from './keycloak-of-run.ts';
import { ownMark } from './realm-representation.ts';

const server = keycloakOfRun() as KeycloakServer;
const admin = createAdminApi(server);
const realms = ['core', 'set-up-town'];
const urn = (service: string) => `urn:example:platform:${service}`;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'formgate-keycloak-'));
  for (const realm of realms) await remove(realm);
});
afterAll(async () => {
  for (const realm of realms) await admin.call('DELETE', `/${realm}`);
  await rm(folder, { recursive: true });
});

/**
 * Deletes a realm of an earlier test. Throws for a realm that no test created, because a Keycloak given by URL may
 * contain other realms.
 */
async function remove(realm: string): Promise<void> {
  const present = (await admin.find(`/${realm}`)) as { attributes?: Record<string, string> } | undefined;
  if (present === undefined) return;
  if (present.attributes?.[ownMark] !== 'true') throw new Error(`Tests did not create the realm ${realm}.`);
  await admin.call('DELETE', `/${realm}`);
}

interface Ran {
  code: number;
  output: string;
  secrets: Record<string, string>;
}

const core = ['--apply', 'formgate-apply', '--operator', 'operator'];
const town = ['--tenant', 'set-up-town', '--intake', 'town-intake', '--admin', 'boss@example.org'];

async function setUp(file: string, args: string[] = town, password = server.password): Promise<Ran> {
  const path = join(folder, file);
  const script = join(import.meta.dirname, '../../src/image/keycloak-setup/main.ts');
  const all = [script, '--url', server.url, '--user', server.username, '--output', path, ...args];
  const env = { ...process.env, KEYCLOAK_PASSWORD: password };
  return new Promise((done) => {
    execFile(process.execPath, all, { env }, async (error, stdout, stderr) => {
      const text = await readFile(path, 'utf8').catch(() => 'stringData: {}');
      done({ code: Number(error?.code ?? 0), output: stdout + stderr, secrets: parse(text).stringData });
    });
  });
}

const tokenOf = async (realm: string, client_id: string, client_secret = '') =>
  decodeJwt<{ resource_access: Record<string, { roles: string[] }> }>(
    await requestToken(`${server.url}/realms/${realm}`, { grant_type: 'client_credentials', client_id, client_secret }),
  );

let first: Ran;

it('creates realms, accounts and roles, and writes the secrets to a file that only its owner may read', async () => {
  first = await setUp('first.yaml', [...town, ...core, '--registrations', '1']);
  expect(first).toMatchObject({ code: 0, output: expect.stringContaining('set-up-town: created the realm') });
  expect(Object.keys(first.secrets)).toEqual([
    ...['forms', 'token-handler', 'apply', 'operator'],
    ...['set-up-town.intake', 'set-up-town.admin-password', 'set-up-town.registration-token'],
  ]);
  expect((await stat(join(folder, 'first.yaml'))).mode & 0o777).toBe(0o600);
  for (const secret of Object.values(first.secrets)) expect(first.output).not.toContain(secret);
});

it('gives the services tokens with the roles and audiences of the platform', async () => {
  const forms = await tokenOf('core', urn('form-service'), first.secrets.forms);
  const services = ['tenant-service', 'configuration-service', 'event-service', 'notification-service'].map(urn);
  expect(forms.aud).toEqual(expect.arrayContaining(services));
  expect(forms.resource_access[urn('notification-service')]?.roles.sort()).toEqual([
    'subscription-admin',
    'subscription-app',
  ]);
  const handler = await tokenOf('core', urn('token-handler'), first.secrets['token-handler']);
  expect(Object.keys(handler.resource_access)).not.toContain(urn('notification-service'));
  const intake = await tokenOf('set-up-town', 'town-intake', first.secrets['set-up-town.intake']);
  expect(intake.resource_access[urn('form-service')]?.roles).toEqual(['intake-application']);
});

it('gives the accounts of the applicants’ pages and of operators only their roles', async () => {
  const rolesOf = async (account: string) => {
    const { resource_access: access } = await tokenOf('core', account, first.secrets[account.replace('formgate-', '')]);
    const ofServices = Object.entries(access).filter(([client]) => client.startsWith('urn:'));
    return Object.fromEntries(ofServices.map(([service, { roles }]) => [service, roles]));
  };
  expect(await rolesOf('formgate-apply')).toEqual({ [urn('form-service')]: ['intake-application'] });
  expect(await rolesOf('operator')).toEqual({
    [urn('form-service')]: ['form-admin'],
    [urn('token-handler')]: ['token-handler-admin'],
  });
});

it('lets a client register itself, whose tokens have the audiences of the services', async () => {
  const response = await fetch(`${server.url}/realms/set-up-town/clients-registrations/openid-connect`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Authorization: `Bearer ${first.secrets['set-up-town.registration-token']}`,
    },
    body: JSON.stringify({ client_name: 'town', redirect_uris: ['https://town.example.org/callback'] }),
  });
  const { client_id: clientId } = (await response.json()) as { client_id: string };
  expect(response.status).toBe(201);
  const [client] = (await admin.call('GET', `/set-up-town/clients?clientId=${clientId}`)) as object[];
  expect(client).toMatchObject({ defaultClientScopes: expect.arrayContaining(['formgate-audiences']) });
});

it('changes nothing when it is repeated, and adds what was deleted', async () => {
  const again = await setUp('again.yaml');
  expect(again.output).toMatch(/^Nothing was missing\./);
  const { forms, 'token-handler': handler, 'set-up-town.intake': intake } = first.secrets;
  expect(again.secrets).toEqual({ forms, 'token-handler': handler, 'set-up-town.intake': intake });

  const [client] = (await admin.call('GET', `/core/clients?clientId=${urn('event-service')}`)) as { id: string }[];
  await admin.call('DELETE', `/core/clients/${client?.id}`);
  const repaired = await setUp('repaired.yaml');
  expect(repaired.output).toContain(`core: created event-sender of ${urn('event-service')} for the account`);
  expect((await tokenOf('core', urn('form-service'), forms)).aud).toContain(urn('event-service'));
});

it('if Keycloak refuses something halfway, writes the secrets that exist, such as the password of a new administrator', async () => {
  const boss = ['--tenant', 'set-up-town', '--admin', 'second-boss@example.org'];
  const ran = await setUp('halfway.yaml', [...boss, '--tester', 'not an address']);
  expect(ran).toMatchObject({ code: 1, output: expect.stringContaining('halfway.yaml contains the secrets so far') });
  const { 'set-up-town.admin-password': password = '', ...others } = ran.secrets;
  expect(password).toMatch(/.{20}/);
  expect(Object.keys(others)).toContain('forms');
  // The grant fails because the password must be changed first. The error for a wrong password would be different:
  // `Invalid user credentials`.
  const response = await fetch(`${server.url}/realms/set-up-town/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams({
      ...{ grant_type: 'password', client_id: 'admin-cli' },
      ...{ username: 'second-boss@example.org', password },
    }),
  });
  expect(await response.json()).toMatchObject({ error_description: 'Account is not fully set up' });
});

it.each([
  ['a wrong password', town, 'wrong', 1, /^Keycloak refuses the password of \w+$/],
  [
    'an address where nothing is',
    ['--url', 'http://127.0.0.1:9/auth'],
    'x',
    1,
    /^http:\/\/127\.0\.0\.1:9 cannot be reached/,
  ],
  ['the realm master as a tenant', ['--tenant', 'master'], 'x', 2, /^--tenant "master" is no name of a realm/],
  ['an unknown option', ['--tenants', 'x'], 'x', 2, /^Unknown option '--tenants'/],
  ['a file that exists', ['--output', '/dev/null'], 'x', 2, /^\/dev\/null exists/],
])('reports %s in one line', async (_what, args, password, code, words) => {
  const ran = await setUp('never.yaml', args, password);
  expect([ran.code, ran.output.trim().split('\n').length]).toEqual([code, 1]);
  expect(ran.output.trim()).toMatch(words);
});
