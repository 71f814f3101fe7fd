// Tests how the logout routes present the outcomes of the modules that they call, which are scripted. Tests with an
// identity provider are in logout.test.ts and backchannel.test.ts.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { createMemorySessions, type MemorySessions, tenantId } from '../../../test/support/memory-sessions.ts';
import type { Tenant } from '../../service/auth/identity.ts';
import { systemClock } from '../../service/clock.ts';
import { anonymous } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { createRateLimits } from '../../service/limits/rate-limit.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import type { Client } from '../clients/client.ts';
import type { Registration } from '../clients/registration.ts';
import type { Session } from '../sessions/session.ts';
import { browserSession } from '../sign-in/browser-session.ts';
import { LogoutRefusal } from './logout-token.ts';
import type { ProviderLogout } from './provider-logouts.ts';
import { backchannelRoute, type LogoutOptions, logoutRoute } from './routes.ts';

const unavailable = () => Promise.reject(new Problem('unavailable', 'The store cannot be reached.'));
const limits = createRateLimits({ clock: systemClock, log: captureLog().log, metrics: createMetrics() });

let world: MemorySessions;
let log: CapturedLog;
let counted: unknown[];
let invalid: string[];
let options: LogoutOptions;
let app: ListeningApp;
beforeEach(async () => {
  world = createMemorySessions();
  log = captureLog();
  [counted, invalid] = [[], []];
  options = {
    ...{ sessions: world.sessions, log: log.log, notEmbedded: anonymous, signOutLimit: anonymous },
    invalidLogoutTokens: { name: 'invalidLogoutTokens', check: () => void invalid.push('counted') },
    browserSession: browserSession(world.sessions.cookie, world.sessions.records),
    validLogoutTokens: limits.local({ name: 'valid', most: 100_000, window: 60_000 }),
    logouts: { count: (...given) => void counted.push(given) },
    tenants: { byId: async (id) => ({ id, name: 'Demo', realm: 'demo' }) satisfies Tenant },
    catalog: { find: async () => ({ id: 'web', keycloakLogout: true }) as Client },
    registrations: { find: async () => ({ realm: 'demo', oidcClientId: 'oidc-web' }) as Registration },
    relyingParty: {
      endSessionUrl: async (_registration, hint) => new URL(`https://id.example.org/?${JSON.stringify(hint)}`),
    },
    providerLogouts: {
      end: async () => 3,
      keepAlgorithm: async () => undefined,
      time: async () => 0,
      hasEnded: async () => false,
    },
    verifyLogoutToken: async (token) => ({
      tenantId,
      logoutOf: async (clientId): Promise<ProviderLogout> => ({ jti: token, tenantId, clientId, algorithm: 'ES256' }),
    }),
  };
  app = await startApp([logoutRoute(options), backchannelRoute(options)]);
});
afterEach(() => app.close());

describe('a back-channel logout', () => {
  const form = 'application/x-www-form-urlencoded';
  const send = async (body = 'logout_token=one', headers: Record<string, string> = { 'content-type': form }) => {
    const url = `${app.url}/token-handler/v1/clients/web/backchannel-logout`;
    // Fetch adds a content type to a text, but none to bytes.
    const response = await fetch(url, { method: 'POST', body: Buffer.from(body), headers });
    return { status: response.status, text: await response.text() };
  };
  const refusal = { error: 'invalid_request', error_description: 'The logout token is invalid.' };
  const refused = { status: 400, text: JSON.stringify(refusal) };

  it('is counted and logged with the number of ended sessions', async () => {
    expect(await send()).toEqual({ status: 200, text: '' });
    expect(counted).toEqual([['back-channel', 3]]);
    expect(log.lines()).toMatchObject([{ tenant: tenantId, client: 'web', ended: 3 }]);
    expect(await app.requestLines(1)).toMatchObject([
      { audit: { action: 'session.end-by-provider', actor: { kind: 'identity-provider' }, tenant: tenantId } },
    ]);
  });

  it.each([
    ['used', 'the token was used before'],
    ['other algorithm', 'ID tokens are signed with another algorithm'],
  ] as const)('whose token is refused (%s) gets 400, and the log says why', async (outcome, reason) => {
    options.providerLogouts.end = async () => outcome;
    expect(await send()).toEqual(refused);
    expect(counted).toEqual([]);
    expect(log.lines()).toMatchObject([{ client: 'web', err: { message: reason } }]);
  });

  it('gets 503 while its token cannot be verified, or the sessions cannot be ended; it does not count as invalid', async () => {
    options.providerLogouts.end = unavailable;
    expect((await send()).status).toBe(503);
    options.verifyLogoutToken = unavailable;
    await app.close();
    app = await startApp([backchannelRoute(options)]);
    expect((await send()).status).toBe(503);
    expect(log.lines()).toEqual([]);
    expect(invalid).toEqual([]);
  });

  it('whose body is too large gets 413', async () => {
    const longest = `logout_token=${'x'.repeat(16_371)}`;
    expect((await send(longest)).status).toBe(200);
    expect((await send(`${longest}x`)).status).toBe(413);
  });

  it.each([
    ['as plain text', undefined, { 'content-type': 'text/plain' }],
    ['with a type that ends like a form', undefined, { 'content-type': `x-${form}` }],
    ['with a type that begins like a form', undefined, { 'content-type': `${form}ed` }],
    ['without a content type', undefined, {}],
    ['without a token', 'other=one', undefined],
    ['with two tokens', 'logout_token=one&logout_token=two', undefined],
  ])('%s gets 400', async (_what, body, headers) => {
    expect(await send(body, headers)).toEqual(refused);
    expect([counted, invalid]).toEqual([[], ['counted']]);
  });

  it.each([`${form}; charset=utf-8`, `${form} ;charset=utf-8`, form.toUpperCase()])(
    'with the content type %s is accepted',
    async (type) => {
      expect((await send(undefined, { 'content-type': type })).status).toBe(200);
    },
  );

  it('whose token is for another client gets 400', async () => {
    options.verifyLogoutToken = async () => ({ tenantId, logoutOf: () => Promise.reject(new LogoutRefusal('other')) });
    await app.close();
    app = await startApp([backchannelRoute(options)]);
    expect(await send()).toEqual(refused);
  });
});

