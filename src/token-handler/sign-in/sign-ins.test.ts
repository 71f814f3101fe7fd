// Tests that the modules for sign-in and logout share what they need: the store of the sessions, the keys, the clock
// and the metrics. Sessions are in memory; the identity provider is scripted.
import { generateKeyPair, SignJWT } from 'jose';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { createMemorySessions, type MemorySessions, memoryKeys } from '../../../test/support/memory-sessions.ts';
import { anonymous, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import type { Client } from '../clients/client.ts';
import { createProviderAddresses } from '../provider-addresses.ts';
import { createSignIns, type SignIns, type SignInsOptions } from './sign-ins.ts';

const tenant = { id: 'urn:tenant:demo', name: 'Demo', realm: 'demo' };
const callbackUrl = 'https://app.example.org/token-handler/clients/web/callback';
const { privateKey, publicKey } = await generateKeyPair('ES256');

let world: MemorySessions;
let metrics: Metrics;
let log: CapturedLog;
let signIns: SignIns;
let app: ListeningApp;
beforeEach(async () => {
  [world, metrics, log] = [createMemorySessions(), createMetrics(), captureLog()];
  signIns = createSignIns({
    ...{ metrics, log: log.log, keys: memoryKeys, sessions: world.sessions, clock: () => new Date(world.now) },
    platform: { tenants: { byRealm: async (realm: string) => (realm === 'demo' ? tenant : undefined) } },
    signingKeys: { ofRealm: () => async () => publicKey },
    addresses: createProviderAddresses({ accessUrl: 'https://id.example.org/auth' }),
    registrations: { find: async () => ({ oidcClientId: 'oidc-web' }) },
  } as unknown as SignInsOptions);
  app = await startApp([
    route({
      ...{ method: 'get', path: '/open', summary: '', responses: {}, audit: 'session.sign-in' },
      guards: [anonymous, signIns.cookieScheme, signIns.browserSession],
      async handle(_input, request, response) {
        const tokens = { access_token: 'access', expires_in: 300, id_token: await sign({ sub: 'ana' }) };
        await signIns.openSession(
          {
            ...{ tenant, client: { id: 'web', core: false } as Client, callbackUrl },
            registration: { oidcClientId: 'oidc-web', issuer: null },
            ...{ redeemed: { claims: { sub: 'ana', sid: 's1' }, tokens }, begun: world.now },
            landing: { attempt: 'attempt', url: 'https://app.example.org/' },
          },
          request,
          response,
        );
        response.json({});
      },
    }),
  ]);
});
afterEach(() => app.close());

const sign = (claims: Record<string, unknown>) =>
  new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);
const logoutToken = () =>
  sign({
    ...{ iss: 'https://id.example.org/auth/realms/demo', aud: 'oidc-web', jti: 'token', sid: 's1' },
    ...{ iat: world.now / 1_000, exp: world.now / 1_000 + 60 },
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  });
const valuesOf = async (metric: string) => (await metrics.registry.getSingleMetric(metric)?.get())?.values;
const sessionsOfAna = async () => (await world.sessions.ofUser(tenant.id, 'ana')).length;

it('an attempt works once for the browser that has its cookie, and another pod knows that it was used', async () => {
  const { id, state, sealed } = signIns.attempts.begin({ tenantId: tenant.id, clientId: 'web', callbackUrl });
  const find = (cookie: string) => signIns.attemptCookies.find({ headers: { cookie } } as never, state);
  expect(find(`other.${id}=${sealed}`)).toBeUndefined();
  const attempt = find(`formgate_session.${id}=${sealed}`);
  expect(attempt).toMatchObject({ id, begun: world.now, signIn: { clientId: 'web' } });
  if (!attempt) throw new Error('no attempt');
  expect(await signIns.attempts.claim(attempt)).toBe(true);
  expect(await world.sessions.marks.claim(`attempt:${id}`, 1, 1_000)).toBe(false);
});

it('a sign-in opens a session, which a logout of the identity provider ends', async () => {
  const opened = await fetch(`${app.url}/open`);
  expect(opened.status).toBe(200);
  expect(opened.headers.getSetCookie()).toEqual([
    expect.stringMatching(/^XSRF-TOKEN=/),
    expect.stringMatching(/^formgate_session=s%3A/),
  ]);
  expect(await sessionsOfAna()).toBe(1);
  const token = await signIns.verifyLogoutToken(await logoutToken());
  const logout = await token.logoutOf('web');
  // The algorithm of the ID token was kept at the sign-in.
  expect(await signIns.providerLogouts.end({ ...logout, jti: 'other', algorithm: 'RS256' })).toBe('other algorithm');
  expect(await signIns.providerLogouts.end(logout)).toBe(1);
  expect(await sessionsOfAna()).toBe(0);
});

it('a sign-in that the identity provider ends in the meantime opens no session', async () => {
  const logout = { jti: 'token', tenantId: tenant.id, clientId: 'web', sid: 's1', algorithm: 'ES256' };
  await signIns.providerLogouts.end(logout);
  expect((await fetch(`${app.url}/open`)).status).toBe(401);
  expect(await sessionsOfAna()).toBe(0);
});

it('a pod counts sign-ins and logouts in its metrics, and logs a client whose sign-ins keep failing', async () => {
  signIns.outcomes.succeeded({ tenantId: tenant.id, clientId: 'web' });
  signIns.logouts.count('person');
  expect(await valuesOf('formgate_sign_ins_total')).toMatchObject([{ labels: { outcome: 'succeeded' }, value: 1 }]);
  expect(await valuesOf('formgate_logouts_total')).toMatchObject([{ labels: { kind: 'person' }, value: 1 }]);
  const failing = signIns.outcomes.observe('callback', {
    handle: () => Promise.reject(new Problem('dependency-failed')),
  } as never);
  const response = { locals: { signInFacts: { checked: { tenantId: tenant.id, clientId: 'web' } } } };
  for (let time = 0; time < 5; time += 1)
    await expect(failing.handle?.({} as never, {} as never, response as never)).rejects.toThrow(Problem);
  expect(log.lines()).toMatchObject([{ client: 'web', msg: 'sign-ins of a client keep failing' }]);
});

it('a cookie that requires https is refused over http at the beginning of a sign-in', () => {
  Object.assign(world.sessions.cookie, { name: '__Host-session' });
  const { cookieScheme } = createSignIns({
    ...{ metrics: createMetrics(), sessions: world.sessions, platform: {} },
  } as unknown as SignInsOptions);
  expect(() => cookieScheme.check({ secure: false } as never, {} as never)).toThrow(Problem);
  expect(cookieScheme.check({ secure: true } as never, {} as never)).toBeUndefined();
});
