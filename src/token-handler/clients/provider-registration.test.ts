// Tests the outcomes of a registration, a change and a deletion, for each response and fault of the identity provider.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import {
  failuresOf,
  type ProviderReply,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../../test/support/scripted-provider.ts';
import { HttpAgent } from '../../platform/http-agent.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { createProviderDiscovery } from '../provider-discovery.ts';
import { clientMetadata } from './client-metadata.ts';
import { createProviderRegistration, type ProviderRegistration } from './provider-registration.ts';
import type { StoredRegistration } from './registration.ts';

const redirectUris = ['https://permits.example.org/a', 'https://permits.example.org/b'];
const asked = { name: 'permits-web (registration 1)', redirectUris };
const metadata = clientMetadata({ id: 'permits-web', keycloakLogout: false }, asked, undefined);
const agent = new HttpAgent();
let provider: ScriptedProvider;
let log: CapturedLog;
let metrics: Metrics;
let registration: ProviderRegistration;
const post = 'POST /auth/realms/demo/clients';
const discovery = 'GET /auth/realms/demo/.well-known/openid-configuration';

beforeAll(async () => {
  provider = await startScriptedProvider();
});
afterAll(async () => {
  await provider.close();
  await agent.destroy();
});
beforeEach(() => {
  provider.reset();
  log = captureLog();
  metrics = createMetrics();
  registration = create();
});

function create({ timeout = 5_000, issuer = '' } = {}): ProviderRegistration {
  const addresses = provider.addresses(issuer);
  const discover = createProviderDiscovery({ addresses, log: log.log, timeout });
  return createProviderRegistration({ ...{ addresses, discover, log: log.log, agent, metrics, timeout } });
}
const lines = () => provider.lines();
const failures = () => failuresOf(metrics);
const counted = [{ dependency: 'identity-provider', kind: 'registration', value: 1 }];

