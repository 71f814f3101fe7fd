// Tests how the response to a refresh is classified, and especially whether the refresh token may be sent again.
// openid-client and undici are real; a server on the loopback interface replaces the token endpoint.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { generateKeyPair, jwtVerify, SignJWT } from 'jose';
import * as oidc from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createProviderAddresses } from '../provider-addresses.ts';
import type { OriginalTokens, RefreshOutcome } from '../sessions/session.ts';
import type { VerifyJwt } from './id-token.ts';
import { createTokenRefresh } from './token-refresh.ts';

const now = new Date('2026-11-22T12:00:00Z');
const seconds = now.getTime() / 1_000;
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
let server: Server;
let base: string;
let respond: (response: ServerResponse, request: IncomingMessage) => void;
let received: { body: string; authorization: string | undefined }[];
let connections = 0;
let counted: unknown[][];

beforeAll(async () => {
  keys = await generateKeyPair('ES256');
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    received.push({ body, authorization: request.headers.authorization });
    respond(response, request);
  });
  server.on('connection', () => {
    connections += 1;
  });
  base = `http://127.0.0.1:${await listenOnLoopback(server)}/auth`;
});
afterAll(() => closeServer(server));
beforeEach(() => {
  [received, counted] = [[], []];
});

const metrics = {
  dependencyCalled: (name: string, outcome: string, took: number) =>
    counted.push([name, outcome, took >= 0 && took < 5]),
  dependencyFailures: { inc: (labels: object) => counted.push(['failure', labels]) },
} as unknown as Metrics;
const verify: VerifyJwt = (token, options) => jwtVerify(token, keys.publicKey, options);

interface Given {
  url?: string;
  configure?: () => Promise<oidc.Configuration>;
  verify?: VerifyJwt;
  tokens?: Partial<OriginalTokens['tokens']>;
  /** Timeout of the token request in seconds. The default is long, because the machine may be busy. */
  timeout?: number;
}

function start(given: Given): { outcome: Promise<RefreshOutcome>; close(): Promise<void> } {
  const url = given.url ?? base;
  const { refresh: send, close } = createTokenRefresh({
    ...{
      addresses: createProviderAddresses({ accessUrl: url }),
      metrics,
      refreshTimeout: given.timeout ?? 20_000,
      clock: () => now,
    },
    verifier: (realm) => (realm === 'demo' ? (given.verify ?? verify) : Promise.reject),
    configure: given.configure ?? (async () => configurationFor(url)),
  });
  const client = { realm: 'demo', oidcClientId: 'oidc-web', clientSecret: 'a secret' };
  const original = { subject: 'ana', tokens: { accessToken: 'a', ...given.tokens } };
  return { outcome: send(client, 'the refresh token', original), close };
}

async function refresh(given: Given = {}): Promise<RefreshOutcome> {
  const { outcome, close } = start(given);
  return outcome.finally(close);
}

function configurationFor(url: string): oidc.Configuration {
  const metadata = { issuer: `${url}/realms/demo`, token_endpoint: `${url}/realms/demo/token` };
  const configuration = new oidc.Configuration(metadata, 'oidc-web', {}, oidc.ClientSecretBasic('a secret'));
  oidc.allowInsecureRequests(configuration);
  return configuration;
}

const signIdToken = (claims: object = {}) =>
  new SignJWT({ iss: `${base}/realms/demo`, aud: 'oidc-web', sub: 'ana', iat: seconds, exp: seconds + 60, ...claims })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(keys.privateKey);

function answer(status: number, body: unknown, headers: Record<string, string> = {}): void {
  respond = (response) =>
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
}
const good = { access_token: 'new', token_type: 'bearer', expires_in: 300, refresh_token: 'next' };

describe('a refresh', () => {
  it('sends the refresh token once, over a new connection, and returns the tokens of the person', async () => {
    const idToken = await signIdToken();
    answer(200, { ...good, id_token: idToken });
    const before = connections;
    expect(await refresh()).toMatchObject({ kind: 'refreshed', response: { ...good, id_token: idToken } });
    expect(Object.fromEntries(new URLSearchParams(received[0]?.body))).toEqual({
      ...{ grant_type: 'refresh_token', refresh_token: 'the refresh token' },
    });
    expect(received[0]?.authorization).toMatch(/^Basic ./);
    expect([received.length, connections - before]).toEqual([1, 1]);
    expect(counted).toEqual([['identity-provider', 'ok', true]]);
  });

  it('may return an ID token that has expired by the clock of this process', async () => {
    answer(200, { ...good, id_token: await signIdToken({ exp: seconds - 60 }) });
    expect(await refresh()).toMatchObject({ kind: 'refreshed' });
  });

  it('may return no ID token', async () => {
    answer(200, good);
    const outcome = await refresh();
    expect(outcome).toMatchObject({ kind: 'refreshed', response: good });
    expect(outcome).not.toHaveProperty('response.id_token');
  });

  it.each<[string, object, string]>([
    ['of another person', { sub: 'ben' }, 'sub'],
    ['of another issuer', { iss: 'https://evil.example.org' }, 'iss'],
    ['of another person that has expired', { sub: 'ben', exp: seconds - 60 }, 'sub'],
  ])('with an ID token %s ends the session', async (_whose, claims, check) => {
    answer(200, { ...good, id_token: await signIdToken(claims) });
    expect(await refresh()).toEqual({ kind: 'foreign', check });
    expect(counted).toEqual([
      ['identity-provider', 'ok', true],
      ['failure', { dependency: 'identity-provider', kind: 'refresh-foreign' }],
    ]);
  });
});

