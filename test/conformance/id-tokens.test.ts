// Tests what a callback may contain and which ID tokens are accepted, beyond the modules of the conformance suite.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createSiteBrowser, type SiteBrowser } from '../support/site-browser.ts';
import { leftHalf, type Script } from './realm.ts';
import { type ConformanceWorld, expectAccepted, expectRejected, startConformanceWorld } from './world.ts';

let world: ConformanceWorld;
let browser: SiteBrowser;
beforeAll(async () => {
  world = await startConformanceWorld();
});
afterAll(() => world.close());
beforeEach(() => {
  browser = createSiteBrowser();
});

/** Returns the number of failures that the metrics count for the identity provider, of one kind or of all kinds. */
async function failures(kind?: string): Promise<number> {
  const text = await (await fetch(`${world.handler.metricsUrl}/metrics`)).text();
  const counts = text.matchAll(
    /^formgate_dependency_failures_total\{dependency="identity-provider",kind="([\w-]+)"\} (\d+)$/gm,
  );
  return [...counts].reduce((sum, [, of, count]) => sum + (kind === undefined || of === kind ? Number(count) : 0), 0);
}

describe('an ID token is rejected, and counted as a failure of the identity provider, if', () => {
  const foreignHash = leftHalf(randomUUID());
  it.each<{ rule: string; script: Script }>([
    { rule: 'its azp is another client', script: { claims: { azp: 'another client' } } },
    {
      rule: 'it has several audiences and no azp',
      script: { claims: ({ aud }) => ({ aud: [aud, 'another client'] }) },
    },
    { rule: 'its at_hash is that of another access token', script: { claims: { at_hash: foreignHash } } },
    { rule: 'its c_hash is that of another code', script: { claims: { c_hash: foreignHash } } },
    { rule: 'its sub is empty', script: { claims: { sub: '' } } },
    { rule: 'its sub is too long', script: { claims: { sub: 'x'.repeat(256) } } },
    { rule: 'it was issued too long ago', script: { claims: ({ iat = 0 }) => ({ iat: iat - 700 }) } },
    { rule: 'it was issued in the future', script: { claims: ({ iat = 0 }) => ({ iat: iat + 300 }) } },
    { rule: 'it has expired', script: { claims: ({ iat = 0 }) => ({ exp: iat - 10 }) } },
    { rule: 'it is an access token', script: { header: { typ: 'at+jwt' } } },
    { rule: 'it is a logout token', script: { header: { typ: 'logout+jwt' } } },
    {
      rule: 'it has logout events',
      script: { claims: { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } } },
    },
  ])('$rule', async ({ script }) => {
    const before = await failures('invalid-token-response');
    await expectRejected(await world.module(script), browser);
    expect(await failures('invalid-token-response')).toBe(before + 1);
  });
});

describe('an ID token is accepted', () => {
  it('with several audiences if azp is this client, and with a clock that is 30 s ahead', async () => {
    const claims: Script['claims'] = ({ aud, iat = 0 }) => ({ aud: [aud, 'another client'], azp: aud, iat: iat + 30 });
    await expectAccepted(await world.module({ claims, header: { typ: 'application/JWT' } }), browser);
  });

  it('without typ, at_hash and c_hash', async () => {
    const claims = { at_hash: undefined, c_hash: undefined };
    await expectAccepted(await world.module({ claims, header: { typ: undefined } }), browser);
  });
});

it('the log line of a sign-in names the rule that the ID token breaks', async () => {
  await expectRejected(await world.module({ claims: { azp: 'another client' } }), browser);
  await expect.poll(() => world.handler.log.text()).toContain('the ID token is not valid: azp');
});

it('an ID token without a nonce is rejected with 400, because its code may be that of another sign-in', async () => {
  await expectRejected(await world.module({ claims: { nonce: undefined } }), browser, 400);
});

it('a sign-in is 502 while the keys cannot be fetched, is counted, and succeeds afterwards', async () => {
  const run = await world.module({ keysStatus: 500 });
  const before = await failures('sign-in');
  await expectRejected(run, browser);
  expect(await failures('sign-in')).toBe(before + 1);
  run.realm.script = {};
  await expectAccepted(run, browser);
});

describe('the keys of ID tokens', () => {
  const downloads = ({ realm }: Awaited<ReturnType<typeof world.module>>) =>
    realm.calls.filter((call) => call === 'certs').length;

  it('are downloaded at most once a second for ID tokens of unknown keys', async () => {
    const run = await world.module({ header: { kid: randomUUID() } });
    const began = performance.now();
    for (let round = 0; round < 4; round += 1) await expectRejected(run, browser);
    expect(downloads(run)).toBeLessThanOrEqual(1 + (performance.now() - began) / 1_000);
  });

  it('stay when the identity provider publishes an empty key set', async () => {
    const run = await world.module();
    await expectAccepted(run, createSiteBrowser());
    await run.realm.publish([]);
    run.realm.script = { header: { kid: randomUUID() } };
    await expectRejected(run, createSiteBrowser());
    expect(downloads(run)).toBe(2);
    run.realm.script = {};
    await expectAccepted(run, createSiteBrowser());
  });
});

describe('a callback is 400, costs no attempt and is not counted as a failure, if', () => {
  it.each<{ rule: string; change: (query: URLSearchParams) => void; pointer: string }>([
    { rule: 'it has two codes', change: (query) => query.append('code', 'x'), pointer: '/query/code' },
    { rule: 'it has two states', change: (query) => query.append('state', 'x'), pointer: '/query/state' },
    { rule: 'it has two issuers', change: repeatIssuer, pointer: '/query/iss' },
    { rule: 'it has an ID token', change: (query) => query.append('id_token', 'x'), pointer: '/query/id_token' },
    {
      rule: 'it has an access token',
      change: (query) => query.append('access_token', 'x'),
      pointer: '/query/access_token',
    },
    { rule: 'it has a token', change: (query) => query.append('token', ''), pointer: '/query/token' },
    { rule: 'it is a JARM response', change: (query) => query.append('response', 'a.b.c'), pointer: '/query/response' },
    {
      rule: 'it has a code and an error',
      change: (query) => query.append('error', 'access_denied'),
      pointer: '/query/error',
    },
    { rule: 'it has neither', change: (query) => query.delete('code'), pointer: '/query/code' },
    { rule: 'its code is empty', change: (query) => query.set('code', ''), pointer: '/query/code' },
  ])('$rule', async ({ change, pointer }) => {
    const [run, before] = [await world.module(), await failures()];
    const callback = await run.toCallback(browser);
    const changed = new URL(callback);
    change(changed.searchParams);
    const { status, text } = await browser.request(changed);
    expect([status, JSON.parse(text)]).toMatchObject([400, { errors: [{ pointer }] }]);
    expect([run.realm.calls.includes('token'), await failures()]).toEqual([false, before]);
    expect((await browser.request(callback)).status).toBe(302);
  });

  it('other parameters are ignored', async () => {
    const callback = await (await world.module()).toCallback(browser);
    callback.searchParams.append('session_state', 'x');
    callback.searchParams.append('unknown', 'y');
    expect((await browser.request(callback)).status).toBe(302);
  });
});

function repeatIssuer(query: URLSearchParams): void {
  query.append('iss', 'https://one.example.org');
  query.append('iss', 'https://two.example.org');
}
