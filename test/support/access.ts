// A real OpenID provider for a test: the embedded access service on a port of its own, with realms, accounts and clients
// to the test's liking, and a way to sign tokens that no honest provider would issue.
import { randomUUID } from 'node:crypto';
import { generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { type AccessService, createAccessService } from '../../src/embedded/access/access.ts';
import { defaultRealms } from '../../src/embedded/access/default-realms.ts';
import { createMemoryEntityStore, type EntityStore } from '../../src/embedded/access/entity-store.ts';
import type { Realm, RealmClient, RealmDefinition, RealmUser } from '../../src/embedded/access/realm.ts';
import { listen } from '../../src/embedded/listen.ts';
import { systemClock } from '../../src/service/clock.ts';
import { createUrns, type Urns } from '../../src/service/urn.ts';

export interface TestAccess {
  /** `http://127.0.0.1:<port>/auth`: both the address to call and the public one. */
  url: string;
  issuer(realm: string): string;
  urns: Urns;
  /** An access token of a client's service account, by client credentials. Bare service names (`form-service`) are expanded to their URN. */
  serviceToken(realm: string, clientId: string): Promise<string>;
  /** An access token of a person, by direct access grant. */
  userToken(realm: string, email: string): Promise<string>;
  clientSecret(realm: string, clientId: string): string;
  addClient(realm: string, client: RealmClient): void;
  addUser(realm: string, user: RealmUser): void;
  /** A realm like `demo` (people, clients and roles) under another name, with what `changes` says differently. */
  addRealm(name: string, changes?: Partial<RealmDefinition>): Promise<void>;
  /**
   * A token with any claims at all. Without `options`: signed by the realm's own key, issued by the realm, valid 300 s;
   * each of `claims` replaces a default, and `undefined` removes it.
   */
  foreignToken(claims?: JWTPayload, options?: ForeignToken): Promise<string>;
  close(): Promise<void>;
}

export interface ForeignToken {
  /** `demo` unless told. */
  realm?: string;
  /** `realm` for the realm's key (default), `unknown` for an RSA key that nobody published, `none` for no signature, `hmac` for HS256. */
  key?: 'realm' | 'unknown' | 'none' | 'hmac';
  /** The moment to count iat and exp from. */
  now?: Date;
}

export interface TestAccessOptions {
  urnPrefix?: string;
  /** In memory unless told. */
  store?: EntityStore;
  /** Added to the realms `demo` and `core`. */
  realms?: RealmDefinition[];
}

export async function startTestAccess(options: TestAccessOptions = {}): Promise<TestAccess> {
  const urns = createUrns(options.urnPrefix ?? 'urn:example');
  let handle: AccessService['app'] | undefined;
  const listening = await listen((req, res) => handle?.(req, res));
  const url = `http://127.0.0.1:${listening.port}/auth`;
  const store = options.store ?? createMemoryEntityStore(systemClock);
  const access = await createAccessService({ publicUrl: url, store, cookieKeys: ['test cookie key'] });
  handle = access.app;
  const defaults = defaultRealms({ urns, serviceSecret: testServiceSecret });
  for (const realm of [...defaults, ...(options.realms ?? [])]) await access.addRealm(realm);

  const issuer = (realm: string) => `${url}/realms/${realm}`;
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
      return requestToken(issuer(realm), form);
    },
    userToken: async (realm, email) => {
      const user = realmOf(realm).definition.users.find((candidate) => candidate.email === email);
      if (!user) throw new Error(`There is no ${email} in the realm ${realm}.`);
      const form = { grant_type: 'password', client_id: 'demo-cli', username: email, password: user.password };
      return requestToken(issuer(realm), form);
    },
    clientSecret: (realm, clientId) => findClient(realm, clientId).secret ?? '',
    addClient: (realm, client) => realmOf(realm).addClient(client),
    addUser: (realm, user) => {
      realmOf(realm).definition.users.push(user);
      realmOf(realm).addUser(user);
    },
    addRealm: async (name, changes = {}) => {
      const like = structuredClone(defaults.find((realm) => realm.name === 'demo'));
      await access.addRealm({ users: [], clients: [], ...like, ...changes, name });
    },
    foreignToken: async (claims = {}, { realm = 'demo', key = 'realm', now = new Date() } = {}) => {
      const seconds = Math.floor(now.getTime() / 1000);
      const defaultClaims = {
        iss: issuer(realm),
        sub: randomUUID(),
        typ: 'Bearer',
        azp: 'foreign',
        iat: seconds,
        exp: seconds + 300,
      };
      const payload: JWTPayload = { ...defaultClaims, jti: randomUUID(), ...claims };
      return key === 'realm' ? access.sign(realm, payload) : signWithout(key, payload);
    },
    close: () => listening.close(),
  };
}

/** The secret of a platform service's account in tests. */
export function testServiceSecret(clientId: string): string {
  return `${clientId}-secret`;
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

async function signWithout(key: 'unknown' | 'none' | 'hmac', payload: JWTPayload): Promise<string> {
  if (key === 'unknown') {
    const { privateKey } = await generateKeyPair('RS256');
    return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: 'unknown' }).sign(privateKey);
  }
  if (key === 'hmac') {
    return new SignJWT(payload).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode('x'.repeat(32)));
  }
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${encode({ alg: 'none', typ: 'JWT' })}.${encode(payload)}.`;
}