describe('the refresh token may be sent again', () => {
  const failure = [
    ['identity-provider', 'unreachable', true],
    ['failure', { dependency: 'identity-provider', kind: 'refresh-unused' }],
  ];

  it('if the provider could not be reached', async () => {
    const closed = createServer();
    const port = await listenOnLoopback(closed);
    closed.close();
    await once(closed, 'close');
    expect(await refresh({ url: `http://127.0.0.1:${port}/auth` })).toEqual({ kind: 'unused' });
    expect(counted).toEqual(failure);
  });

  it('if the provider’s metadata or keys could not be fetched before', async () => {
    const away = () => Promise.reject(new Error('away'));
    expect(await refresh({ configure: away })).toEqual({ kind: 'unused' });
    expect(await refresh({ verify: away, tokens: { idToken: await signIdToken() } })).toEqual({ kind: 'unused' });
    expect(received).toEqual([]);
  });

  it.each<[number, string | undefined, number]>([
    [429, undefined, 0],
    [429, '0', 0],
    [429, '5', 5_000],
    [429, '60', 60_000],
    [429, '61', 60_000],
    [429, 'soon', 0],
    [429, 'soon 5', 0],
    [429, 'Sun, 22 Nov 2026 12:00:07 GMT', 7_000],
    [429, '22 Nov 2026 12:00:07 GMT', 7_000],
    [429, 'Sun, 22 Nov 2026 12:00:07 +0000', 7_000],
    [429, 'Sun, 22 Nov 2026 11:59:00 GMT', 0],
    [503, '10', 10_000],
  ])('after %i with Retry-After %s, in %i ms', async (status, retryAfter, pause) => {
    answer(status, {}, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
    expect(await refresh()).toEqual({ kind: 'unused', retryAfter: pause });
    expect(counted).toEqual(failure);
  });

  it('after 429 with a body that is not JSON', async () => {
    answer(429, 'slow down', { 'retry-after': '5' });
    expect(await refresh()).toEqual({ kind: 'unused', retryAfter: 5_000 });
  });

  it.each(['invalid_client', 'unauthorized_client'])('after the client was rejected with %s', async (error) => {
    answer(401, { error });
    expect(await refresh()).toEqual({ kind: 'client-refused' });
    answer(401, { error }, { 'www-authenticate': 'Basic realm="x"' });
    expect(await refresh()).toEqual({ kind: 'client-refused' });
    expect(counted.slice(0, 2)).toEqual([
      ['identity-provider', 'ok', true],
      ['failure', { dependency: 'identity-provider', kind: 'refresh-client-refused' }],
    ]);
  });
});

describe('the refresh token is never sent again', () => {
  it('after the provider has refused it', async () => {
    answer(400, { error: 'invalid_grant' });
    expect(await refresh()).toEqual({ kind: 'refused' });
    expect(counted).toEqual([
      ['identity-provider', 'ok', true],
      ['failure', { dependency: 'identity-provider', kind: 'refresh-refused' }],
    ]);
  });

  it.each<[string, () => void]>([
    ['500', () => answer(500, {})],
    ['503 without Retry-After', () => answer(503, {})],
    ['504 with Retry-After', () => answer(504, {}, { 'retry-after': '1' })],
    ['400 for the client', () => answer(400, { error: 'invalid_client' })],
    ['400 of another kind', () => answer(400, { error: 'invalid_request' })],
    ['401 of a gateway', () => answer(401, 'no', { 'www-authenticate': 'Basic realm="gateway"' })],
    ['401 of another kind', () => answer(401, { error: 'access_denied' })],
    ['a redirect', () => answer(307, {}, { location: '/auth/realms/demo/other' })],
    ['200 with invalid JSON', () => answer(200, '{"access_token": "x')],
    ['200 with JSON null', () => answer(200, 'null')],
    ['200 without an access token', () => answer(200, {})],
    ['200 with an ID token that is no text', () => answer(200, { ...good, id_token: 7 })],
    ['a response of more than a megabyte', () => answer(200, { ...good, padding: 'x'.repeat(1024 * 1024) })],
    [
      'a reset connection',
      () => {
        respond = (_response, { socket }) => socket.destroy();
      },
    ],
    [
      'half a response',
      () => {
        respond = (response, { socket }) => {
          response.writeHead(429, { 'content-length': '100' }).write('{');
          setImmediate(() => socket.destroy());
        };
      },
    ],
  ])('after %s', async (_what, prepare) => {
    prepare();
    expect(await refresh()).toEqual({ kind: 'unknown' });
    expect(received).toHaveLength(1);
    expect(counted).toEqual([
      ['identity-provider', 'failed', true],
      ['failure', { dependency: 'identity-provider', kind: 'refresh-unknown' }],
    ]);
  });

  it('after no response in time', async () => {
    respond = () => undefined;
    expect(await refresh({ timeout: 200 })).toEqual({ kind: 'unknown' });
  });

  it('after the process has stopped during the request', async () => {
    const { promise: asked, resolve: respondNever } = Promise.withResolvers<unknown>();
    respond = respondNever;
    const { outcome, close } = start({ timeout: 600_000 });
    await asked;
    await close();
    expect(await outcome).toEqual({ kind: 'unknown' });
  });

  it('after a response that cannot be checked, because the keys cannot be fetched', async () => {
    answer(200, { ...good, id_token: await signIdToken() });
    expect(await refresh({ verify: () => Promise.reject(new TypeError('away')) })).toEqual({ kind: 'unknown' });
    expect(received).toHaveLength(1);
  });

  it('although a large response of less than a megabyte is read', async () => {
    answer(200, { ...good, padding: 'x'.repeat(1024 * 1024 - 200) });
    expect(await refresh()).toMatchObject({ kind: 'refreshed' });
  });
});
