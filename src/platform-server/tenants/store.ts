// Stores tenants in Postgres, and finds the tenants of tokens that are being verified.
import type { Tenants } from '../../service/auth/identity.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { Urns } from '../../service/urn.ts';
import { namesFor, type StoredTenant, toIdentity } from './tenant.ts';

export interface TenantFilter {
  id?: string | undefined;
  /** The full name of the tenant. The comparison ignores case. */
  name?: string | undefined;
  realm?: string | undefined;
  adminEmail?: string | undefined;
}

export type TenantStore = ReturnType<typeof createTenantStore>;

const columns = 'id, name, realm, admin_email AS "adminEmail"';

export function createTenantStore(database: Queryable) {
  return {
    async find({ id, name, realm, adminEmail }: TenantFilter): Promise<StoredTenant[]> {
      const { rows } = await database.query<StoredTenant>(
        `SELECT ${columns} FROM tenants
         WHERE ($1::text IS NULL OR id = $1) AND ($2::text IS NULL OR lower(name) = lower($2))
           AND ($3::text IS NULL OR realm = $3) AND ($4::text IS NULL OR lower(admin_email) = lower($4))
         ORDER BY name`,
        [id ?? null, name ?? null, realm ?? null, adminEmail ?? null],
      );
      return rows;
    },

    async findNamed(name: string): Promise<StoredTenant | undefined> {
      const { rows } = await database.query<StoredTenant>(
        `SELECT ${columns} FROM tenants WHERE lower(name) = ANY($1) LIMIT 1`,
        [namesFor(name)],
      );
      return rows[0];
    },

    /** Returns the tenant's mail domains in lower case. */
    async mailDomains(id: string): Promise<string[]> {
      const sql = 'SELECT mail_domains AS domains FROM tenants WHERE id = $1';
      return (await database.query<{ domains: string[] }>(sql, [id])).rows[0]?.domains ?? [];
    },

    /** Returns the name of a given tenant whose name or realm belongs to a tenant with none of the given ids. */
    async findClash(given: readonly { id: string; name: string; realm: string }[]): Promise<string | undefined> {
      const { rows } = await database.query<{ name: string }>(
        `SELECT given.name FROM unnest($1::text[], $2::text[], $3::text[]) AS given (id, name, realm)
         JOIN tenants t ON (lower(t.name) = lower(given.name) OR t.realm = given.realm) AND t.id <> ALL ($1) LIMIT 1`,
        [given.map(({ id }) => id), given.map(({ name }) => name), given.map(({ realm }) => realm)],
      );
      return rows[0]?.name;
    },

    /** Gives up the names and realms of these tenants. Each must be saved again in the same transaction. */
    async vacate(ids: readonly string[]): Promise<void> {
      await database.query(`UPDATE tenants SET name = 'former ' || id, realm = 'former ' || id WHERE id = ANY ($1)`, [
        ids,
      ]);
    },

    async save({ id, name, realm, adminEmail, mailDomains = [] }: StoredTenant): Promise<void> {
      await database.query(
        `INSERT INTO tenants (id, name, realm, admin_email, mail_domains) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (id) DO UPDATE SET name = $2, realm = $3, admin_email = $4, mail_domains = $5`,
        [id, name, realm, adminEmail, mailDomains],
      );
    },
  };
}

/** Finds tenants by realm, URN or name in this process's own table. */
export function createOwnTenants(store: TenantStore, urns: Urns): Tenants {
  const prefix = urns.tenant('');
  return {
    async byRealm(realm) {
      const [tenant] = await store.find({ realm });
      return tenant && toIdentity(urns, tenant);
    },
    async byId(urn) {
      if (!urn.startsWith(prefix)) return undefined;
      const [tenant] = await store.find({ id: urn.slice(prefix.length) });
      return tenant && toIdentity(urns, tenant);
    },
    async byName(name) {
      const tenant = await store.findNamed(name);
      return tenant && toIdentity(urns, tenant);
    },
  };
}
