// Tests the addresses to which browsers are sent. Also tests which metadata, keys and credentials the calls to the
// identity provider use. openid-client is real. A server on the loopback interface replaces the token endpoint, and the
// test supplies the discovery documents.
import { createServer, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { generateKeyPair, type JWTVerifyGetKey, SignJWT } from 'jose';
import * as oidc from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { createTenantIssuers } from '../../service/auth/tenant-issuers.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createProviderAddresses } from '../provider-addresses.ts';
import { createProviderCache } from './provider-cache.ts';
import { type AuthorizationRequest, createRelyingParty } from './relying-party.ts';

let server: Server;
/** The address at which the process calls the identity provider. */
let inner: string;
const outer = 'https://id.example.org/auth';
const mapped = 'https://town.example.org/oidc';
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
/** The body of the last request to the test server, keyed by path. */
let received: Record<string, URLSearchParams>;
let idTokenClaims: object;

beforeAll(async () => {
  keys = await generateKeyPair('ES256');
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    received[request.url ?? ''] = new URLSearchParams(body);
    const now = Math.floor(Date.now() / 1_000);
    const claims = {
      iss: `${outer}/realms/demo`,
      aud: 'oidc-web',
      sub: 'ana',
      iat: now,
      exp: now + 60,
      ...idTokenClaims,
    };
    const idToken = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(keys.privateKey);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ access_token: 'a', token_type: 'bearer', refresh_token: 'next', id_token: idToken }));
  });
  inner = `http://127.0.0.1:${await listenOnLoopback(server)}/auth`;
});
afterAll(() => closeServer(server));
beforeEach(() => {
  received = {};
  idTokenClaims = { nonce: 'the nonce' };
});

const client = { realm: 'demo', oidcClientId: 'oidc-web', clientSecret: 'a secret' };

function create(metadata: Partial<oidc.ServerMetadata> = {}, accessUrl = inner) {
  const addresses = createProviderAddresses({
    ...{ accessUrl, accessPublicUrl: outer },
    tenantIssuers: createTenantIssuers([['town', mapped]]),
  });
  const discovered: string[] = [];
  const provider = {
    fails: false,
    async discover(realm: string): Promise<oidc.ServerMetadata> {
      discovered.push(realm);
      if (provider.fails) throw new TypeError('the provider is away');
      const issuer = realm === 'town' ? mapped : `${outer}/realms/${realm}`;
      return {
        ...{ issuer, authorization_endpoint: `${issuer}/login`, token_endpoint: `${accessUrl}/realms/${realm}/token` },
        ...{ end_session_endpoint: `${issuer}/logout`, jwks_uri: `${accessUrl}/realms/${realm}/certs` },
        ...{ id_token_signing_alg_values_supported: ['ES256'], ...metadata },
      };
    },
  };
  const providers = createProviderCache({ addresses, discover: (realm) => provider.discover(realm), timeout: 7_000 });
  const sources: unknown[][] = [];
  const signingKeys = {
    ofRealm(...given: unknown[]): JWTVerifyGetKey {
      sources.push(given);
      return async () => keys.publicKey;
    },
  };
  const party = createRelyingParty({ addresses, providers, signingKeys, metrics: createMetrics() });
  return { party, providers, discovered, sources, provider };
}

const request = (changes: Partial<AuthorizationRequest> = {}): AuthorizationRequest => ({
  ...{ redirectUri: 'https://app.example.org/callback', scope: ['openid', 'email'], state: 'the state' },
  ...{ nonce: 'the nonce', codeVerifier: 'v'.repeat(43), asked: {}, ...changes },
});

