// What tests need of an access service, whichever it is: the embedded one, or a real Keycloak.
import type { JWTPayload } from 'jose';
import type { RealmClient, RealmDefinition, RealmUser } from '../../dev/access/realm.ts';
import type { Urns } from '../../src/service/urn.ts';
import type { SiteBrowser, Visit } from './site-browser.ts';

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
  /** A token that lets a client be registered. */
  registrationToken(realm: string): Promise<string>;
  addClient(realm: string, client: RealmClient): Promise<void>;
  addUser(realm: string, user: RealmUser): Promise<void>;
  /** A realm like `demo` (people, clients and roles) under another name, with what `changes` says differently. */
  addRealm(name: string, changes?: Partial<RealmDefinition>): Promise<void>;
  /** Refuses at the sign-in form, as alice@example.com may; answers the visit after it. */
  cancelSignIn(browser: SiteBrowser, form: Visit): Promise<Visit>;
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

/** The secret of a platform service's account in tests. */
export function testServiceSecret(clientId: string): string {
  return `${clientId}-secret`;
}
