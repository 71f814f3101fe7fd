// Tests how sign-ins and logouts are counted, with a real identity provider and simulated browsers that keep cookies.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type HttpTap, startHttpTap } from '../../../test/support/http-tap.ts';
import { growthOf, samplesOf } from '../../../test/support/metric-growth.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';

let platform: TestPlatform;
let tap: HttpTap;
let world: SessionWorld;
beforeAll(async () => {
  platform = await startTestPlatform();
  const { origin, pathname } = new URL(platform.access.url);
  tap = await startHttpTap(origin);
  world = await startSessionWorld({ store: 'redis', platform, accessUrl: `${tap.url}${pathname}` });
});
afterAll(async () => {
  await world.close();
  await tap.close();
  await platform.close();
});

const counted = (metric: string, work: () => Promise<unknown>) => growthOf(world.handler.metricsUrl, metric, work);
const signIns = (work: () => Promise<unknown>) => counted('formgate_sign_ins_total', work);
const logouts = (work: () => Promise<unknown>) => counted('formgate_logouts_total', work);
const one = (outcome: string, reason: string) => ({ [`outcome="${outcome}",reason="${reason}"`]: 1 });
const visit = (url: string | URL, browser = createSiteBrowser()) => browser.request(url);

describe('a sign-in is counted as', () => {
  it('succeeded once, also if its callback is loaded again', async () => {
    const grown = await signIns(async () => {
      const browser = createSiteBrowser();
      const callback = await world.toCallback(browser);
      for (const _ of [1, 2]) expect((await visit(callback, browser)).status).toBe(302);
    });
    expect(grown).toEqual(one('succeeded', 'none'));
  });

  it('abandoned, if the person cancels or another browser receives the callback', async () => {
    const browser = createSiteBrowser();
    const callback = await world.toCallback(browser);
    expect(await signIns(() => visit(callback))).toEqual(one('abandoned', 'sign-in-expired'));
    callback.searchParams.delete('code');
    callback.searchParams.set('error', 'access_denied');
    expect(await signIns(() => visit(callback, browser))).toEqual(one('abandoned', 'cancelled'));
  });

  it('failed, with the page that the person got as the reason', async () => {
    const unknownTenant = world.authUrl({ tenant: 'nobody' });
    expect(await signIns(() => visit(unknownTenant))).toEqual(one('failed', 'unknown-tenant'));
    const unknownClient = world.authUrl({}, { clientId: 'nobody' });
    expect(await signIns(() => visit(unknownClient))).toEqual(one('failed', 'unknown-client'));
    const badLink = world.authUrl({ callbackUrl: 'https://evil.example/' });
    expect(await signIns(() => visit(badLink))).toEqual(one('failed', 'invalid-link'));
  });

  it('failed, if the client is not registered, which then counts as failing', async () => {
    const failing = async () => (await samplesOf(world.handler.metricsUrl, 'formgate_sign_in_failing_clients'))[''];
    await world.signIn();
    expect(await failing()).toBe(0);
    const { rows } = world.handler;
    await rows('CREATE TABLE kept AS SELECT * FROM client_registrations');
    await rows('DELETE FROM client_registrations');
    const grown = await signIns(async () => {
      for (let time = 0; time < 5; time += 1) await visit(world.authUrl());
    });
    expect(grown).toEqual({ 'outcome="failed",reason="client-not-registered"': 5 });
    expect(await failing()).toBe(1);
    const line = world.handler.log.lines().find(({ msg }) => msg === 'sign-ins of a client keep failing');
    expect(line).toMatchObject({ tenant: platform.tenant.id, client: world.clientId, reason: 'client-not-registered' });
    await rows('INSERT INTO client_registrations SELECT * FROM kept');
    await world.signIn();
    expect(await failing()).toBe(0);
  });

  it('failed, if the identity provider cannot be reached', async () => {
    const browser = createSiteBrowser();
    const callback = await world.toCallback(browser);
    await tap.shut();
    onTestFinished(() => tap.open());
    expect(await signIns(() => visit(callback, browser))).toEqual(one('failed', 'identity-provider-down'));
  });
});

describe('a logout is counted', () => {
  it('once per session, by the person', async () => {
    const { browser } = await world.signIn();
    const logout = world.clientUrl('logout');
    const grown = await logouts(async () => {
      for (const _ of [1, 2]) await visit(logout, browser);
    });
    expect(grown).toEqual({ 'kind="person"': 1 });
  });

  it('by an administrator', async () => {
    const { handle } = await world.signIn();
    const token = await world.handler.adminToken();
    const remove = () => world.handler.api(`/sessions/${handle}`, { method: 'DELETE', token });
    expect(await logouts(remove)).toEqual({ 'kind="administrator"': 1 });
    expect(await logouts(remove)).toEqual({});
  });
});

it('the gauge of sessions counts those of all pods, and is absent while the store is down', async () => {
  const sessions = async (metricsUrl: string) => (await samplesOf(metricsUrl, 'formgate_sessions'))[''];
  const start = async () => {
    const replica = await world.handler.startReplica();
    onTestFinished(() => replica.close());
    // The metric is absent until the replica has connected to Redis.
    await expect.poll(() => sessions(replica.metricsUrl)).toBeDefined();
    return replica.metricsUrl;
  };
  const before = Number(await sessions(await start()));
  const { browser } = await world.signIn();
  await world.signIn();
  const kept = await start();
  expect(await sessions(kept)).toBe(before + 2);
  await visit(world.clientUrl('logout'), browser);
  // The replica caches the number of sessions for 15 s.
  expect(await sessions(kept)).toBe(before + 2);
  const fresh = await start();
  expect(await sessions(fresh)).toBe(before + 1);
  world.redis?.pause();
  const replica = await world.handler.startReplica();
  onTestFinished(() => replica.close());
  expect(await sessions(replica.metricsUrl)).toBeUndefined();
  world.redis?.resume();
  await expect.poll(() => sessions(replica.metricsUrl)).toBe(before + 1);
});
