// Tests how the route that completes a sign-in presents the outcomes of the modules that it calls, which are scripted.
// Tests with an identity provider are in sign-in-flow.test.ts and asked-parameters.test.ts.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  oidcRegistration,
  otherTenant,
  type SignInRoutes,
  signInCallback,
  signInTenant,
  startSignInRoutes,
} from '../../../test/support/sign-in-routes.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Registration } from '../clients/registration.ts';
import { attemptId } from './attempts.ts';

const unavailable = () => Promise.reject(new Problem('unavailable', 'The store cannot be reached.'));
const site = 'https://app.example.org';
const checked = { tenantId: signInTenant.id, clientId: 'web' };

let world: SignInRoutes;
beforeEach(async () => {
  world = await startSignInRoutes();
});
afterEach(() => world.app.close());

/** Returns the audit events of the callbacks so far, after `count` requests. */
const auditOf = async (count: number) =>
  (await world.app.requestLines(count)).flatMap(({ audit }) => (audit === undefined ? [] : [audit]));
const removal = expect.stringMatching(/^session\.[\w-]{16}=; Path=\/token-handler\/clients\/web; Expires=Thu, 01 Jan/);
/** Expects that the code was not redeemed, and that the browser can load the callback again. */
const expectUntouched = ({ setCookies }: { setCookies: string[] }) => {
  const { claimed, redeemed, opened } = world.calls;
  expect({ setCookies, claimed, redeemed, opened }).toEqual({ setCookies: [], claimed: [], redeemed: [], opened: [] });
};

describe('a callback with a code', () => {
  it('redeems the code, opens the session, counts the sign-in and removes the cookie of the attempt', async () => {
    const begun = await world.begin({ returnTo: '/here?x=1' });
    world.now += 60_000;
    const answered = await world.finish(begun, 'code=a-code&iss=https%3A%2F%2Fid.example.org');
    expect(answered).toMatchObject({ status: 302, location: `${site}/here?x=1`, setCookies: [removal] });
    const [[, sent] = []] = world.calls.authorizations;
    const url = new URL(`${signInCallback}?state=${begun.state}&code=a-code&iss=https%3A%2F%2Fid.example.org`);
    const { state } = begun;
    const { nonce, codeVerifier } = sent ?? {};
    expect(world.calls.redeemed).toStrictEqual([
      [oidcRegistration, url, { state, nonce, codeVerifier, earliestAuthTime: undefined }],
    ]);
    expect(world.calls.opened).toEqual([
      {
        ...{ tenant: signInTenant, client: world.client, registration: oidcRegistration, callbackUrl: signInCallback },
        redeemed: { tokens: { access_token: 'a token' }, claims: { sub: 'ana' } },
        begun: world.now,
        landing: { attempt: attemptId(state), url: `${site}/here?x=1` },
      },
    ]);
    expect(world.calls.counted).toEqual([checked]);
    expect(world.calls.claimed).toEqual([[`attempt:${attemptId(state)}`, 600_000]]);
  });

  it('is audited as a sign-in of the person', async () => {
    await world.finish(await world.begin());
    const actor = { kind: 'person', id: 'ana', clientId: 'web' };
    expect(await auditOf(2)).toMatchObject([
      { action: 'session.sign-in', actor, tenant: signInTenant.id, outcome: 'succeeded' },
    ]);
  });

  it('lands at the page of the client, or else at the root', async () => {
    expect((await world.finish(await world.begin())).location).toBe(`${site}/`);
    world.client.successRedirectUrl = '/welcome';
    expect((await world.finish(await world.begin())).location).toBe(`${site}/welcome`);
    expect((await world.finish(await world.begin({ returnTo: '/here' }))).location).toBe(`${site}/here`);
  });

  it('counts the max_age of the frontend from the start of the attempt', async () => {
    const start = world.now;
    for (const max_age of ['0', '60']) {
      const begun = await world.begin({ max_age });
      world.now += 120_000;
      await world.finish(begun);
      world.now = start;
    }
    expect(world.calls.redeemed.map(([, , { earliestAuthTime }]) => earliestAuthTime)).toEqual([start, start - 60_000]);
  });

  it('checks its rate limit, and HEAD does not redeem it', async () => {
    const { state, cookie } = await world.begin();
    const url = `${world.app.url}/token-handler/v1/clients/web/callback?state=${state}&code=a-code`;
    expect((await fetch(url, { method: 'HEAD', headers: { cookie } })).status).toBe(405);
    world.calls.guards.length = 0;
    world.options.signInLimit.check = () => Promise.reject(new Problem('too-many-requests', 'too many'));
    const refused = await world.finish({ state, cookie });
    expect(refused.status).toBe(429);
    expectUntouched(refused);
  });
});

