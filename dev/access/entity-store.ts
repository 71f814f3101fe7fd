// Stores what the embedded identity provider issues: registered clients, sessions, grants, tokens and signing keys.
import type { JWK } from 'jose';
import type { AdapterPayload } from 'oidc-provider';

/** Identifies an entity. `kind` is the name of its model in oidc-provider, such as `RefreshToken`. */
export interface EntityKey {
  realm: string;
  kind: string;
  id: string;
}

export interface EntityStore {
  /** Saves an entity. `lifetime` is in seconds; without it, the entity does not expire. */
  save(key: EntityKey, payload: AdapterPayload, lifetime: number | undefined): Promise<void>;
  find(key: EntityKey): Promise<AdapterPayload | undefined>;
  /** Finds an entity by the `uid` in its payload. Only sessions have a `uid`. */
  findByUid(realm: string, kind: string, uid: string): Promise<AdapterPayload | undefined>;
  /** Marks a code or token as used: sets `consumed` in its payload, in seconds since 1970. */
  consume(key: EntityKey): Promise<void>;
  remove(key: EntityKey): Promise<void>;
  removeByGrant(realm: string, kind: string, grantId: string): Promise<void>;
  /**
   * Returns the realm's private signing key. Calls `create` if the realm has no key. Concurrent calls all return the
   * same key.
   */
  signingKey(realm: string, create: () => Promise<JWK>): Promise<JWK>;
  removeExpired(): Promise<void>;
}