describe('the address of a sign-in', () => {
  const usual = async () => ({
    ...{ client_id: 'oidc-web', response_type: 'code', redirect_uri: 'https://app.example.org/callback' },
    ...{ scope: 'openid email', state: 'the state', nonce: 'the nonce', code_challenge_method: 'S256' },
    code_challenge: await oidc.calculatePKCECodeChallenge('v'.repeat(43)),
  });

  it('is public, and has the parameters of the code flow with PKCE', async () => {
    const { party } = create();
    const url = await party.authorizationUrl(client, request());
    expect(url.origin + url.pathname).toBe(`${outer}/realms/demo/login`);
    expect(Object.fromEntries(url.searchParams)).toEqual(await usual());
  });

  it('passes on what the frontend asked for, and the hint of the client', async () => {
    const { party } = create();
    const asked = { prompt: 'login', max_age: undefined, ui_locales: 'fr' };
    const url = await party.authorizationUrl(client, request({ asked, idpHint: 'eherkenning' }));
    expect(Object.fromEntries(url.searchParams)).toEqual({
      ...(await usual()),
      ...{ prompt: 'login', ui_locales: 'fr', kc_idp_hint: 'eherkenning' },
    });
  });

  it('is public although the provider names the address at which it was called', async () => {
    const { party } = create({ authorization_endpoint: `${inner}/realms/demo/login?kept=1` });
    const url = await party.authorizationUrl(client, request());
    expect(url.href).toMatch(`${outer}/realms/demo/login?kept=1&`);
  });

  it('of a mapped identity provider is the one that it names', async () => {
    const { party } = create();
    const url = await party.authorizationUrl({ ...client, realm: 'town' }, request());
    expect(url.origin + url.pathname).toBe(`${mapped}/login`);
  });

  it('outside the identity provider is refused', async () => {
    const { party } = create({ authorization_endpoint: 'https://evil.example.org/login' });
    await expect(party.authorizationUrl(client, request())).rejects.toThrow(TypeError);
  });
});

describe('the address of a logout', () => {
  it('is public, and lands at the site', async () => {
    const { party } = create();
    const url = await party.endSessionUrl(client, { idToken: 'the token', returnTo: 'https://app.example.org/' });
    expect(url?.href).toBe(
      `${outer}/realms/demo/logout?id_token_hint=the+token&post_logout_redirect_uri=https%3A%2F%2Fapp.example.org%2F&client_id=oidc-web`,
    );
    const without = await party.endSessionUrl(client, { returnTo: 'https://app.example.org/' });
    expect(without?.searchParams.has('id_token_hint')).toBe(false);
  });

  it('does not exist if the provider has no such endpoint', async () => {
    const { party } = create({ end_session_endpoint: undefined as never });
    expect(await party.endSessionUrl(client, { returnTo: '/' })).toBeUndefined();
  });
});

describe('tokens', () => {
  const callback = new URL('https://app.example.org/callback?code=c&state=the+state');
  const checks = { state: 'the state', nonce: 'the nonce', codeVerifier: 'v'.repeat(43) };

  it('are redeemed at the address of calls, and verified with the keys of the realm', async () => {
    const { party, sources } = create();
    const { tokens, claims } = await party.redeem(client, callback, checks);
    expect([tokens.access_token, claims.sub]).toEqual(['a', 'ana']);
    expect(received['/auth/realms/demo/token']?.get('code')).toBe('c');
    expect(sources).toEqual([['demo', 'provider']]);
  });

  it('of another sign-in are refused', async () => {
    idTokenClaims = { nonce: 'another' };
    await expect(create().party.redeem(client, callback, checks)).rejects.toThrow(oidc.ClientError);
  });

  it.each([
    [3, true],
    [20, false],
  ])('whose ID token expired %i s ago are accepted: %s, because clocks differ', async (age, isAccepted) => {
    idTokenClaims = { nonce: 'the nonce', exp: Math.floor(Date.now() / 1_000) - age };
    const { party } = create();
    const redeemed = party.redeem(client, callback, checks);
    if (isAccepted) await expect(redeemed).resolves.toMatchObject({ claims: { sub: 'ana' } });
    else await expect(redeemed).rejects.toThrow();
  });

  it('are refreshed at the address of calls', async () => {
    const { party } = create();
    const original = { subject: 'ana', tokens: { accessToken: 'a', nonce: 'the nonce' } };
    expect(await party.refresh(client, 'the refresh token', original)).toMatchObject({ kind: 'refreshed' });
    expect(received['/auth/realms/demo/token']?.get('refresh_token')).toBe('the refresh token');
    await party.close();
  });

  it.each([
    [undefined, null],
    ['client_secret_post' as const, 'a secret'],
  ])('are requested with the authentication of the client: %s', async (authentication, secret) => {
    await create().party.redeem({ ...client, ...(authentication && { authentication }) }, callback, checks);
    expect(received['/auth/realms/demo/token']?.get('client_secret')).toBe(secret);
  });
});

