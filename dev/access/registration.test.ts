// Tests dynamic client registration and its management at the embedded identity provider (RFC 7591 and 7592).
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestAccess, type TestAccess } from '../../test/support/access.ts';

let access: TestAccess;
beforeAll(async () => {
  access = await startTestAccess();
});
afterAll(() => access.close());

interface Registration {
  client_id: string;
  client_secret: string;
  registration_client_uri: string;
  registration_access_token: string;
  redirect_uris: string[];
  error?: string;
}

const asked = {
  client_name: 'permits-web',
  token_endpoint_auth_method: 'client_secret_basic',
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  redirect_uris: ['https://permits.example.org/cb'],
};

async function call(method: string, url: string, token: string, body?: object) {
  const response = await fetch(url, {
    method,
    headers: { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const isJson = response.headers.get('Content-Type')?.includes('json');
  return { status: response.status, json: (isJson ? await response.json() : {}) as Registration };
}

const register = (body: object = asked, token = 'demo-registration-token', realm = 'demo') =>
  call('POST', `${access.issuer(realm)}/clients-registrations/openid-connect`, token, body);

it('a client registers with the initial access token and gets id, secret, management address and token', async () => {
  const { status, json } = await register();
  expect(status).toBe(201);
  expect(json).toMatchObject({ ...asked, client_id: expect.any(String), client_secret: expect.any(String) });
  expect(json.registration_client_uri).toBe(
    `${access.issuer('demo')}/clients-registrations/openid-connect/${json.client_id}`,
  );
  expect(json.registration_access_token).toEqual(expect.any(String));
});

it('a wrong initial access token gets 401, and a realm without registration 404', async () => {
  expect((await register(asked, 'guessed')).status).toBe(401);
  expect((await register(asked, 'demo-registration-token', 'core')).status).toBe(404);
});

it('a client without redirect URIs is registered, and can be given some later', async () => {
  for (const body of [
    { ...asked, redirect_uris: [] },
    { ...asked, redirect_uris: undefined },
  ]) {
    const { status, json } = await register(body);
    expect(status).toBe(201);
    expect(json.redirect_uris).toEqual([]);
    const updated = await call('PUT', json.registration_client_uri, json.registration_access_token, {
      ...asked,
      client_id: json.client_id,
    });
    expect(updated).toMatchObject({
      status: 200,
      json: { redirect_uris: asked.redirect_uris, client_secret: json.client_secret },
    });
  }
});

it('post-logout and back-channel addresses are kept', async () => {
  const more = {
    post_logout_redirect_uris: ['https://permits.example.org/'],
    backchannel_logout_uri: 'http://127.0.0.1:1/logout',
  };
  expect((await register({ ...asked, ...more })).json).toMatchObject({
    ...more,
    backchannel_logout_session_required: true,
  });
});

it('an update changes the redirect URIs, keeps id and secret, and replaces the registration access token', async () => {
  const { json: first } = await register();
  const update = { ...asked, client_id: first.client_id, redirect_uris: ['https://permits.example.org/other'] };
  const { status, json: second } = await call(
    'PUT',
    first.registration_client_uri,
    first.registration_access_token,
    update,
  );
  expect(status).toBe(200);
  expect(second).toMatchObject({ client_secret: first.client_secret, redirect_uris: update.redirect_uris });
  expect(second.registration_access_token).not.toBe(first.registration_access_token);
  expect((await call('GET', first.registration_client_uri, first.registration_access_token)).status).toBe(401);
  expect(
    (await call('GET', first.registration_client_uri, second.registration_access_token)).json.redirect_uris,
  ).toEqual(update.redirect_uris);
});

it('a deleted client cannot be used, and its token manages nothing', async () => {
  const { json } = await register();
  expect((await call('DELETE', json.registration_client_uri, json.registration_access_token)).status).toBe(204);
  expect((await call('GET', json.registration_client_uri, json.registration_access_token)).status).toBe(401);
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    refresh_token: 'x',
    client_id: json.client_id,
    client_secret: json.client_secret,
  });
  const token = await fetch(`${access.issuer('demo')}/protocol/openid-connect/token`, { method: 'POST', body });
  expect(token.status).toBe(401);
});

it('the registration access token of one client does not manage another', async () => {
  const [one, two] = [(await register()).json, (await register()).json];
  expect((await call('GET', two.registration_client_uri, one.registration_access_token)).status).toBe(401);
});

it('an invalid redirect URI is rejected with 400', async () => {
  const refused = await register({ ...asked, redirect_uris: ['not a uri'] });
  expect(refused).toMatchObject({ status: 400, json: { error: 'invalid_redirect_uri' } });
});
