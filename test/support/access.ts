// A real OpenID provider for a test: the embedded one on its own port, or a real Keycloak under `npm run
// test:keycloak`. A test chooses its realms, accounts and clients, and can sign tokens that no honest provider would
// issue.
import { type AccessService, createAccessService } from '../../dev/access/access.ts';
import { defaultRealms } from '../../dev/access/default-realms.ts';
import type { EntityStore } from '../../dev/access/entity-store.ts';
import type { Realm, RealmClient, RealmDefinition } from '../../dev/access/realm.ts';
import { listen } from '../../dev/listen.ts';
import { systemClock } from '../../src/service/clock.ts';
import { createUrns } from '../../src/service/urn.ts';
import { startKeycloakAccess } from '../keycloak/keycloak-access.ts';
import { keycloakOfRun } from '../keycloak/keycloak-of-run.ts';
import { makeForeignToken } from './foreign-token.ts';
import { createMemoryEntityStore } from './memory-entity-store.ts';
import { type TestAccess, testServiceSecret } from './test-access.ts';

export type { TestAccess } from './test-access.ts';
export { testServiceSecret };

export interface TestAccessOptions {
  urnPrefix?: string;
  /** Where the provider keeps its state; by default in memory. */
  store?: EntityStore;
  /** Realms in addition to `demo` and `core`. */
  realms?: RealmDefinition[];
  /** Seconds for which tokens of `core` are valid, for a test that moves the clock of a service. */
  coreTokenLifetime?: number;
  /**
   * Public address, ending in `/auth`. By default, the address at which the provider listens. Set it if tokens must
   * stay valid after the test has replaced this provider by a new provider on a different port.
   */
  publicUrl?: string;
  /** Seconds for which access tokens of `demo` are valid, so that they are refreshed often. */
  demoTokenLifetime?: number;
  /** Returns the port of a proxy in front of `port`. All callers reach the provider through that proxy. */
  front?(port: number): Promise<number>;
}

export async function startTestAccess(options: TestAccessOptions = {}): Promise<TestAccess> {
  const keycloak = keycloakOfRun();
  if (keycloak && (options.store || options.publicUrl))
    throw new Error('This test looks into the embedded access service.');
  return keycloak ? startKeycloakAccess(keycloak, options) : startEmbeddedAccess(options);
}

async function startEmbeddedAccess(options: TestAccessOptions): Promise<TestAccess> {
  const urns = createUrns(options.urnPrefix ?? 'urn:example');
  let handle: AccessService['app'] | undefined;
  const listening = await listen((req, res) => handle?.(req, res));
  const port = (await options.front?.(listening.port)) ?? listening.port;
  const url = `http://127.0.0.1:${port}/auth`;
  const store = options.store ?? createTestStore();
  const { publicUrl = url } = options;
  const access = await createAccessService({ publicUrl, store, cookieKeys: ['test cookie key'] });
  handle = access.app;
  const defaults = defaultRealms({ urns, serviceSecret: testServiceSecret });
  const core = defaults.find(({ name }) => name === 'core');
  if (core && options.coreTokenLifetime) core.accessTokenLifetime = options.coreTokenLifetime;
  const demo = defaults.find(({ name }) => name === 'demo');
  if (demo && options.demoTokenLifetime) demo.accessTokenLifetime = options.demoTokenLifetime;
  for (const realm of [...defaults, ...(options.realms ?? [])]) await access.addRealm(realm);

  const issuer = (realm: string) => `${publicUrl}/realms/${realm}`;
  const callable = (realm: string) => `${url}/realms/${realm}`;
  const realmOf = (name: string): Realm => {
    const realm = access.realm(name);
    if (!realm) throw new Error(`There is no realm ${name}.`);
    return realm;
  };
  const findClient = (realm: string, clientId: string): RealmClient => {
    const client = realmOf(realm).client(clientId) ?? realmOf(realm).client(urns.service(clientId));
    if (!client) throw new Error(`There is no client ${clientId} in the realm ${realm}.`);
    return client;
  };
  return {
    url,
    urns,
    issuer,
    serviceToken: async (realm, clientId) => {
      const client = findClient(realm, clientId);
      const form = { grant_type: 'client_credentials', client_id: client.clientId, client_secret: client.secret ?? '' };
      return requestToken(callable(realm), form);
    },
    userToken: async (realm, email) => {
      const user = realmOf(realm).definition.users.find((candidate) => candidate.email === email);
      if (!user) throw new Error(`There is no ${email} in the realm ${realm}.`);
      const form = { grant_type: 'password', client_id: 'demo-cli', username: email, password: user.password };
      return requestToken(callable(realm), form);
    },
    clientSecret: (realm, clientId) => findClient(realm, clientId).secret ?? '',
    registrationToken: async (realm) => realmOf(realm).definition.registrationToken ?? '',
    addClient: async (realm, client) => realmOf(realm).addClient(client),
    addUser: async (realm, user) => {
      realmOf(realm).definition.users.push(user);
      realmOf(realm).addUser(user);
    },
    addRealm: async (name, changes = {}) => {
      const like = structuredClone(defaults.find((realm) => realm.name === 'demo'));
      await access.addRealm({ users: [], clients: [], ...like, ...changes, name });
    },
    cancelSignIn: (browser, form) => browser.submit(form, { action: 'cancel' }),
    foreignToken: async (claims = {}, token = {}) => {
      const realm = token.realm ?? 'demo';
      return makeForeignToken(issuer(realm), claims, token, (payload) => access.sign(realm, payload));
    },
    close: () => listening.close(),
  };
}

/** Signing keys, keyed by realm name. They are kept, because creating them takes most of a provider's start time. */
const signingKeys = createMemoryEntityStore(systemClock);

/** Creates an empty store. Realms of the same name have the same signing key in all test files of this process. */
function createTestStore(): EntityStore {
  return { ...createMemoryEntityStore(systemClock), signingKey: signingKeys.signingKey };
}

async function requestToken(issuer: string, form: Record<string, string>): Promise<string> {
  const response = await fetch(`${issuer}/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  const body: unknown = await response.json();
  const token = body && typeof body === 'object' && 'access_token' in body ? body.access_token : undefined;
  if (typeof token !== 'string')
    throw new Error(`The access service answered ${response.status}: ${JSON.stringify(body)}`);
  return token;
}