describe('a callback that the browser loads again', () => {
  const landings = (state: string) => [
    { attempt: 'another', url: `${site}/other` },
    { attempt: attemptId(state), url: `${site}/here` },
  ];

  it('lands where it landed first, without another sign-in or audit event', async () => {
    const begun = await world.begin();
    world.session = { signedIn: { clientId: 'web', handle: 'handle' }, landings: landings(begun.state) };
    const read: string[] = [];
    world.options.sessions.read = async (handle) => {
      read.push(handle);
      return {} as never;
    };
    const answered = await world.finish(begun);
    expect(answered).toMatchObject({ status: 302, location: `${site}/here` });
    expect(read).toEqual(['handle']);
    expectUntouched(answered);
    expect(await auditOf(2)).toEqual([]);
  });

  it.each<[string, () => void]>([
    ['the session has ended', () => (world.options.sessions.read = async () => undefined)],
    ['the session is of another client', () => (world.session.signedIn = { clientId: 'old', handle: 'handle' })],
    ['the browser is not signed in', () => delete world.session.signedIn],
    ['it belongs to another attempt', () => world.session.landings?.pop()],
    ['the session has no landings', () => delete world.session.landings],
  ])('completes the sign-in instead if %s', async (_what, change) => {
    const begun = await world.begin();
    world.session = { signedIn: { clientId: 'web', handle: 'handle' }, landings: landings(begun.state) };
    world.options.sessions.read = async () => ({}) as never;
    change();
    expect(await world.finish(begun)).toMatchObject({ status: 302, location: `${site}/` });
    expect(world.calls.opened).toHaveLength(1);
  });

  it('gets 503 while the session cannot be read, and can be loaded again', async () => {
    const begun = await world.begin();
    world.session = { signedIn: { clientId: 'web', handle: 'handle' }, landings: landings(begun.state) };
    world.options.sessions.read = unavailable;
    const answered = await world.finish(begun);
    expect(answered.status).toBe(503);
    expectUntouched(answered);
  });
});

describe('a callback that does not belong to a sign-in of this browser', () => {
  const refusal = { status: 400, pointer: '/query/state', detail: expect.stringContaining('Sign in again') };

  it('gets 400 without an attempt in a cookie, or with that of another sign-in', async () => {
    const [begun, other] = [await world.begin(), await world.begin()];
    for (const cookie of ['', other.cookie]) {
      const answered = await world.finish({ ...begun, cookie });
      expect(answered).toMatchObject(refusal);
      expectUntouched(answered);
      expect(world.facts).toBeUndefined();
    }
  });

  it('gets 400 if the sign-in is of another client', async () => {
    const { state, cookie } = await world.begin();
    const answered = await world.visit(`other/callback?state=${state}&code=a-code`, { cookie });
    expect(answered).toMatchObject(refusal);
    expectUntouched(answered);
  });

  it('gets 400 if the attempt was used before, and the page can start the sign-in again', async () => {
    const begun = await world.begin({ login_hint: 'ana' });
    await world.finish(begun);
    expect(await world.finish(begun)).toMatchObject({ ...refusal, setCookies: [removal] });
    expect(world.calls.redeemed).toHaveLength(1);
    expect(world.facts).toMatchObject({ attempt: { clientId: 'web', asked: { login_hint: 'ana' } } });
    const [, event] = await auditOf(3);
    expect(event).toMatchObject({ actor: { kind: 'browser' }, tenant: signInTenant.id, outcome: 'refused' });
  });

  it('is audited without a tenant, because none is known', async () => {
    await world.visit('web/callback?state=unknown&code=a-code');
    const [event] = await auditOf(1);
    expect(event).toMatchObject({ action: 'session.sign-in', outcome: 'refused' });
    expect(event).not.toHaveProperty('tenant');
  });

  it.each([
    ['state', 'code=a-code'],
    ['code', 'state=unknown'],
  ])('gets 400 that names the field without %s', async (name, query) => {
    const answered = await world.visit(`web/callback?${query}`);
    expect(answered).toMatchObject({ status: 400, pointer: `/query/${name}` });
  });
});

