// Tests what a person gets if a sign-in takes too long, or the identity provider refuses it or fails. The modules that
// the routes call are scripted.
import * as oidc from 'openid-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SignInRoutes, signInCallback, startSignInRoutes } from '../../../test/support/sign-in-routes.ts';
import { Problem } from '../../service/http/problem.ts';
import { IdTokenFault } from './id-token.ts';

const site = 'https://app.example.org';
const iss = 'https%3A%2F%2Fid.example.org';

let world: SignInRoutes;
beforeEach(async () => {
  world = await startSignInRoutes();
});
afterEach(() => world.app.close());

const fail = (error: unknown) => {
  world.options.relyingParty.redeem = async (...given) => {
    world.calls.redeemed.push(given);
    throw error;
  };
};
/** Makes openid-client report the error of the response, after it has checked the issuer. */
const answerError = (error: string) =>
  fail(new oidc.AuthorizationResponseError('refused', { cause: new URLSearchParams({ error }) }));
const outcomes = async (count: number) =>
  (await world.app.requestLines(count)).flatMap(({ audit }) => (audit ? [(audit as { outcome: string }).outcome] : []));
const toProvider = expect.stringMatching(/^https:\/\/id\.example\.org\/auth\?state=/);
/** Returns the sign-in that a response with its cookie has begun. */
const begunBy = ({ location, setCookies }: { location: string | null; setCookies: string[] }) => ({
  state: new URL(location ?? '').searchParams.get('state') ?? '',
  cookie: setCookies.at(-1)?.split(';', 1)[0] ?? '',
});

describe('a sign-in that took more than ten minutes', () => {
  it('starts again once, with the same parameters, and then opens the session', async () => {
    const begun = await world.begin({ returnTo: '/here', login_hint: 'ana' });
    world.now += 600_001;
    const again = await world.finish(begun);
    expect(again).toMatchObject({ status: 302, location: toProvider });
    expect(again.setCookies).toEqual([
      expect.stringMatching(/^session\.[\w-]{16}=; Path=/),
      expect.stringMatching(/^session\.[\w-]{16}=[\w.%-]+; Max-Age=3600; /),
    ]);
    const [first, second] = world.calls.begun;
    expect(second).toEqual({ ...first, restarted: true });
    expect(world.calls.authorizations[1]?.[1].asked.login_hint).toBe('ana');
    expect([world.calls.claimed, world.calls.redeemed, world.calls.counted]).toEqual([[], [], []]);
    expect(await world.finish(begunBy(again))).toMatchObject({ status: 302, location: `${site}/here` });
    expect(await outcomes(3)).toEqual(['refused', 'succeeded']);
  });

  it('a second time gets 400', async () => {
    const begun = await world.begin();
    world.now += 600_001;
    const again = begunBy(await world.finish(begun));
    world.now += 600_001;
    expect(await world.finish(again)).toMatchObject({ status: 400, detail: expect.stringContaining('took too long') });
    expect(world.calls.begun).toHaveLength(2);
  });
});

it('a sign-in that the person cancels after more than ten minutes does not start again', async () => {
  const begun = await world.begin({ returnTo: '/here' });
  world.now += 600_001;
  const { status, location } = await world.finish(begun, 'error=access_denied');
  expect([status, location]).toEqual([302, `${site}/?error=access_denied`]);
  expect(world.calls.begun).toHaveLength(1);
});

