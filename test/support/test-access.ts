// The interface through which tests use an identity provider: the embedded one or a real Keycloak.
import type { JWTPayload } from 'jose';
import type { RealmClient, RealmDefinition, RealmUser } from '../../dev/access/realm.ts';
import type { Urns } from '../../src/service/urn.ts';
import type { SiteBrowser, Visit } from './site-browser.ts';

export interface TestAccess {
  /** `http://127.0.0.1:<port>/auth`: the address to call, and also the public one. */
  url: string;
  issuer(realm: string): string;
  urns: Urns;
  /**
   * Gets an access token for a client's service account by client credentials. Expands bare service names
   * (`form-service`) to their URN.
   */
  serviceToken(realm: string, clientId: string): Promise<string>;
  /** Gets an access token for a person by direct access grant. */
  userToken(realm: string, email: string): Promise<string>;
  clientSecret(realm: string, clientId: string): string;
  /** Returns a token that permits the registration of a client. */
  registrationToken(realm: string): Promise<string>;
  addClient(realm: string, client: RealmClient): Promise<void>;
  addUser(realm: string, user: RealmUser): Promise<void>;
  /** Adds a realm like `demo` (people, clients and roles) under another name, with the given changes. */
  addRealm(name: string, changes?: Partial<RealmDefinition>): Promise<void>;
  /**
   * Cancels the sign-in on the sign-in form, and returns the next visit. If the provider requires it, signs in as
   * alice@example.com first.
   */
  cancelSignIn(browser: SiteBrowser, form: Visit): Promise<Visit>;
  /**
   * Issues a token with any claims. By default, the token is signed with the realm's key, issued by the realm and valid
   * for 300 s. Each of `claims` replaces a default; `undefined` removes it.
   */
  foreignToken(claims?: JWTPayload, options?: ForeignToken): Promise<string>;
  close(): Promise<void>;
}

export interface ForeignToken {
  /** The realm whose key signs the token; `demo` by default. */
  realm?: string;
  /**
   * `realm` for the realm's key (default), `unknown` for an unpublished RSA key, `none` for no signature, `hmac` for
   * HS256.
   */
  key?: 'realm' | 'unknown' | 'none' | 'hmac';
  /** The time from which iat and exp are counted. */
  now?: Date;
}

/** Returns the secret of a platform service's account in tests. */
export function testServiceSecret(clientId: string): string {
  return `${clientId}-secret`;
}
