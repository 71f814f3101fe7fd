// Tests sign-in, refresh and logout at the embedded identity provider. The tests send the same requests as a browser.
import { createHash, randomBytes } from 'node:crypto';
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestAccess, type TestAccess } from '../../test/support/access.ts';
import { createHttpBrowser, type HttpBrowser, type View } from '../../test/support/http-browser.ts';
import { type Listening, listen } from '../listen.ts';

const callback = 'https://app.example.org/callback';
const client = { clientId: 'app', secret: 'app-secret' };
let access: TestAccess;
let backChannel: Listening;
let logoutTokens: string[];

beforeAll(async () => {
  access = await startTestAccess();
  await access.addClient('demo', {
    ...client,
    grants: ['authorization_code', 'refresh_token'],
    redirectUris: [callback],
    postLogoutRedirectUris: ['https://app.example.org/'],
  });
  logoutTokens = [];
  backChannel = await listen(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    logoutTokens.push(new URLSearchParams(Buffer.concat(chunks).toString()).get('logout_token') ?? '');
    res.end();
  });
});
afterAll(() => Promise.all([access.close(), backChannel.close()]));

const browse = () => createHttpBrowser({ stopAt: ({ host }) => host === 'app.example.org' });
const verifier = randomBytes(32).toString('base64url');
const authorizationUrl = (more: Record<string, string> = {}, realm = 'demo') => {
  const url = new URL(`${access.issuer(realm)}/protocol/openid-connect/auth`);
  url.search = new URLSearchParams({
    client_id: client.clientId,
    response_type: 'code',
    scope: 'openid',
    redirect_uri: callback,
    state: 'the state',
    nonce: 'the nonce',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...more,
  }).toString();
  return url;
};
const signIn = async (browser: HttpBrowser, more: Record<string, string> = {}): Promise<View> =>
  browser.submit(await browser.open(authorizationUrl(more)), { username: 'alice@example.com', password: 'alice' });

async function exchange(form: Record<string, string>, { clientId, secret } = client) {
  const response = await fetch(`${access.issuer('demo')}/protocol/openid-connect/token`, {
    method: 'POST',
    headers: { Authorization: `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}` },
    body: new URLSearchParams(form),
  });
  const json: Record<string, unknown> = JSON.parse(await response.text());
  return { status: response.status, json };
}

const redeem = (view: View, who = client) =>
  exchange(
    {
      grant_type: 'authorization_code',
      code: view.url.searchParams.get('code') ?? '',
      redirect_uri: callback,
      code_verifier: verifier,
    },
    who,
  );

describe('sign-in', () => {
  it('leads from the authorization endpoint through the sign-in form to the callback, with code, state and issuer', async () => {
    const browser = browse();
    const form = await browser.open(authorizationUrl());
    expect(form.status).toBe(200);
    expect(form.text).toContain('<label for="username">');
    const back = await browser.submit(form, { username: 'Alice@Example.com', password: 'alice' });
    expect(back.url.href.startsWith(callback)).toBe(true);
    expect(Object.fromEntries(back.url.searchParams)).toEqual({
      code: expect.any(String),
      state: 'the state',
      iss: access.issuer('demo'),
    });
  });

  it('gives an ID token with the nonce, the person and the session, and an access token of the same session', async () => {
    const { json } = await redeem(await signIn(browse()));
    const keys = createRemoteJWKSet(new URL(`${access.issuer('demo')}/protocol/openid-connect/certs`));
    const idToken = await jwtVerify(String(json.id_token), keys, { issuer: access.issuer('demo'), audience: 'app' });
    expect(idToken.payload).toMatchObject({ nonce: 'the nonce', email: 'alice@example.com', name: 'Alice Applicant' });
    const accessToken = decodeJwt(String(json.access_token));
    expect(accessToken).toMatchObject({ sub: idToken.payload.sub, azp: 'app', sid: expect.any(String) });
    expect(json).toMatchObject({ expires_in: 300, refresh_expires_in: 1800 });
  });

  it('shows the form again, with 401 and the reason, when the password is wrong', async () => {
    const browser = browse();
    const again = await browser.submit(await browser.open(authorizationUrl()), {
      username: '"><b>',
      password: 'wrong',
    });
    expect(again.status).toBe(401);
    expect(again.text).toContain('role="alert"');
    expect(again.text).toContain('value="&quot;&gt;&lt;b&gt;"');
    const back = await browser.submit(again, { username: 'alice@example.com', password: 'alice' });
    expect(back.url.searchParams.get('code')).toBeTruthy();
  });

  it('returns access_denied to the client when the person cancels', async () => {
    const browser = browse();
    const back = await browser.submit(await browser.open(authorizationUrl()), { action: 'cancel' });
    expect(Object.fromEntries(back.url.searchParams)).toMatchObject({ error: 'access_denied', state: 'the state' });
  });

  it('does not ask a signed-in person for a password, except with prompt=login', async () => {
    const browser = browse();
    await signIn(browser);
    expect((await browser.open(authorizationUrl())).url.searchParams.get('code')).toBeTruthy();
    expect((await browser.open(authorizationUrl({ prompt: 'none' }))).url.searchParams.get('code')).toBeTruthy();
    expect((await browser.open(authorizationUrl({ prompt: 'login' }))).text).toContain('Password');
  });

  it('returns login_required for prompt=none without a session', async () => {
    const back = await browse().open(authorizationUrl({ prompt: 'none' }));
    expect(back.url.searchParams.get('error')).toBe('login_required');
  });

  it('shows an error, and redirects nowhere, for a redirect URI that is not registered', async () => {
    const view = await browse().open(authorizationUrl({ redirect_uri: 'https://evil.example.org/' }));
    expect(view.status).toBe(400);
    expect(view.text).toContain('Sign-in is not possible');
  });

  it('shows that the sign-in has expired to a browser that did not begin it', async () => {
    const form = await browse().open(authorizationUrl());
    const other = await browse().submit(form, { username: 'alice@example.com', password: 'alice' });
    expect(other).toMatchObject({ status: 400, text: expect.stringContaining('The sign-in has expired') });
  });

  it('redeems a code once, and only with its PKCE verifier', async () => {
    const back = await signIn(browse());
    const form = {
      grant_type: 'authorization_code',
      code: back.url.searchParams.get('code') ?? '',
      redirect_uri: callback,
    };
    expect(await exchange({ ...form, code_verifier: 'x'.repeat(43) })).toMatchObject({
      status: 400,
      json: { error: 'invalid_grant' },
    });
    const second = await signIn(browse());
    expect((await redeem(second)).status).toBe(200);
    expect(await redeem(second)).toMatchObject({ status: 400, json: { error: 'invalid_grant' } });
  });

  it('keeps the sessions of two realms on one host apart', async () => {
    const browser = browse();
    await signIn(browser);
    expect(browser.cookies(`${access.issuer('demo')}/protocol/openid-connect/auth`)).toContain('access_session');
    expect(browser.cookies(`${access.issuer('core')}/protocol/openid-connect/auth`)).toEqual([]);
  });
});