describe('a callback on the domain of a tenant', () => {
  it.each(['demo', signInTenant.id])(
    'completes a sign-in of this tenant, which the header names as %s',
    async (name) => {
      expect((await world.finish(await world.begin(), undefined, { 'X-Tenant': name })).status).toBe(302);
    },
  );

  it.each(['other', otherTenant.id, 'nobody'])('refuses the sign-in of another tenant with 400 (%s)', async (name) => {
    const answered = await world.finish(await world.begin(), undefined, { 'X-Tenant': name });
    expect(answered).toMatchObject({ status: 400, pointer: '/headers/X-Tenant', detail: 'names another tenant' });
    expectUntouched(answered);
    expect(world.facts).toBeUndefined();
    expect(await auditOf(2)).toMatchObject([{ tenant: signInTenant.id, outcome: 'refused' }]);
  });
});

describe('a callback whose sign-in has lost its ground', () => {
  const attempt = { ...checked, callbackUrl: signInCallback };

  it.each<[string, number, () => void, object]>([
    ['tenant', 404, () => (world.options.tenants.byId = async () => undefined), { attempt }],
    ['client', 404, () => (world.options.catalog.find = async () => undefined), { attempt, tenant: 'Demo' }],
    [
      ...(['registration', 409] as const),
      () => (world.options.registrations.find = async () => undefined),
      { attempt, tenant: 'Demo', client: 'Web', checked },
    ],
  ])('gets a refusal if the %s is gone: %i, and can be loaded again', async (_what, status, change, facts) => {
    const begun = await world.begin();
    change();
    const answered = await world.finish(begun);
    expect(answered.status).toBe(status);
    expectUntouched(answered);
    expect(world.facts).toEqual(facts);
  });

  it.each<[string, () => void]>([
    ['tenants', () => (world.options.tenants.byId = unavailable)],
    ['clients', () => (world.options.catalog.find = unavailable)],
    ['registrations', () => (world.options.registrations.find = unavailable)],
    ['marks of used attempts', () => (world.options.attempts.claim = unavailable)],
    ['clock of the store', () => (world.options.providerLogouts.time = unavailable)],
  ])('gets 503 while the %s cannot be reached, and can be loaded again', async (_what, change) => {
    const begun = await world.begin();
    change();
    const answered = await world.finish(begun);
    expect(answered.status).toBe(503);
    expectUntouched(answered);
    expect(await auditOf(2)).toMatchObject([{ outcome: 'failed' }]);
  });

  it('signs in when it is loaded again after the store has stored a mark but its response was lost', async () => {
    const begun = await world.begin();
    const { claim } = world.marks;
    world.marks.claim = async (...given) => {
      world.marks.claim = claim;
      await claim(...given);
      return unavailable();
    };
    const answered = await world.finish(begun);
    expect([answered.status, answered.setCookies, world.calls.opened]).toEqual([503, [], []]);
    expect(await world.finish(begun)).toMatchObject({ status: 302, location: `${site}/` });
    expect((await world.finish(begun)).status).toBe(400);
    expect(world.calls.opened).toHaveLength(1);
  });

  it('uses the registration of today', async () => {
    const begun = await world.begin();
    const newer = { realm: 'demo', oidcClientId: 'newer' } as Registration;
    world.options.registrations.find = async () => newer as never;
    await world.finish(begun);
    expect(world.calls.redeemed[0]?.[0]).toBe(newer);
    expect(world.calls.opened[0]?.registration).toBe(newer);
  });
});
