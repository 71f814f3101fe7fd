// Tests clients of a tenant that has got another realm at the platform since its administrator registered them. Both
// realms exist at the identity provider.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestTokenHandler, type TestTokenHandler } from '../../../test/support/token-handler.ts';

let handler: TestTokenHandler;
let callbackUrl: string;
let token: string;
beforeAll(async () => {
  handler = await startTestTokenHandler();
  callbackUrl = `${handler.url}/token-handler/clients/web/callback`;
  token = await handler.adminToken();
  await handler.configure({ web: { redirectUris: [callbackUrl] } });
  expect((await handler.register('web')).status).toBe(200);
  // The registration then looks as if the tenant had the other realm when the client was registered.
  await handler.rows('UPDATE client_registrations SET realm = $1', [handler.platform.otherTenant.realm]);
});
afterAll(() => handler.close());

async function startSignIn() {
  const start = new URL(`${handler.url}/token-handler/v1/clients/web/auth`);
  start.search = new URLSearchParams({ tenant: handler.platform.tenant.name, callbackUrl }).toString();
  const response = await fetch(start, { redirect: 'manual', headers: { accept: 'application/json' } });
  return { status: response.status, text: await response.text(), location: response.headers.get('location') };
}

const shown = async () => (await handler.api('/clients/web', { token })).body;
const update = () => handler.api('/clients/web', { method: 'PUT', token, body: { redirectUris: [callbackUrl] } });
const required = 'urn:formgate:problem:registration-required';

it('a person is told that the client has to be registered, instead of signing in at the former realm', async () => {
  const { status, text, location } = await startSignIn();
  expect([status, location]).toEqual([409, null]);
  expect(JSON.parse(text)).toMatchObject({ type: required });
});

it('an administrator sees that the client is not registered, and cannot update it', async () => {
  expect(await shown()).toMatchObject({ registered: false, registration: null });
  expect(await update()).toMatchObject({ status: 409, body: { type: required } });
});

it('people can sign in at the new realm after the client was registered again', async () => {
  expect((await handler.register('web')).status).toBe(200);
  expect(await shown()).toMatchObject({ registered: true });
  const { status, location } = await startSignIn();
  expect([status, location]).toEqual([302, expect.stringContaining(`/realms/${handler.platform.tenant.realm}/`)]);
});
