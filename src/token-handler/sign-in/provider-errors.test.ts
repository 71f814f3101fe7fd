// Tests what operators see if the identity provider responds to sign-ins with errors: the log names each error, and
// metrics count the failures of the identity provider.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { growthOf } from '../../../test/support/metric-growth.ts';
import { type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser, type SiteBrowser } from '../../../test/support/site-browser.ts';

let world: SessionWorld;
beforeAll(async () => {
  world = await startSessionWorld();
});
afterAll(() => world.close());

const counted = (metric: string, work: () => Promise<unknown>) => growthOf(world.handler.metricsUrl, metric, work);
const signIns = (work: () => Promise<unknown>) => counted('formgate_sign_ins_total', work);
const failures = (work: () => Promise<unknown>) => counted('formgate_dependency_failures_total', work);
const failedSignIn = { 'dependency="identity-provider",kind="sign-in"': 1 };

const stateOf = (url: URL | undefined) => url?.searchParams.get('state') ?? '';
const begin = async (browser: SiteBrowser) => stateOf((await browser.request(world.authUrl())).location);
const respond = (browser: SiteBrowser, state: string, answer: Record<string, string>) =>
  browser.request(world.clientUrl('callback', { state, ...answer }));

/** Starts a sign-in, and loads the callback with this response of the identity provider. */
async function receive(answer: Record<string, string>) {
  const browser = createSiteBrowser();
  return respond(browser, await begin(browser), answer);
}

/** Like `receive`. If the sign-in starts again, the identity provider responds in the same way again. */
async function receiveTwice(answer: Record<string, string>) {
  const browser = createSiteBrowser();
  const { status, location } = await respond(browser, await begin(browser), answer);
  expect(status).toBe(302);
  return respond(browser, stateOf(location), answer);
}

/** Returns the errors that the log names while `work` runs. */
async function logged(work: () => Promise<unknown>): Promise<unknown[]> {
  const before = world.handler.log.lines().length;
  await work();
  const lines = world.handler.log.lines().slice(before);
  const found = lines.filter(({ msg }) => msg === 'the identity provider responded to a sign-in with an error');
  for (const line of found) expect(line).toMatchObject({ level: 'warn', tenant: expect.any(String), client: 'web' });
  return found.map(({ error, status }) => [error, status]);
}

describe('an error of the authorization response', () => {
  it('is named in the log, and counted as a failure of the identity provider', async () => {
    const answer = { error: 'invalid_scope', error_description: 'secret detail' };
    expect(await logged(async () => expect((await receive(answer)).status).toBe(502))).toEqual([
      ['invalid_scope', undefined],
    ]);
    expect(await failures(() => receive(answer))).toEqual(failedSignIn);
    expect(JSON.stringify(world.handler.log.lines())).not.toContain('secret detail');
  });

  it('that is no error code is not written to the log', async () => {
    expect(await logged(() => receive({ error: 'Something-42' }))).toEqual([['other', undefined]]);
  });

  it('that the person caused is neither logged nor counted', async () => {
    const cancel = () => receive({ error: 'access_denied' });
    expect(await logged(cancel)).toEqual([]);
    expect(await failures(cancel)).toEqual({});
  });
});

describe('an identity provider that is temporarily unavailable', () => {
  const unavailable = { error: 'temporarily_unavailable' };

  it('also at the second attempt is named as the cause, and the sign-in counts as failed', async () => {
    expect(await signIns(async () => expect((await receiveTwice(unavailable)).status).toBe(502))).toEqual({
      'outcome="failed",reason="identity-provider-down"': 1,
    });
    expect(await logged(() => receiveTwice(unavailable))).toEqual([['temporarily_unavailable', undefined]]);
    expect(await failures(() => receiveTwice(unavailable))).toEqual(failedSignIn);
  });

  it('according to Keycloak, because its form was open for too long twice, counts as abandoned', async () => {
    const expired = { ...unavailable, error_description: 'authentication_expired' };
    expect(await signIns(async () => expect((await receiveTwice(expired)).status).toBe(400))).toEqual({
      'outcome="abandoned",reason="sign-in-expired"': 1,
    });
    expect(await logged(() => receiveTwice(expired))).toEqual([]);
  });
});

it('a code that the identity provider rejects is logged with the error of the token response', async () => {
  const answer = { code: 'unknown', iss: world.handler.platform.access.issuer('demo') };
  expect(await logged(async () => expect((await receive(answer)).status).toBe(400))).toEqual([['invalid_grant', 400]]);
});