describe('logout', () => {
  const endSession = (more: Record<string, string>) =>
    `${access.issuer('demo')}/protocol/openid-connect/logout?${new URLSearchParams(more)}`;

  it('asks first, and ends the session and its refresh tokens when the person agrees', async () => {
    const browser = browse();
    const { json } = await redeem(await signIn(browser));
    const question = await browser.open(endSession({}));
    expect(question.text).toContain('Sign out?');
    expect((await browser.submit(question, { logout: 'yes' })).text).toContain('You are signed out');
    expect((await browser.open(authorizationUrl({ prompt: 'none' }))).url.searchParams.get('error')).toBe(
      'login_required',
    );
    const refresh = { grant_type: 'refresh_token', refresh_token: String(json.refresh_token) };
    expect(await exchange(refresh)).toMatchObject({ status: 400, json: { error: 'invalid_grant' } });
  });

  it('with an ID token submits the form by script, and returns to the registered address', async () => {
    const browser = browse();
    const { json } = await redeem(await signIn(browser));
    const hint = {
      id_token_hint: String(json.id_token),
      post_logout_redirect_uri: 'https://app.example.org/',
      state: 'bye',
    };
    const page = await browser.open(endSession(hint));
    expect(page.text).toMatch(/<script>document\.getElementById\('yes'\)\.click\(\);<\/script>/);
    const back = await browser.submit(page, { logout: 'yes' });
    expect(back.url.href).toBe('https://app.example.org/?state=bye');
  });

  it('refuses to return to an address that is not registered', async () => {
    const browser = browse();
    const { json } = await redeem(await signIn(browser));
    const page = await browser.open(
      endSession({ id_token_hint: String(json.id_token), post_logout_redirect_uri: 'https://evil.example.org/' }),
    );
    expect(page.status).toBe(400);
  });

  it('notifies the clients of the session by back-channel logout', async () => {
    const registered = await fetch(`${access.issuer('demo')}/clients-registrations/openid-connect`, {
      method: 'POST',
      headers: { Authorization: 'Bearer demo-registration-token', 'Content-Type': 'application/json' },
      body: JSON.stringify({
        client_name: 'told',
        redirect_uris: [callback],
        backchannel_logout_uri: `http://127.0.0.1:${backChannel.port}/logout`,
      }),
    });
    const { client_id, client_secret } = (await registered.json()) as Record<string, string>;
    const browser = browse();
    const { json } = await redeem(await signIn(browser, { client_id: client_id ?? '' }), {
      clientId: client_id ?? '',
      secret: client_secret ?? '',
    });
    const sid = decodeJwt(String(json.id_token)).sid;
    await browser.submit(await browser.open(endSession({ id_token_hint: String(json.id_token) })), { logout: 'yes' });
    expect(decodeJwt(logoutTokens[0] ?? '')).toMatchObject({
      iss: access.issuer('demo'),
      aud: client_id,
      sid,
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    });
    expect(decodeJwt(String(json.access_token)).sid).toBe(sid);
  });
});
