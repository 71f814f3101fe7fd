// Tests sign-ins and sessions of a client that an administrator has deleted or changed in the identity provider's
// console. The token handler notices the change when it next sends the client's credentials to the identity provider.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type HttpTap, startHttpTap } from '../../../test/support/http-tap.ts';
import { call, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import {
  openRegistration,
  registrationColumns,
  type StoredRegistration,
  sealRegistration,
} from '../clients/registration.ts';

let platform: TestPlatform;
let tap: HttpTap;
let world: SessionWorld;
let offset = 0;
const clock = () => new Date(Date.now() + offset);
beforeAll(async () => {
  platform = await startTestPlatform();
  const { origin, pathname } = new URL(platform.access.url);
  tap = await startHttpTap(origin);
  const client = { targets: [{ id: 'directory', upstream: 'urn:example:platform:directory-service:v2' }] };
  world = await startSessionWorld({ platform, accessUrl: `${tap.url}${pathname}`, client, clock });
});
afterAll(async () => {
  await world.close();
  await tap.close();
  await platform.close();
});

async function registration(): Promise<StoredRegistration> {
  const [row] = await world.handler.rows<StoredRegistration>(`SELECT ${registrationColumns} FROM client_registrations`);
  if (!row) throw new Error('the client is not registered');
  return openRegistration(createKeyRing(world.handler.config.KEY_RING), row);
}

const typeOf = (text: string) => (JSON.parse(text) as { type: string }).type;
const required = 'urn:formgate:problem:registration-required';

it('a session with an expired access token gets a 503 with the reason, and continues once the client works again', async () => {
  const { rows, config, log } = world.handler;
  const keys = createKeyRing(config.KEY_RING);
  const right = await registration();
  const setSecret = ({ clientSecret }: StoredRegistration) =>
    rows('UPDATE client_registrations SET client_secret = $1', [clientSecret]);
  const { browser } = await world.signIn();
  const ask = () => browser.request(`${world.site}/token-handler/targets/directory/namespaces/platform/entries`);
  expect((await ask()).status).toBe(200);
  await setSecret(sealRegistration(keys, { ...right, clientSecret: 'another secret' }));
  offset = 301_000;
  const refused = await ask();
  expect([refused.status, refused.headers.get('Retry-After')]).toEqual([503, '5']);
  expect(refused.text).toContain('an administrator has to register it again');
  const line = log.lines().find(({ outcome }) => outcome === 'client-refused');
  expect(line).toMatchObject({ client: 'web', tenant: platform.tenant.id, oidcClientId: right.oidcClientId });
  await setSecret(sealRegistration(keys, right));
  offset = 307_000;
  expect((await ask()).status).toBe(200);
  offset = 0;
});

it('a callback gets a 409 registration-required if the client’s secret was changed, until the client is registered again', async () => {
  const { rows, config, register } = world.handler;
  const { clientSecret: other } = sealRegistration(createKeyRing(config.KEY_RING), {
    ...(await registration()),
    clientSecret: 'another secret',
  });
  const browser = createSiteBrowser();
  const callback = await world.toCallback(browser);
  await rows('UPDATE client_registrations SET client_secret = $1', [other]);
  const refused = await browser.request(callback);
  expect([refused.status, typeOf(refused.text)]).toEqual([409, required]);
  expect((await register('web')).status).toBe(200);
  await world.signIn(browser);
});

it('a callback gets a 409 registration-required if the client was deleted, until it is registered again', async () => {
  const browser = createSiteBrowser();
  const callback = await world.toCallback(browser);
  const { registrationAccessToken: token, registrationClientUri } = await registration();
  const { pathname } = new URL(registrationClientUri);
  expect((await call(`${tap.url}${pathname}`, { method: 'DELETE', token })).status).toBe(204);
  const refused = await browser.request(callback);
  expect([refused.status, typeOf(refused.text)]).toEqual([409, required]);
  expect((await world.handler.register('web')).status).toBe(200);
  await world.signIn(browser);
});

it('a sign-in gets a 503 that asks for a new registration if the key of the stored one is not in the key ring', async () => {
  const KEY_RING = `other:${randomBytes(32).toString('base64')}`;
  const replica = await world.handler.startReplica({ env: { KEY_RING } });
  const { pathname, search } = new URL(world.authUrl());
  const { status, text } = await createSiteBrowser().request(`${replica.url}${pathname}${search}`);
  await replica.close();
  expect(status).toBe(503);
  expect(text).toContain('An administrator has to register the client again.');
  expect(world.handler.log.text()).toContain('stored registration cannot be decrypted with KEY_RING');
});