describe('the metadata of a realm', () => {
  it('is fetched once', async () => {
    const { providers, discovered } = create();
    for (const realm of ['demo', 'demo', 'other']) await providers.configuration(realm, 'oidc-web', oidc.None());
    expect(discovered).toEqual(['demo', 'other']);
  });

  it('configures a call with the id of the client and the timeout', async () => {
    const configuration = await create().providers.configuration('demo', 'oidc-web', oidc.None());
    expect(configuration.clientMetadata().client_id).toBe('oidc-web');
    expect(configuration.timeout).toBe(7);
  });

  it('that cannot be fetched fails with its cause, and is asked for again', async () => {
    const { providers, provider } = create();
    provider.fails = true;
    await expect(providers.configuration('demo', 'x', oidc.None())).rejects.toThrow('the provider is away');
    provider.fails = false;
    await expect(providers.configuration('demo', 'x', oidc.None())).resolves.toBeDefined();
  });

  it('lets people sign in during an outage of discovery, even after their keys were downloaded again', async () => {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000);
    onTestFinished(() => clock.mockRestore());
    const { party, providers, provider, discovered } = create();
    await party.authorizationUrl(client, request());
    clock.mockReturnValue(3_700_000);
    // Waits, because lru-cache reads the time at most once per millisecond.
    await delay(10);
    provider.fails = true;
    for (const attempt of [1, 2, 3]) {
      expect(await providers.keysUrl('demo')).toBe(`${inner}/realms/demo/certs`);
      expect((await party.authorizationUrl(client, request())).pathname).toBe('/auth/realms/demo/login');
      await expect.poll(() => discovered.length).toBe(1 + attempt);
    }
  });

  it('does not allow http, unless one of the configured addresses uses it', async () => {
    const { party } = create({ token_endpoint: 'http://id.example.org/auth/realms/demo/token' }, outer);
    await expect(party.redeem(client, callbackOf(), { ...checksOf() })).rejects.toMatchObject({
      code: 'OAUTH_HTTP_REQUEST_FORBIDDEN',
    });
  });

  const callbackOf = () => new URL('https://app.example.org/callback?code=c&state=s');
  const checksOf = () => ({ state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43) });
});

describe('the address of a realm’s keys', () => {
  it('is known without discovery for the platform’s own provider, and afterwards the one that it names', async () => {
    const { providers, discovered } = create({ jwks_uri: `${outer}/realms/demo/other-certs` });
    expect(await providers.keysUrl('demo')).toBe(`${inner}/realms/demo/protocol/openid-connect/certs`);
    expect(discovered).toEqual([]);
    await providers.configuration('demo', 'x', oidc.None());
    expect(await providers.keysUrl('demo')).toBe(`${inner}/realms/demo/other-certs`);
  });

  it('of a mapped provider is the one that it names', async () => {
    const { providers, discovered } = create({ jwks_uri: `${mapped}/certs` });
    expect(await providers.keysUrl('town')).toBe(`${mapped}/certs`);
    expect(discovered).toEqual(['town']);
  });

  it('must exist, and belong to the provider', async () => {
    await expect(create({ jwks_uri: undefined as never }).providers.keysUrl('town')).rejects.toThrow(
      'publishes no keys',
    );
    await expect(create({ jwks_uri: 'https://evil.example.org/certs' }).providers.keysUrl('town')).rejects.toThrow(
      TypeError,
    );
  });
});
