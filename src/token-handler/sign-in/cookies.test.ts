// Tests the names, flags and values of the cookies that sign-in and logout set, over http and https.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { cookieName, type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';

let platform: TestPlatform;
let world: SessionWorld;
beforeAll(async () => {
  platform = await startTestPlatform();
  world = await startSessionWorld({ platform });
});
afterAll(async () => {
  await world.close();
  await platform.close();
});

const https = { 'X-Forwarded-Proto': 'https' };
const attributesOf = (lines: string[], name: string) => {
  const line = lines.find((one) => one.startsWith(`${name}=`));
  return line?.split('; ').slice(1).sort();
};

const attemptOf = (lines: string[], name = cookieName) => {
  const line = lines.find((one) => one.startsWith(`${name}.`));
  const attributes = line?.split('; ').slice(1) ?? [];
  return attributes.filter((one) => !one.startsWith('Expires=')).sort();
};
/** Signs in, and returns the response of the callback. */
async function land(headers: Record<string, string> = {}, { authUrl, toCallback }: SessionWorld = world) {
  const browser = createSiteBrowser();
  const begun = await browser.request(authUrl(), { headers });
  return browser.request(await toCallback(browser, begun.location?.href), { headers });
}

describe('the session cookie', () => {
  it('is HttpOnly, SameSite=Lax and Path=/, without Domain and expiry', async () => {
    const landed = await land();
    expect(attributesOf(landed.setCookies, cookieName)).toEqual(['HttpOnly', 'Path=/', 'SameSite=Lax']);
  });

  it('is Secure if a trusted proxy reports https', async () => {
    const { setCookies } = await land(https);
    expect(attributesOf(setCookies, cookieName)).toEqual(['HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure']);
  });

  it('is not Secure if an untrusted peer reports https', async () => {
    const distrusting = await startSessionWorld({ platform, env: { TRUSTED_PROXIES: '10.0.0.0/8' } });
    onTestFinished(() => distrusting.close());
    const { setCookies } = await land(https, distrusting);
    expect(attributesOf(setCookies, cookieName)).toEqual(['HttpOnly', 'Path=/', 'SameSite=Lax']);
    const begun = await createSiteBrowser().request(distrusting.authUrl(), { headers: https });
    expect(attemptOf(begun.setCookies)).not.toContain('Secure');
  });

  it('is not set by a request that needs no session', async () => {
    const browser = createSiteBrowser();
    expect((await browser.request(`${world.site}/token-handler/sessions`)).setCookies).toEqual([]);
    expect((await browser.request(world.authUrl({ tenant: 'Nowhere' }))).setCookies).toEqual([]);
    expect(attributesOf((await browser.request(world.authUrl())).setCookies, cookieName)).toBeUndefined();
  });

  it('may have a name that begins with __Host-, and is then set over https only', async () => {
    const strict = await startSessionWorld({ platform, env: { SESSION_COOKIE: '__Host-session' } });
    onTestFinished(() => strict.close());
    expect((await createSiteBrowser().request(strict.authUrl())).status).toBe(400);
    const { status, setCookies } = await land(https, strict);
    expect(status).toBe(302);
    expect(attributesOf(setCookies, '__Host-session')).toEqual(['HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure']);
    const begun = await createSiteBrowser().request(strict.authUrl(), { headers: https });
    const attempt = ['HttpOnly', 'Max-Age=3600', 'Path=/', 'SameSite=Lax', 'Secure'];
    expect(attemptOf(begun.setCookies, '__Host-session')).toEqual(attempt);
  });
});

describe('the cookie of an attempt to sign in', () => {
  const path = '/token-handler/clients/web';

  it('is HttpOnly, SameSite=Lax, lasts an hour, and goes to the endpoints of the client only', async () => {
    const { setCookies } = await createSiteBrowser().request(world.authUrl());
    expect(attemptOf(setCookies)).toEqual(['HttpOnly', 'Max-Age=3600', `Path=${path}`, 'SameSite=Lax']);
    const secure = await createSiteBrowser().request(world.authUrl(), { headers: https });
    expect(attemptOf(secure.setCookies)).toContain('Secure');
  });

  it('has the path of the callbackUrl, which a proxy may have given this service differently', async () => {
    const callbackUrl = `${world.site}/app/token-handler/clients/web/callback`;
    const { setCookies } = await createSiteBrowser().request(world.authUrl({ callbackUrl }));
    expect(attemptOf(setCookies)).toContain(`Path=/app${path}`);
    const odd = await createSiteBrowser().request(world.authUrl({ callbackUrl: callbackUrl.replace('/app', '/a;b') }));
    expect(attemptOf(odd.setCookies)).toContain('Path=/');
  });

  it('is removed by the callback, with the same path', async () => {
    const { setCookies } = await land();
    expect(attemptOf(setCookies)).toEqual(['HttpOnly', `Path=${path}`, 'SameSite=Lax']);
  });
});

describe('the cookie XSRF-TOKEN', () => {
  it('is readable by scripts, SameSite=Strict, and Secure over https', async () => {
    const browser = createSiteBrowser();
    const callback = await world.toCallback(browser);
    const landed = await browser.copy().request(callback);
    expect(attributesOf(landed.setCookies, 'XSRF-TOKEN')).toEqual(['Path=/', 'SameSite=Strict']);
    const other = createSiteBrowser();
    const byHttps = await other.request(await world.toCallback(other), { headers: https });
    expect(attributesOf(byHttps.setCookies, 'XSRF-TOKEN')).toEqual(['Path=/', 'SameSite=Strict', 'Secure']);
  });

  it('differs for each session, and does not reveal the session cookie', async () => {
    const one = await world.signIn();
    const other = await world.signIn();
    expect(one.csrf).toMatch(/^[\w-]{43}$/);
    expect(one.csrf).not.toBe(other.csrf);
    expect(one.browser.cookie(world.site, cookieName)).not.toContain(one.csrf);
  });

  it('is set again by the sessions endpoint if the page has lost it', async () => {
    const { browser, csrf } = await world.signIn();
    browser.setCookie(world.site, 'XSRF-TOKEN', undefined);
    await world.sessions(browser);
    expect(browser.cookie(world.site, 'XSRF-TOKEN')).toBe(csrf);
  });
});