describe('a registration', () => {
  const issued = () => ({
    client_id: 'oidc-1',
    client_secret: 'the secret',
    client_secret_expires_at: 0,
    registration_access_token: 'the token',
    registration_client_uri: `${provider.url}/realms/demo/clients/oidc-1`,
  });
  /** A response to a registration, with all members that such a response must have. */
  const complete = { client_id: 'oidc-1', client_secret: 'x', client_secret_expires_at: 0 };
  const register = () => registration.register('demo', metadata, 'initial');
  const replyWith = (reply: ProviderReply) => {
    provider.script[post] = reply;
    return register();
  };
  const created = (changes: object = {}) => replyWith({ status: 201, body: { ...issued(), ...changes } });

  it('sends the metadata with the initial access token, and returns what the identity provider issues', async () => {
    expect(await created()).toEqual({
      kind: 'registered',
      client: {
        oidcClientId: 'oidc-1',
        clientSecret: 'the secret',
        registrationAccessToken: 'the token',
        registrationClientUri: `${provider.url}/realms/demo/clients/oidc-1`,
        management: 'kept',
      },
    });
    expect(lines()).toEqual([discovery, post]);
    expect(provider.operations).toEqual(['discovery', 'registration']);
    expect(provider.calls[1]?.headers.authorization).toBe('Bearer initial');
    expect(JSON.parse(provider.calls[1]?.body ?? '')).toEqual(metadata);
    expect([log.lines(), await failures()]).toEqual([[], []]);
  });

  it.each(['registration_access_token', 'registration_client_uri'])(
    'without %s works, but the client cannot be managed, which the log says',
    async (missing) => {
      expect(await created({ [missing]: undefined })).toEqual({
        kind: 'registered',
        client: {
          oidcClientId: 'oidc-1',
          clientSecret: 'the secret',
          registrationAccessToken: '',
          registrationClientUri: '',
          management: 'unsupported',
        },
      });
      expect(log.lines()).toMatchObject([{ level: 'warn', realm: 'demo' }]);
      expect(log.text()).not.toMatch(/the secret|the token/);
    },
  );

  it('is not supported without an endpoint for it', async () => {
    provider.metadata = { registration_endpoint: undefined };
    expect(await register()).toEqual({ kind: 'unsupported' });
    expect([lines(), await failures()]).toEqual([[discovery], []]);
  });

  it.each([
    [
      '401 with a challenge',
      { status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } },
      'invalid_token',
    ],
    [
      '401 with two challenges',
      { status: 401, headers: { 'www-authenticate': 'Basic realm="x", Bearer error="insufficient_scope"' } },
      'insufficient_scope',
    ],
    ['401 with a challenge without a code', { status: 401, headers: { 'www-authenticate': 'Bearer' } }, undefined],
    [
      '401 without one',
      { status: 401, body: { error: 'invalid_token', error_description: 'secret' } },
      'invalid_token',
    ],
    ['403', { status: 403, body: { error: 'insufficient_scope' } }, 'insufficient_scope'],
    ['403 without JSON', { status: 403, body: '<html>' }, undefined],
  ] as [string, ProviderReply, string | undefined][])(
    'with a token that is refused (%s) has the code',
    async (_, reply, code) => {
      expect(await replyWith(reply)).toEqual({ kind: 'token-refused', code });
      expect(await failures()).toEqual([]);
    },
  );

  it.each([
    [400, 'invalid_redirect_uri', 'invalid_redirect_uri'],
    [422, 'invalid_client_metadata', 'invalid_client_metadata'],
    [402, 'a'.repeat(60), 'a'.repeat(60)],
    [499, 'x', 'x'],
    [400, 'a'.repeat(61), undefined],
    [400, 'Invalid', undefined],
    [400, 'x y', undefined],
    [400, '"x"', undefined],
    [400, 7, undefined],
    [400, '', undefined],
  ])('is refused with %i, and has the code if it is one: %j', async (status, error, code) => {
    expect(await replyWith({ status, body: { error, error_description: 'https://secret' } })).toEqual({
      kind: 'refused',
      code,
    });
    expect(await failures()).toEqual([]);
  });

  it.each([404, 408, 429])('fails with %i, and no client can exist', async (status) => {
    expect(await replyWith({ status, body: { error: 'x' } })).toMatchObject({ kind: 'failed', mayExist: false });
    expect(await failures()).toEqual(counted);
  });

  it.each([
    ['an error of the server', { status: 500, body: { error: 'server_error' } }],
    ['a redirect', { status: 302, headers: { location: '/elsewhere' } }],
    ['another success', { status: 200, body: complete }],
    ['no JSON', { status: 201, body: '{' }],
    ['no id', { status: 201, body: { ...complete, client_id: undefined } }],
    ['no secret', { status: 201, body: { client_id: 'oidc-1' } }],
    ['an empty secret', { status: 201, body: { ...complete, client_secret: '' } }],
    ['an empty token', { status: 201, body: { ...complete, registration_access_token: '' } }],
    ['an empty URI', { status: 201, body: { ...complete, registration_client_uri: '' } }],
    ['an id that cannot be stored', { status: 201, body: { ...complete, client_id: 'oidc\u0000' } }],
    ['a secret that cannot be stored', { status: 201, body: { ...complete, client_secret: 'x\ud800' } }],
    ['an id of 501 characters', { status: 201, body: { ...complete, client_id: 'x'.repeat(501) } }],
    [
      'a token of 20,000 characters',
      { status: 201, body: { ...complete, registration_access_token: 'x'.repeat(20_000) } },
    ],
    ['a URI elsewhere', { status: 201, body: { ...complete, registration_client_uri: 'https://evil.example/x' } }],
    ['a broken connection', 'hang up'],
  ] as [string, ProviderReply][])('fails with %s, and a client may exist', async (_, reply) => {
    const outcome = await replyWith(reply);
    expect(outcome).toMatchObject({ kind: 'failed', mayExist: true, cause: expect.any(Error) });
    expect(lines()).toEqual([discovery, post]);
    expect(await failures()).toEqual(counted);
  });

  it('fails without a response in time, and a client may exist', async () => {
    registration = create({ timeout: 1_500 });
    expect(await replyWith('silence')).toMatchObject({ kind: 'failed', mayExist: true });
  });

  it.each([
    ['discovery fails', { [discovery]: { status: 500 } }, {}],
    ['discovery breaks', { [discovery]: 'hang up' }, {}],
    ['discovery is refused', { [discovery]: { status: 401 } }, {}],
    ['its endpoint is elsewhere', {}, { registration_endpoint: 'https://evil.example/clients' }],
  ] as [string, ScriptedProvider['script'], object][])(
    'fails if %s, and no client can exist',
    async (_, script, changes) => {
      Object.assign(provider.script, script);
      Object.assign(provider.metadata, changes);
      expect(await register()).toMatchObject({ kind: 'failed', mayExist: false });
      expect(lines()).toEqual([discovery]);
      expect(await failures()).toEqual(counted);
    },
  );

  it('at an issuer that the operator has mapped needs exactly this issuer', async () => {
    const issuer = `${provider.url}/realms/town`;
    provider.script['POST /auth/realms/town/clients'] = { status: 201, body: issued() };
    registration = create({ issuer });
    expect(await register()).toMatchObject({ kind: 'registered' });
    const { origin } = new URL(provider.url);
    const [path, reply] = ['GET /.well-known/openid-configuration', { status: 200, body: { issuer: `${origin}/` } }];
    provider.script[path] = reply;
    registration = create({ issuer: origin });
    provider.calls = [];
    expect(await register()).toMatchObject({ kind: 'failed', mayExist: false, cause: { name: 'IssuerMismatch' } });
    expect(lines()).toEqual([path]);
  });
});

