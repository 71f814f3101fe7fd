// Stores entities in Postgres, so that clients, sessions and signing keys survive a restart.
import type { JWK } from 'jose';
import type { AdapterPayload } from 'oidc-provider';
import type { Clock } from '../../src/service/clock.ts';
import type { Queryable } from '../../src/service/postgres/postgres.ts';
import type { EntityStore } from './entity-store.ts';

interface Row {
  payload: string;
  consumed: Date | null;
}

/** Creates the store. The database must have the tables that the files in `migrations` create. */
export function createPostgresEntityStore(database: Queryable, clock: Clock): EntityStore {
  return {
    save: async ({ realm, kind, id }, payload, lifetime) => {
      const expires = lifetime === undefined ? null : new Date(clock().getTime() + lifetime * 1000);
      await database.query(
        `INSERT INTO entities (realm, kind, id, payload, uid, grant_id, expires) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (realm, kind, id) DO UPDATE SET payload = excluded.payload, uid = excluded.uid,
           grant_id = excluded.grant_id, expires = excluded.expires`,
        [realm, kind, id, JSON.stringify(payload), payload.uid ?? null, payload.grantId ?? null, expires],
      );
    },
    find: async ({ realm, kind, id }) => {
      const { rows } = await database.query<Row>(
        `SELECT payload, consumed FROM entities
         WHERE realm = $1 AND kind = $2 AND id = $3 AND (expires IS NULL OR expires > $4)`,
        [realm, kind, id, clock()],
      );
      return read(rows[0]);
    },
    findByUid: async (realm, kind, uid) => {
      const { rows } = await database.query<Row>(
        `SELECT payload, consumed FROM entities
         WHERE realm = $1 AND kind = $2 AND uid = $3 AND (expires IS NULL OR expires > $4)`,
        [realm, kind, uid, clock()],
      );
      return read(rows[0]);
    },
    consume: async ({ realm, kind, id }) => {
      await database.query('UPDATE entities SET consumed = $4 WHERE realm = $1 AND kind = $2 AND id = $3', [
        realm,
        kind,
        id,
        clock(),
      ]);
    },
    remove: async ({ realm, kind, id }) => {
      await database.query('DELETE FROM entities WHERE realm = $1 AND kind = $2 AND id = $3', [realm, kind, id]);
    },
    removeByGrant: async (realm, kind, grantId) => {
      await database.query('DELETE FROM entities WHERE realm = $1 AND kind = $2 AND grant_id = $3', [
        realm,
        kind,
        grantId,
      ]);
    },
    signingKey: (realm, create) => signingKey(database, realm, create),
    removeExpired: async () => {
      await database.query('DELETE FROM entities WHERE expires <= $1', [clock()]);
    },
  };
}

async function signingKey(database: Queryable, realm: string, create: () => Promise<JWK>): Promise<JWK> {
  const find = () => database.query<{ key: JWK }>('SELECT key FROM signing_keys WHERE realm = $1', [realm]);
  const [present] = (await find()).rows;
  if (present) return present.key;
  await database.query('INSERT INTO signing_keys (realm, key) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    realm,
    await create(),
  ]);
  const [stored] = (await find()).rows;
  if (!stored) throw new Error('The signing key was not stored.');
  return stored.key;
}

function read(row: Row | undefined): AdapterPayload | undefined {
  if (!row) return undefined;
  const payload: AdapterPayload = JSON.parse(row.payload);
  return row.consumed ? { ...payload, consumed: Math.floor(row.consumed.getTime() / 1000) } : payload;
}