describe('a logout by the person', () => {
  const signOut = async (headers: Record<string, string> = {}, session: Partial<Session> = {}) => {
    const { request } = await world.open({ session, tokens: { idToken: 'id token' } });
    const response = await fetch(`${app.url}/token-handler/v1/clients/web/logout`, {
      redirect: 'manual',
      headers: { cookie: request().headers.cookie ?? '', ...headers },
    });
    return [response.status, decodeURIComponent(response.headers.get('location') ?? '')];
  };
  const toRoot = [302, '/'];

  it('redirects to the identity provider with the ID token, and counts once', async () => {
    const hint = '{"returnTo":"https://app.example.org/","idToken":"id token"}';
    expect(await signOut()).toEqual([302, `https://id.example.org/?${hint}`]);
    expect(counted).toEqual([['person']]);
    expect(log.lines()).toEqual([]);
    const [line] = await app.requestLines(1);
    const object = { type: 'session', id: expect.stringMatching(/./) };
    expect(line).toMatchObject({ audit: { action: 'session.sign-out', tenant: tenantId, object } });
  });

  it('happens when the person follows the link, not when the browser loads it in advance', async () => {
    expect(await signOut({ 'sec-purpose': 'prefetch' })).toEqual([403, '']);
    expect(counted).toEqual([]);
  });

  it('without a session redirects to the root, and is not audited', async () => {
    const response = await fetch(`${app.url}/token-handler/v1/clients/web/logout`, { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual(toRoot);
    expect(counted).toEqual([]);
    const [line] = await app.requestLines(1);
    expect(line).not.toHaveProperty('audit');
  });

  it('redirects without the ID token if the client was registered again', async () => {
    options.registrations.find = async () => ({ realm: 'demo', oidcClientId: 'newer' }) as Registration;
    expect(await signOut()).toEqual([302, 'https://id.example.org/?{"returnTo":"https://app.example.org/"}']);
  });

  it.each<[string, () => void]>([
    ['the tenant does not exist any more', () => (options.tenants.byId = async () => undefined)],
    ['the client does not exist any more', () => (options.catalog.find = async () => undefined)],
    ['the client is not registered', () => (options.registrations.find = async () => undefined)],
    [
      'the identity provider has no page for logouts',
      () => (options.relyingParty.endSessionUrl = async () => undefined),
    ],
  ])('stays at the token handler, and nothing is logged, if %s', async (_what, change) => {
    change();
    expect(await signOut()).toEqual(toRoot);
    expect(counted).toEqual([['person']]);
    expect(log.lines()).toEqual([]);
  });

  it.each<[string, () => void]>([
    ['tenant service', () => (options.tenants.byId = unavailable)],
    ['configuration service', () => (options.catalog.find = unavailable)],
  ])('does what the client asked for at the sign-in while the %s fails, and logs it', async (_what, change) => {
    change();
    const [, location] = await signOut({}, { keycloakLogout: true });
    expect(location).toMatch(/^https:\/\/id\.example\.org\//);
    expect(await signOut({}, { keycloakLogout: false })).toEqual(toRoot);
    expect(await signOut()).toEqual(toRoot);
    expect(log.lines()).toMatchObject(Array(3).fill({ msg: 'client not read for a logout' }));
  });

  it('stays at the token handler if the session has no site to return to', async () => {
    expect(await signOut({}, { site: '' })).toEqual(toRoot);
    expect(counted).toEqual([['person']]);
  });

  it('stays at the token handler if the identity provider fails, and the log names the session', async () => {
    options.relyingParty.endSessionUrl = unavailable;
    expect(await signOut()).toEqual(toRoot);
    expect(log.lines()).toMatchObject([{ session: expect.any(String), err: { type: 'Problem' } }]);
  });
});