describe('a registered client', () => {
  const path = '/auth/realms/demo/clients/oidc-1';
  const [put, get, remove] = ['PUT', 'GET', 'DELETE'].map((method) => `${method} ${path}`) as [string, string, string];
  const stored = (): StoredRegistration => ({
    ...{ tenantId: 'urn:example:tenants/demo', clientId: 'permits-web', realm: 'demo', oidcClientId: 'oidc-1' },
    ...{ clientName: null, issuer: null, authentication: 'client_secret_basic', management: 'kept' },
    ...{ clientSecret: 'old secret', registrationAccessToken: 'old token' },
    registrationClientUri: `https://elsewhere.example${path}`,
    redirectUris: ['https://permits.example.org/old'],
    registeredAt: new Date('2026-08-20T17:00:00Z'),
    revision: 3,
  });
  const change = (script: ScriptedProvider['script']) => {
    provider.script = script;
    return registration.change(stored(), metadata);
  };
  const uri = () => `${provider.url}/realms/demo/clients/oidc-1b`;
  const fresh = () => ({
    client_id: 'oidc-1',
    client_secret: 'new secret',
    registration_access_token: 'new token',
    registration_client_uri: uri(),
  });
  const renewed = () => ({
    ...stored(),
    clientSecret: 'new secret',
    registrationAccessToken: 'new token',
    registrationClientUri: uri(),
  });

  it('is changed with its metadata, its credentials and its token, at the address of this provider', async () => {
    expect(await change({ [put]: { status: 200, body: fresh() } })).toEqual({
      kind: 'changed',
      client: { ...renewed(), redirectUris },
    });
    expect(lines()).toEqual([put]);
    const [call] = provider.calls;
    expect(call?.headers).toMatchObject({
      accept: 'application/json',
      authorization: 'Bearer old token',
      // The connection is not kept alive, because it could be half-open when the next call uses it.
      connection: 'close',
      'content-type': 'application/json',
    });
    expect(JSON.parse(call?.body ?? '')).toEqual({ ...metadata, client_id: 'oidc-1', client_secret: 'old secret' });
  });

  it.each([200, 201, 299])('keeps its credentials if a response %i has no others', async (status) => {
    expect(await change({ [put]: { status, body: { client_id: 'oidc-1' } } })).toEqual({
      kind: 'changed',
      client: { ...stored(), redirectUris },
    });
  });

  it.each([400, 403, 422])('is not changed if that is refused with %i, and the code is known', async (status) => {
    expect(await change({ [put]: { status, body: { error: 'invalid_redirect_uri' } } })).toEqual({
      kind: 'refused',
      code: 'invalid_redirect_uri',
    });
    for (const body of ['<html>', 'null', { error: ['invalid_redirect_uri'] }])
      expect(await change({ [put]: { status, body } })).toEqual({ kind: 'refused', code: undefined });
    expect(lines()).toEqual([put, put, put, put]);
  });

  it.each([
    [401, 'lost'],
    [404, 'gone'],
    [410, 'gone'],
  ])('with a response %i is %s, to a change and to the read after one that failed', async (status, kind) => {
    expect(await change({ [put]: { status, body: {} } })).toEqual({ kind });
    expect(await change({ [put]: { status: 500 }, [get]: { status, body: {} } })).toEqual({ kind });
    expect(lines()).toEqual([put, put, get]);
    expect(await failures()).toEqual([]);
  });

  it.each([
    ['an error', { status: 500, body: { client_id: 'oidc-1' } }],
    ['a redirect', { status: 300, body: { client_id: 'oidc-1' } }],
    ['no JSON', { status: 200, body: '{' }],
    ['no client', { status: 200, body: {} }],
    [
      'a URI that cannot be stored',
      { status: 200, body: { client_id: 'oidc-1', registration_client_uri: 'https://a/\u0000' } },
    ],
    ['a broken connection', 'hang up'],
  ] as [string, ProviderReply][])('is read after %s, and is changed if it has the redirect URIs', async (_, reply) => {
    const body = { ...fresh(), redirect_uris: redirectUris.toReversed() };
    expect(await change({ [put]: reply, [get]: { status: 200, body } })).toEqual({
      kind: 'changed',
      client: { ...renewed(), redirectUris },
    });
    expect(lines()).toEqual([put, get]);
    const { headers, body: sent } = provider.calls[1] ?? {};
    expect([headers?.authorization, headers?.['content-type'], sent]).toEqual(['Bearer old token', undefined, '']);
    expect(await failures()).toEqual([]);
  });

  it.each([
    ['others', ['https://permits.example.org/old']],
    ['one more', [...redirectUris, 'https://permits.example.org/old']],
    ['one less', redirectUris.slice(1)],
    ['none', undefined],
  ])('is not changed if it has %s afterwards, and its new token is known', async (_, present) => {
    const body = { ...fresh(), redirect_uris: present };
    expect(await change({ [put]: 'hang up', [get]: { status: 200, body } })).toEqual({
      kind: 'failed',
      client: renewed(),
    });
    expect(await failures()).toEqual(counted);
  });

  it('without redirect URIs is changed if a response shows none afterwards', async () => {
    provider.script = { [put]: 'hang up', [get]: { status: 200, body: fresh() } };
    const outcome = await registration.change(stored(), { ...metadata, redirect_uris: [] });
    expect(outcome).toEqual({ kind: 'changed', client: { ...renewed(), redirectUris: [] } });
  });

  it.each([{ status: 500 }, { status: 200, body: '{' }, 'hang up'] as ProviderReply[])(
    'is in an unknown state if it cannot be read afterwards: %j',
    async (reply) => {
      expect(await change({ [put]: { status: 503 }, [get]: reply })).toEqual({ kind: 'failed' });
      expect(await failures()).toEqual(counted);
    },
  );

  it('is read if a change takes too long', async () => {
    registration = create({ timeout: 1_500 });
    const body = { ...fresh(), redirect_uris: redirectUris };
    expect(await change({ [put]: 'silence', [get]: { status: 200, body } })).toMatchObject({ kind: 'changed' });
  });

  it('is not changed at another host', async () => {
    const elsewhere = { ...stored(), registrationClientUri: 'https://evil.example/clients/oidc-1' };
    expect(await registration.change(elsewhere, metadata)).toEqual({ kind: 'lost' });
    expect(lines()).toEqual([]);
  });

  it('keeps its address if a response moves it to another host', async () => {
    const body = { ...fresh(), registration_client_uri: 'https://evil.example/x', redirect_uris: redirectUris };
    const kept = { ...renewed(), registrationClientUri: stored().registrationClientUri, redirectUris };
    expect(await change({ [put]: { status: 200, body } })).toMatchObject({ kind: 'changed', client: kept });
    expect(await change({ [put]: { status: 500 }, [get]: { status: 200, body } })).toMatchObject({ client: kept });
  });

  it.each([
    [200, 'removed'],
    [204, 'removed'],
    [299, 'removed'],
    [404, 'removed'],
    [401, 'refused'],
  ])('with a response %i to its deletion is %s', async (status, outcome) => {
    provider.script = { [remove]: { status } };
    expect(await registration.remove(stored())).toBe(outcome);
    const [call] = provider.calls;
    expect([call?.headers.authorization, call?.headers['content-type'], call?.body]).toEqual([
      'Bearer old token',
      undefined,
      '',
    ]);
  });

  it.each([
    ...[400, 409, 410, 422].map((status) => [status, 'rejected'] as const),
    ...[300, 403, 429, 500].map((status) => [status, 'failed'] as const),
  ])('may exist after a response %i to its deletion, which %s', async (status, kind) => {
    provider.script = { [remove]: { status } };
    await expect(registration.remove(stored())).rejects.toMatchObject({
      ...{ name: 'PlatformError', service: 'identity-provider', kind, upstreamStatus: status },
    });
  });

  it('may exist if its deletion cannot be sent', async () => {
    provider.script = { [remove]: 'hang up' };
    await expect(registration.remove(stored())).rejects.toMatchObject({
      ...{ name: 'PlatformError', service: 'identity-provider', kind: 'unreachable' },
    });
  });

  it('is not deleted at an identity provider that is not configured any more', async () => {
    const elsewhere = { ...stored(), registrationClientUri: 'https://evil.example/clients/oidc-1' };
    expect(await registration.remove(elsewhere)).toBe('refused');
    expect(await registration.remove({ ...stored(), registrationClientUri: '' })).toBe('refused');
    expect(lines()).toEqual([]);
  });
});