describe('a sign-in that the identity provider refuses', () => {
  it.each(['access_denied', 'login_required'])('lands at the page of the client with the error %s', async (error) => {
    const begun = [await world.begin({ returnTo: '/here' }), await world.begin({ returnTo: '/here' })] as const;
    expect(await world.finish(begun[0], `error=${error}`)).toMatchObject({
      ...{ status: 302, location: `${site}/?error=${error}` },
    });
    world.client.failureRedirectUrl = '/sorry?x=1';
    const { location } = await world.finish(begun[1], `error=${error}`);
    expect(location).toBe(`${site}/sorry?x=1&error=${error}`);
    expect(world.calls.counted).toEqual(['cancelled', 'cancelled']);
    expect([world.calls.redeemed, world.calls.opened]).toEqual([[], []]);
    expect(await outcomes(4)).toEqual(['refused', 'refused']);
  });

  it('is checked for its issuer if the response names one', async () => {
    answerError('access_denied');
    const begun = await world.begin();
    const { location } = await world.finish(begun, `error=access_denied&iss=${iss}`);
    expect(location).toBe(`${site}/?error=access_denied`);
    expect(String(world.calls.redeemed[0]?.[1])).toBe(
      `${signInCallback}?state=${begun.state}&error=access_denied&iss=${iss}`,
    );
    fail(Object.assign(new oidc.ClientError('wrong issuer'), { cause: new Error('x', { cause: { parameters: {} } }) }));
    const refused = await world.finish(await world.begin(), `error=access_denied&iss=${iss}`);
    expect(refused).toMatchObject({ status: 400, pointer: '/query', location: null });
    expect(world.calls.counted).toEqual(['cancelled']);
  });

  it('without showing a page lands where the frontend wants it (prompt=none)', async () => {
    world.client.failureRedirectUrl = '/sorry';
    const land = async (query: Record<string, string>) =>
      (await world.finish(await world.begin(query), 'error=login_required')).location?.replace(site, '');
    expect(await land({ prompt: 'none', returnTo: '/here' })).toBe('/here?error=login_required');
    expect(await land({ prompt: 'none' })).toBe('/sorry?error=login_required');
    world.client.prompt = 'none';
    expect(await land({ returnTo: '/here' })).toBe('/here?error=login_required');
    expect(await land({ returnTo: '/here', prompt: 'login' })).toBe('/sorry?error=login_required');
  });
});

describe('an error of the identity provider', () => {
  it.each([
    ['temporarily_unavailable', '&error_description=authentication_expired'],
    ['authentication_expired', `&iss=${iss}`],
  ])('that passes (%s%s) starts the sign-in again, once', async (error, more) => {
    answerError(error);
    const again = await world.finish(await world.begin(), `error=${error}${more}`);
    expect(again).toMatchObject({ status: 302, location: toProvider });
    expect(world.calls.begun[1]).toMatchObject({ restarted: true });
    expect(await world.finish(begunBy(again), `error=${error}${more}`)).toMatchObject({ status: 400, location: null });
    expect([world.calls.begun.length, world.calls.counted]).toEqual([2, []]);
  });

  it.each(['', `&iss=${iss}`])('that stays gets 502 (%s)', async (more) => {
    answerError('server_error');
    const answered = await world.finish(await world.begin(), `error=server_error${more}`);
    expect(answered).toMatchObject({ status: 502, detail: expect.stringContaining('Try again later') });
    expect([world.calls.begun.length, world.calls.counted]).toEqual([1, ['server_error']]);
    expect(await outcomes(2)).toEqual(['failed']);
  });
});

describe('a code that cannot be redeemed', () => {
  it.each<[string, number, unknown]>([
    ['the identity provider takes too long', 504, Object.assign(new oidc.ClientError('x'), { code: 'OAUTH_TIMEOUT' })],
    ['the ID token is invalid', 502, new IdTokenFault('aud')],
    ['the identity provider cannot be reached', 502, new Error('secret address')],
    ['the store is unavailable', 503, new Problem('unavailable')],
  ])('opens no session if %s: %s', async (_what, status, error) => {
    fail(error);
    const answered = await world.finish(await world.begin());
    expect(answered.status).toBe(status);
    expect(answered.detail).not.toContain('secret');
    expect([world.calls.opened, world.calls.counted, world.calls.claimed.length]).toEqual([[], [], 1]);
    expect(await outcomes(2)).toEqual(['failed']);
  });

  it('because the identity provider has ended the sign-in is not counted as a sign-in', async () => {
    world.options.openSession = () => Promise.reject(new Problem('unauthenticated', 'has ended'));
    const answered = await world.finish(await world.begin());
    expect(answered).toMatchObject({ status: 401, detail: 'has ended' });
    expect(world.calls.counted).toEqual([]);
    expect(await outcomes(2)).toEqual(['refused']);
  });
});
