// The store of the embedded identity provider in memory, for tests that need no database. It passes the same tests as
// the store in Postgres.
import type { JWK } from 'jose';
import type { AdapterPayload } from 'oidc-provider';
import type { EntityKey, EntityStore } from '../../dev/access/entity-store.ts';
import type { Clock } from '../../src/service/clock.ts';

interface Entry {
  key: EntityKey;
  payload: AdapterPayload;
  /** Time at which the entity expires, in milliseconds since 1970. */
  expires: number;
}

export function createMemoryEntityStore(clock: Clock): EntityStore {
  const entries = new Map<string, Entry>();
  const signingKeys = new Map<string, Promise<JWK>>();
  const nameOf = ({ realm, kind, id }: EntityKey) => JSON.stringify([realm, kind, id]);
  const isAlive = (entry: Entry | undefined) => entry !== undefined && entry.expires > clock().getTime();
  const findBy = (realm: string, kind: string, matches: (payload: AdapterPayload) => boolean) =>
    [...entries.values()].filter(
      (entry) => entry.key.realm === realm && entry.key.kind === kind && matches(entry.payload) && isAlive(entry),
    );
  return {
    save: async (key, payload, lifetime) => {
      const expires = lifetime === undefined ? Number.POSITIVE_INFINITY : clock().getTime() + lifetime * 1000;
      entries.set(nameOf(key), { key, payload: structuredClone(payload), expires });
    },
    find: async (key) => {
      const entry = entries.get(nameOf(key));
      return isAlive(entry) ? structuredClone(entry?.payload) : undefined;
    },
    findByUid: async (realm, kind, uid) =>
      structuredClone(findBy(realm, kind, (payload) => payload.uid === uid)[0]?.payload),
    consume: async (key) => {
      const entry = entries.get(nameOf(key));
      if (entry) entry.payload.consumed = Math.floor(clock().getTime() / 1000);
    },
    remove: async (key) => void entries.delete(nameOf(key)),
    removeByGrant: async (realm, kind, grantId) => {
      for (const { key } of findBy(realm, kind, (payload) => payload.grantId === grantId)) entries.delete(nameOf(key));
    },
    signingKey: async (realm, create) => {
      const key = signingKeys.get(realm) ?? create();
      signingKeys.set(realm, key);
      return key;
    },
    removeExpired: async () => {
      for (const [name, entry] of entries) if (!isAlive(entry)) entries.delete(name);
    },
  };
}
