// Provides a test's identity provider on a real Keycloak, with the same realms, people, clients and roles as the
// embedded identity provider. Creates all of them through the admin API, and changes only realms that tests have
// created.
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { exportJWK, SignJWT } from 'jose';
import { defaultRealms } from '../../dev/access/default-realms.ts';
import type { RealmDefinition } from '../../dev/access/realm.ts';
import { createUrns } from '../../src/service/urn.ts';
import { makeForeignToken } from '../support/foreign-token.ts';
import { type TestAccess, testServiceSecret } from '../support/test-access.ts';
import { type AdminApi, createAdminApi, type KeycloakServer, requestToken } from './admin-api.ts';
import {
  audienceScope,
  clientRepresentation,
  ownMark,
  realmRepresentation,
  userRepresentation,
} from './realm-representation.ts';

export interface KeycloakAccessOptions {
  urnPrefix?: string;
  realms?: RealmDefinition[];
}

interface MadeRealm {
  definition: RealmDefinition;
  sign: Signer;
}

type Signer = (claims: Parameters<typeof makeForeignToken>[1]) => Promise<string>;

export async function startKeycloakAccess(
  server: KeycloakServer,
  options: KeycloakAccessOptions = {},
): Promise<TestAccess> {
  const urns = createUrns(options.urnPrefix ?? 'urn:example');
  const admin = createAdminApi(server);
  const issuer = (realm: string) => `${server.url}/realms/${realm}`;
  const realms = new Map<string, MadeRealm>();
  const defaults = defaultRealms({ urns, serviceSecret: testServiceSecret });

  const add = async (definition: RealmDefinition) => {
    await makeRealm(admin, definition);
    const sign = await addSigningKey(admin, issuer(definition.name), definition.name);
    realms.set(definition.name, { definition: structuredClone(definition), sign });
  };
  const made = (name: string): MadeRealm => {
    const found = realms.get(name);
    if (!found) throw new Error(`There is no realm ${name}.`);
    return found;
  };
  const findClient = (realm: string, clientId: string) => {
    const { clients } = made(realm).definition;
    const found = clients.find((one) => one.clientId === clientId || one.clientId === urns.service(clientId));
    if (!found) throw new Error(`There is no client ${clientId} in the realm ${realm}.`);
    return found;
  };
  const findUser = (realm: string, email: string) => {
    const found = made(realm).definition.users.find((one) => one.email === email);
    if (!found) throw new Error(`There is no ${email} in the realm ${realm}.`);
    return found;
  };
  for (const definition of [...defaults, ...(options.realms ?? [])]) await add(definition);

  return {
    url: server.url,
    urns,
    issuer,
    serviceToken: (realm, clientId) => {
      const { clientId: id, secret = '' } = findClient(realm, clientId);
      return requestToken(issuer(realm), {
        grant_type: 'client_credentials',
        client_id: id,
        client_secret: secret,
      });
    },
    userToken: (realm, email) => {
      const form = { username: email, password: findUser(realm, email).password };
      return requestToken(issuer(realm), { grant_type: 'password', client_id: 'demo-cli', ...form });
    },
    clientSecret: (realm, clientId) => findClient(realm, clientId).secret ?? '',
    registrationToken: async (realm) => {
      const made = await admin.call('POST', `/${realm}/clients-initial-access`, { expiration: 3_600, count: 1 });
      return textOf(made, 'token');
    },
    addClient: async (realm, client) => {
      const { definition } = made(realm);
      await admin.call('POST', `/${realm}/clients`, clientRepresentation(client, definition.audiences));
      definition.clients.push(client);
    },
    addUser: async (realm, user) => {
      await admin.call('POST', `/${realm}/users`, userRepresentation(user));
      made(realm).definition.users.push(user);
    },
    addRealm: async (name, changes = {}) => {
      const like = defaults.find((realm) => realm.name === 'demo');
      await add({ users: [], clients: [], ...structuredClone(like), ...changes, name });
    },
    // Keycloak's sign-in form has no button to cancel, so require consent: a person can cancel when Keycloak asks for
    // consent.
    cancelSignIn: async (browser, form) => {
      const path = await clientPath(admin, form.url);
      const client = { ...((await admin.call('GET', path)) as object) };
      await admin.call('PUT', path, { ...client, consentRequired: true });
      const sent = await browser.submit(form, { username: 'alice@example.com', password: 'alice' });
      const refused = await browser.submit(await browser.follow(sent), { cancel: 'No' });
      await admin.call('PUT', path, client);
      return refused;
    },
    foreignToken: async (claims = {}, token = {}) => {
      const realm = token.realm ?? 'demo';
      return makeForeignToken(issuer(realm), claims, token, made(realm).sign);
    },
    close: async () => {
      for (const name of realms.keys()) await removeRealm(admin, name);
    },
  };
}

