// Tests how the credentials of a client that an administrator provides are verified, for each possible response of an
// identity provider.
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import {
  failuresOf,
  type ProviderReply,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../../test/support/scripted-provider.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { createProviderDiscovery } from '../provider-discovery.ts';
import { createClientParser } from './client.ts';
import { createProvidedClients } from './provided-clients.ts';

const token = 'POST /auth/realms/demo/token';
const now = new Date('2026-08-20T17:00:00Z');
const tenant = { id: 'urn:example:tenants/demo', name: 'Demo', realm: 'demo' };
let provider: ScriptedProvider;
let metrics: Metrics;
/** The calls of `store.provide` and of `changed`, in order. */
let stored: unknown[];

beforeAll(async () => {
  provider = await startScriptedProvider();
});
afterAll(() => provider.close());
beforeEach(() => {
  provider.reset();
  metrics = createMetrics();
  stored = [];
});

function register({ redirectUris = ['https://permits.example.org/cb'], issuer = '', timeout = 5_000 } = {}) {
  const addresses = provider.addresses(issuer);
  const provided = createProvidedClients({
    ...{ addresses, metrics, timeout, clock: () => now },
    discover: createProviderDiscovery({ addresses, log: captureLog().log, timeout }),
    store: { provide: async (...call) => void stored.push(call) },
    changed: () => void stored.push('changed'),
  });
  const redirectUriRules = { allowInsecure: false, allowWildcardPaths: false };
  const parse = createClientParser({ urnPrefix: 'urn:example', redirectUriRules, core: false });
  const { client } = parse('web', { name: 'Web', redirectUris });
  if (!client) throw new Error('the client is invalid');
  const by = { subject: 'alice', name: 'Alice' };
  return provided.register({ tenant, client, clientId: 'town-web', clientSecret: 'a secret:%', by });
}
const formOf = (index: number) => Object.fromEntries(new URLSearchParams(provider.calls[index]?.body));
const lines = () => provider.lines();
const failures = () => failuresOf(metrics);
const invalidGrant = { status: 400, body: { error: 'invalid_grant' } };

describe('a provided client', () => {
  it('is verified with a code that does not exist, and is stored as a client that is never changed', async () => {
    provider.script = { [token]: invalidGrant };
    await register();
    expect(lines().at(-1)).toBe(token);
    expect(provider.operations).toEqual(['discovery', 'check client']);
    const basic = Buffer.from('town%2Dweb:a+secret%3A%25').toString('base64');
    expect(provider.calls.at(-1)?.headers.authorization).toBe(`Basic ${basic}`);
    expect(formOf(provider.calls.length - 1)).toEqual({
      grant_type: 'authorization_code',
      code: expect.stringMatching(/^[\w-]{43}$/),
      redirect_uri: 'https://permits.example.org/cb',
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
    });
    const registration = {
      ...{ tenantId: tenant.id, clientId: 'web', realm: 'demo', issuer: null, clientName: null },
      ...{ oidcClientId: 'town-web', clientSecret: 'a secret:%', authentication: 'client_secret_basic' },
      ...{ management: 'provided', registrationAccessToken: '', registrationClientUri: '', redirectUris: [] },
      registeredAt: now,
    };
    const event = {
      name: 'client-registered',
      payload: {
        client: { id: 'web', name: 'Web', clientId: 'town-web' },
        registeredBy: { id: 'alice', name: 'Alice' },
      },
    };
    expect(stored).toEqual([[registration, event, { isLimited: true }], 'changed']);
    expect(await failures()).toEqual([]);
  });

  it('is verified with a harmless redirect URI if none is configured', async () => {
    provider.script = { [token]: invalidGrant };
    await register({ redirectUris: [] });
    expect(formOf(provider.calls.length - 1).redirect_uri).toBe('https://localhost/');
  });

  it('belongs to the issuer that the operator has mapped to its tenant', async () => {
    const issuer = `${provider.url}/realms/town`;
    provider.script = { 'POST /auth/realms/town/token': invalidGrant };
    await register({ issuer });
    expect(stored[0]).toMatchObject([{ issuer, realm: 'demo' }, expect.anything(), expect.anything()]);
  });

  it('sends its secret in the body to an identity provider that supports nothing else', async () => {
    provider.metadata = { token_endpoint_auth_methods_supported: ['private_key_jwt', 'client_secret_post'] };
    provider.script = { [token]: invalidGrant };
    await register();
    expect(provider.calls.at(-1)?.headers.authorization).toBeUndefined();
    expect(formOf(provider.calls.length - 1)).toMatchObject({ client_id: 'town-web', client_secret: 'a secret:%' });
    expect(stored[0]).toMatchObject([{ authentication: 'client_secret_post' }, expect.anything(), expect.anything()]);
  });

  it('may authenticate in the second way that the identity provider supports, if it refuses the first', async () => {
    provider.metadata = { token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'] };
    provider.script = { [token]: [{ status: 401, body: { error: 'invalid_client' } }, invalidGrant] };
    await register();
    expect(lines().filter((line) => line === token)).toHaveLength(2);
    expect(stored[0]).toMatchObject([{ authentication: 'client_secret_post' }, expect.anything(), expect.anything()]);
  });

  it('authenticates with client_secret_basic unless the identity provider lists other ways', async () => {
    provider.script = { [token]: { status: 401, body: { error: 'invalid_client' } } };
    await expect(register()).rejects.toMatchObject({ status: 400 });
    expect(lines().filter((line) => line === token)).toHaveLength(1);
  });
});

describe('a client whose credentials are refused', () => {
  it.each([
    ['an unknown client', { status: 401, body: { error: 'invalid_client' } }, ' (invalid_client)'],
    ['a wrong secret at Keycloak', { status: 400, body: { error: 'unauthorized_client' } }, ' (unauthorized_client)'],
    ['a wrong secret at Auth0', { status: 403, body: { error: 'access_denied' } }, ' (access_denied)'],
    ['400 and invalid_client', { status: 400, body: { error: 'invalid_client' } }, ' (invalid_client)'],
    ['401 and invalid_grant', { status: 401, body: { error: 'invalid_grant' } }, ' (invalid_grant)'],
    ['a long code', { status: 401, body: { error: 'a'.repeat(60) } }, ` (${'a'.repeat(60)})`],
    ['a code that is too long', { status: 401, body: { error: 'a'.repeat(61) } }, ''],
    ['a code that is a text', { status: 401, body: { error: 'x: secret' } }, ''],
    ['a challenge', { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } }, ''],
  ] as [string, ProviderReply, string][])(
    '(%s) is not stored, and the response has the code',
    async (_, reply, code) => {
      provider.script = { [token]: reply };
      const detail = `is not accepted with this clientId by the identity provider${code}`;
      await expect(register()).rejects.toMatchObject({ status: 400, errors: [{ pointer: '/clientSecret', detail }] });
      expect([stored, await failures()]).toEqual([[], []]);
    },
  );

  it('in both ways is not stored', async () => {
    provider.metadata = { token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'] };
    provider.script = {
      [token]: [
        { status: 401, body: { error: 'invalid_client' } },
        { status: 400, body: { error: 'unauthorized_client' } },
      ],
    };
    await expect(register()).rejects.toMatchObject({ detail: expect.stringContaining('(unauthorized_client)') });
  });

  it.each([[[]], [['private_key_jwt']]])('because no way is supported is not sent: %j', async (methods) => {
    provider.metadata = { token_endpoint_auth_methods_supported: methods };
    await expect(register()).rejects.toMatchObject({
      status: 400,
      detail: expect.stringContaining('supports neither client_secret_basic nor client_secret_post'),
    });
    expect(lines()).not.toContain(token);
  });
});

describe('a client that cannot be verified', () => {
  it.each([
    ['accepts a code that does not exist', { status: 200, body: { access_token: 'x', token_type: 'bearer' } }],
    ['fails', { status: 500, body: { error: 'server_error' } }],
    ['fails with the code of a success', { status: 500, body: '<html>' }],
    ['finds the request invalid', { status: 400, body: { error: 'invalid_request' } }],
    ['refuses with a challenge that is no 401', { status: 403, headers: { 'www-authenticate': 'Basic realm="x"' } }],
    ['redirects', { status: 302, headers: { location: '/elsewhere' } }],
    ['hangs up', 'hang up'],
  ] as [string, ProviderReply][])(
    'because the identity provider %s is not stored, and the failure is counted',
    async (_, reply) => {
      provider.metadata = { token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'] };
      provider.script = { [token]: reply };
      await expect(register()).rejects.toMatchObject({
        slug: 'dependency-failed',
        status: 502,
        cause: expect.any(Error),
      });
      expect(lines().filter((line) => line === token)).toHaveLength(1);
      expect(stored).toEqual([]);
      expect(await failures()).toEqual([{ dependency: 'identity-provider', kind: 'client-verification', value: 1 }]);
    },
  );

  it('because discovery fails is not sent', async () => {
    provider.script = { 'GET /auth/realms/demo/.well-known/openid-configuration': { status: 500 } };
    await expect(register()).rejects.toMatchObject({ slug: 'dependency-failed', cause: expect.any(Error) });
    expect([lines().includes(token), (await failures()).length]).toEqual([false, 1]);
  });

  it('in time is not stored', async () => {
    provider.script = { [token]: 'silence' };
    const began = performance.now();
    onTestFinished(() => expect(performance.now() - began).toBeLessThan(4_000));
    await expect(register({ timeout: 50 })).rejects.toMatchObject({ slug: 'dependency-failed' });
  });
});
