// Tests that the token handler stores no secret in clear text. The test registers a client, and signs a person in and
// out. Then it searches for every secret, also in common encodings, in all commands that were written to Redis, in the
// memory of Redis, and in the database.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKeyRing } from '../../src/service/keys/key-ring.ts';
import {
  openRegistration,
  registrationColumns,
  type StoredRegistration,
} from '../../src/token-handler/clients/registration.ts';
import { dumpDatabase, placesOf, tells } from '../support/database-dump.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { cookieName } from '../support/sessions.ts';
import { createSiteBrowser, type SiteBrowser } from '../support/site-browser.ts';
import { startTargetWorld, type TargetWorld } from '../support/targets.ts';
import { startTokenDoor, type TokenDoor } from '../support/token-door.ts';

let platform: TestPlatform;
let door: TokenDoor;
let world: TargetWorld;
beforeAll(async () => {
  platform = await startTestPlatform();
  door = await startTokenDoor(platform.access.url);
  world = await startTargetWorld({ store: 'redis', platform, accessUrl: door.url, client: { keycloakLogout: true } });
  // From here on, Redis keeps a log file of all commands that change data.
  await world.redis?.command('CONFIG', 'SET', 'appendonly', 'yes', 'auto-aof-rewrite-percentage', '0');
});
afterAll(async () => {
  await world.close();
  await door.close();
  await platform.close();
});

/** The secrets that occurred in the test, keyed by their description. */
const secrets = new Map<string, string>();

function note(name: string, secret: string | null | undefined): void {
  expect(secret, name).toBeTruthy();
  // The header of a JWT is not secret; its claims and its signature are.
  const parts = /^eyJ[\w-]+\.([\w-]+)\.([\w-]+)$/.exec(secret ?? '');
  if (parts) {
    secrets.set(`${name}, claims`, parts[1] ?? '');
    secrets.set(`${name}, signature`, parts[2] ?? '');
  } else secrets.set(name, secret ?? '');
}

async function noteRegistration(name: string): Promise<void> {
  const rows = await world.handler.rows<StoredRegistration>(`SELECT ${registrationColumns} FROM client_registrations`);
  const row = rows[0];
  if (!row) throw new Error('nothing is registered');
  const { clientSecret, registrationAccessToken } = openRegistration(createKeyRing(world.handler.config.KEY_RING), row);
  note(`client secret ${name}`, clientSecret);
  note(`management token ${name}`, registrationAccessToken);
}

const idOf = (browser: SiteBrowser) =>
  decodeURIComponent(browser.cookie(world.site, cookieName) ?? '')
    .slice(2)
    .split('.')[0];

async function noteTokens(name: string, handle: string): Promise<void> {
  const { tokens, session } = await world.stored(handle);
  note(`access token ${name}`, tokens.accessToken);
  note(`refresh token ${name}`, tokens.refreshToken);
  note(`ID token ${name}`, tokens.idToken);
  note(`CSRF secret ${name}`, session.csrfSecret);
  note(`address ${name}`, session.user.email);
  note(`name ${name}`, session.user.name);
}

/** Returns everything that Redis has stored: the log of the commands that changed data, and a snapshot. */
async function redisBytes(): Promise<string> {
  const dump = (await world.redis?.dump()) ?? '';
  const setting = async (name: string) => String(await world.redis?.command('CONFIG', 'GET', name)).split(',')[1] ?? '';
  const [folder, name] = [await setting('dir'), await setting('appenddirname')];
  const files = await readdir(join(folder, name));
  const written = await Promise.all(files.map((file) => readFile(join(folder, name, file), 'latin1')));
  return [dump, ...written].join('\n');
}

async function registerAnew(): Promise<void> {
  const registrationToken = await platform.access.registrationToken('demo');
  note('registration token', registrationToken);
  const token = await world.handler.adminToken();
  note('bearer of the administrator', token);
  expect((await world.handler.register('web')).status).toBe(200);
  await noteRegistration('after another registration');
  const body = { redirectUris: [`${world.site}/token-handler/clients/web/callback`] };
  expect((await world.handler.api('/clients/web', { method: 'PUT', token, body })).status).toBe(200);
  await noteRegistration('after an update');
}

/** Signs a person in, notes the secrets that occur, and returns the session's handle. */
async function signIn(browser: SiteBrowser): Promise<string> {
  const begun = await browser.request(world.authUrl());
  for (const name of ['state', 'nonce', 'code_challenge']) note(name, begun.location?.searchParams.get(name));
  note('cookie of an attempt', browser.cookies(world.clientUrl('callback'))[0]?.value);
  const callback = await world.toCallback(browser);
  note('code', callback.searchParams.get('code'));
  expect((await browser.request(callback)).status).toBe(302);
  note('cookie of the session', idOf(browser));
  note('CSRF token', browser.cookie(world.site, 'XSRF-TOKEN'));
  const [own] = JSON.parse((await world.sessions(browser)).text);
  return own.id;
}

it('Redis and Postgres contain no token, secret, code or cookie in clear, from registration to logout', async () => {
  note('key of the ring', world.handler.config.KEY_RING.split(':')[1]);
  await noteRegistration('at first');
  await registerAnew();
  const browser = createSiteBrowser();
  const handle = await signIn(browser);
  await noteTokens('at first', handle);
  const cookie = `${cookieName}=${browser.cookie(world.site, cookieName)}; XSRF-TOKEN=${browser.cookie(world.site, 'XSRF-TOKEN')}`;
  const as = { cookie, csrf: browser.cookie(world.site, 'XSRF-TOKEN') ?? '', handle };
  const payload = 'a body that a person sends through the proxy';
  note('body of a target request', payload);
  await world.shortenToken(handle, 25_000);
  const path = '/canary-path-of-a-target';
  expect((await world.send({ as, path })).status).toBe(200);
  expect((await world.send({ as, path, method: 'POST', body: payload })).status).toBe(200);
  note('path of a target request', 'canary-path-of-a-target');
  await expect.poll(() => door.presented.length).toBe(1);
  const first = secrets.get('access token at first, signature') ?? '';
  await expect.poll(async () => (await world.stored(handle)).tokens.accessToken).not.toContain(first);
  await noteTokens('after a refresh', handle);
  note('refresh token as it was presented', door.presented[0]);

  const database = new pg.Pool({ connectionString: world.handler.databaseUrl, max: 1 });
  const during = await dumpDatabase(database);
  const logout = await browser.request(world.clientUrl('logout'));
  note('ID token hint of the logout', logout.location?.searchParams.get('id_token_hint'));
  expect((await world.send({ as })).status).toBe(401);
  const after = await dumpDatabase(database);
  await database.end();
  const bytes = await redisBytes();

  // Shows that the search works: it finds the handle and the client id, which are not secret.
  expect(tells(bytes, handle)).toBe(true);
  const [row] = await world.handler.rows<{ oidc_client_id: string }>('SELECT oidc_client_id FROM client_registrations');
  expect(placesOf(after, row?.oidc_client_id ?? '')).not.toEqual([]);
  expect(secrets.size).toBeGreaterThan(30);
  const found = [...secrets].flatMap(([name, secret]) => [
    ...(tells(bytes, secret) ? [`${name} in Redis`] : []),
    ...placesOf(during, secret).map((place) => `${name} in ${place}`),
    ...placesOf(after, secret).map((place) => `${name} in ${place}`),
  ]);
  expect(found).toEqual([]);
  process.stdout.write(
    `searched for ${secrets.size} secrets in ${bytes.length} bytes of Redis and ${during.size + after.size} columns\n`,
  );
});