/** Returns the path, in Keycloak's admin API, of the client that an authorization request names. */
async function clientPath(admin: AdminApi, request: URL): Promise<string> {
  const realm = /\/realms\/([^/]+)\//.exec(request.pathname)?.[1] ?? '';
  const clientId = request.searchParams.get('client_id') ?? '';
  const [client] = listOf(await admin.call('GET', `/${realm}/clients?clientId=${encodeURIComponent(clientId)}`));
  return `/${realm}/clients/${textOf(client, 'id')}`;
}

async function makeRealm(admin: AdminApi, definition: RealmDefinition): Promise<void> {
  const { name, audiences = [] } = definition;
  await removeRealm(admin, name);
  await admin.call('POST', '', realmRepresentation(definition));
  await admin.call('POST', `/${name}/client-scopes`, audienceScope(audiences));
  const scopes = listOf(await admin.call('GET', `/${name}/client-scopes`));
  const scope = scopes.find((one) => textOf(one, 'name') === 'platform-audiences');
  await admin.call('PUT', `/${name}/default-default-client-scopes/${textOf(scope, 'id')}`);
}

/** Deletes the realm only if a test created it, because a Keycloak given by URL may contain other realms. */
async function removeRealm(admin: AdminApi, name: string): Promise<void> {
  const present = await admin.find(`/${name}`);
  if (present === undefined) return;
  const { attributes = {} } = present as { attributes?: Record<string, string> };
  if (attributes[ownMark] !== 'true')
    throw new Error(`This Keycloak has a realm ${name} that tests did not create. Use a separate Keycloak for tests.`);
  await admin.call('DELETE', `/${name}`);
}

/** Adds the test's own signing key to the realm, so that the test can sign any token. */
async function addSigningKey(admin: AdminApi, issuer: string, realm: string): Promise<Signer> {
  const { privateKey, pem } = makeKey();
  await admin.call('POST', `/${realm}/components`, {
    name: 'known to the tests',
    providerId: 'rsa',
    providerType: 'org.keycloak.keys.KeyProvider',
    parentId: textOf(await admin.call('GET', `/${realm}`), 'id'),
    config: { priority: ['1000'], enabled: ['true'], active: ['true'], algorithm: ['RS256'], privateKey: [pem] },
  });
  const { n } = await exportJWK(privateKey);
  const published: unknown = await (await fetch(`${issuer}/protocol/openid-connect/certs`)).json();
  const own = listOf(published && typeof published === 'object' && 'keys' in published ? published.keys : []).find(
    (key) => textOf(key, 'n') === n,
  );
  const kid = textOf(own, 'kid');
  return (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid }).sign(privateKey);
}

function makeKey() {
  const pair = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return { privateKey: createPrivateKey(pair.privateKey), pem: pair.privateKey };
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown, member: string): string {
  const found =
    value && typeof value === 'object' ? Object.entries(value).find(([name]) => name === member) : undefined;
  return typeof found?.[1] === 'string' ? found[1] : '';
}
