// Stores configurations in Postgres. Writes run in the caller's transaction. That transaction must hold the lock of the
// configuration's row.
import type { Queryable } from '../../service/postgres/postgres.ts';
import { type PageLimits, type PageRow, pageSql } from '../list-sql.ts';
import { type ConfigurationKey, type Criteria, coreScope, type Revision, type Scope } from './configuration.ts';
import { criteriaSql } from './criteria-sql.ts';
import { chooseDefinition, type Definition, definitionKeys, definitionsHome } from './definition.ts';

export type ConfigurationHome = Pick<ConfigurationKey, 'namespace' | 'name'>;

export interface StoredEntry {
  name: string;
  latest?: Revision;
  active?: Revision;
}

interface PageOptions<After> extends PageLimits {
  /** The position of the last row of the previous page. Undefined for the first page. */
  after: After | undefined;
  criteria: Criteria | undefined;
}

/** A page of a list. */
export interface Listed<T> {
  items: T[];
  /** Number of items on all pages. */
  total: number;
  /** Whether another page follows. */
  hasMore: boolean;
}

interface EntryRow {
  name: string;
  revision: number;
  created: Date;
  last_updated: Date;
  configuration: unknown;
  active: number | null;
  active_created: Date | null;
  active_last_updated: Date | null;
  active_configuration: unknown;
}

type RevisionRow = Pick<EntryRow, 'revision' | 'created' | 'last_updated' | 'configuration'>;

const entryColumns = `c.name, l.revision, l.created, l.last_updated, l.configuration, c.active,
  a.created AS active_created, a.last_updated AS active_last_updated, a.configuration AS active_configuration`;

// Joins the active revision only if it is not the latest one. LATERAL with LIMIT is needed if Postgres has no
// statistics: a plain join then reads all revisions of the namespace for each configuration.
const entryTables = `configurations c
  JOIN LATERAL (SELECT revision, created, last_updated, configuration FROM configuration_revisions r
    WHERE r.tenant = c.tenant AND r.namespace = c.namespace AND r.name = c.name
    ORDER BY r.revision DESC LIMIT 1) l ON true
  LEFT JOIN LATERAL (SELECT revision, created, last_updated, configuration FROM configuration_revisions r
    WHERE r.tenant = c.tenant AND r.namespace = c.namespace AND r.name = c.name
      AND r.revision = c.active AND r.revision <> l.revision LIMIT 1) a ON true`;

const latestOfBothSql = `SELECT DISTINCT ON (tenant) tenant, configuration FROM configuration_revisions
  WHERE tenant IN ($1, $2) AND namespace = $3 AND name = $4 ORDER BY tenant, revision DESC`;

const keyMatch = 'tenant = $1 AND namespace = $2 AND name = $3';

export type ConfigurationStore = ReturnType<typeof createConfigurationStore>;

export function createConfigurationStore(database: Queryable) {
  const rows: Rows = async <T extends object>(sql: string, values: unknown[]) =>
    (await database.query<T>(sql, values)).rows;
  return { ...createReads(rows), ...createLists(rows), ...createLatestReads(rows), ...createWrites(rows) };
}

type Rows = <T extends object>(sql: string, values: unknown[]) => Promise<T[]>;

function createReads(rows: Rows) {
  return {
    async read(key: ConfigurationKey): Promise<StoredEntry> {
      const [row] = await rows<EntryRow>(
        `SELECT ${entryColumns} FROM ${entryTables} WHERE c.tenant = $1 AND c.namespace = $2 AND c.name = $3`,
        keyValues(key),
      );
      return row ? toEntry(row) : { name: key.name };
    },

    async revision(key: ConfigurationKey, revision: number): Promise<Revision | undefined> {
      const [row] = await rows<RevisionRow>(
        `SELECT revision, created, last_updated, configuration FROM configuration_revisions
         WHERE ${keyMatch} AND revision = $4`,
        [...keyValues(key), revision],
      );
      return row && toRevision(row);
    },
  };
}

function createLists(rows: Rows) {
  return {
    async list(scope: Scope, namespace: string, options: PageOptions<string>): Promise<Listed<StoredEntry>> {
      const values: unknown[] = [scope, namespace];
      const matches = `c.tenant = $1 AND c.namespace = $2${criteriaSql(options.criteria, values, 'c.name', 'l')}`;
      const [count] = await rows<{ total: number }>(
        `SELECT count(*)::integer AS total FROM ${entryTables} WHERE ${matches}`,
        values,
      );
      const sql = pageSql(options, values, {
        first: `$${values.push(options.after ?? '')}::text`,
        position: 'name',
        sizes: ['configuration', 'active_configuration'],
        rowAfter: (name) =>
          `SELECT ${entryColumns} FROM ${entryTables} WHERE ${matches} AND c.name > ${name} ORDER BY c.name LIMIT 1`,
      });
      return listed(await rows<EntryRow & PageRow>(sql, values), toEntry, count?.total);
    },

    async revisions(key: ConfigurationKey, options: PageOptions<number>): Promise<Listed<Revision>> {
      const values: unknown[] = keyValues(key);
      const matches = `${keyMatch}${criteriaSql(options.criteria, values, 'name', 'configuration_revisions')}`;
      const [count] = await rows<{ total: number }>(
        `SELECT count(*)::integer AS total FROM configuration_revisions WHERE ${matches}`,
        values,
      );
      const sql = pageSql(options, values, {
        first: `$${values.push(options.after ?? 2_147_483_648)}::bigint`,
        position: 'revision',
        sizes: ['configuration'],
        rowAfter: (revision) =>
          `SELECT revision, created, last_updated, configuration FROM configuration_revisions
           WHERE ${matches} AND configuration_revisions.revision < ${revision} ORDER BY revision DESC LIMIT 1`,
      });
      return listed(await rows<RevisionRow & PageRow>(sql, values), toRevision, count?.total);
    },
  };
}

function listed<Row extends PageRow, T>(rows: Row[], map: (row: Row) => T, total = 0): Listed<T> {
  return { items: rows.map(map), total, hasMore: rows.at(-1)?.more === true };
}

/** Returns functions that read the latest values of core configuration and of a tenant's configuration in one query. */
function createLatestReads(rows: Rows) {
  /**
   * Returns members of the latest values of a configuration: first the core values, in the order of `keys`, then the
   * tenant's values.
   */
  async function members(scope: Scope, home: ConfigurationHome, keys: readonly string[]): Promise<unknown[]> {
    const found = await rows<{ values: unknown[] }>(
      `SELECT ARRAY(SELECT configuration -> key FROM unnest($5::text[]) WITH ORDINALITY AS k(key, n) ORDER BY n) AS values
       FROM (${latestOfBothSql}) latest WHERE json_typeof(configuration) = 'object' ORDER BY tenant = $1 DESC`,
      [coreScope, scope, home.namespace, home.name, keys],
    );
    return found.flatMap(({ values }) => values);
  }

  return {
    members,

    /**
     * Returns the definition of a configuration. A core definition takes precedence over a tenant's definition, and the
     * definition of a name over the definition of its namespace.
     */
    async definition(scope: Scope, namespace: string, name: string): Promise<Definition | undefined> {
      return chooseDefinition(await members(scope, definitionsHome, definitionKeys(namespace, name)));
    },

    /** Returns the latest core value and tenant's value of a configuration; undefined if a value does not exist. */
    async latestOfBoth(scope: Scope, home: ConfigurationHome): Promise<{ core: unknown; tenant: unknown }> {
      const found = await rows<{ tenant: Scope; configuration: unknown }>(latestOfBothSql, [
        coreScope,
        scope,
        home.namespace,
        home.name,
      ]);
      const latestOf = (tenant: Scope) => found.find((row) => row.tenant === tenant)?.configuration;
      return { core: latestOf(coreScope), tenant: latestOf(scope) };
    },
  };
}

function createWrites(rows: Rows) {
  return {
    /** Locks the configuration's row, and creates it if it does not exist. Requires a transaction. */
    async lockOrCreate(key: ConfigurationKey): Promise<void> {
      await rows(
        `INSERT INTO configurations (tenant, namespace, name) VALUES ($1, $2, $3)
         ON CONFLICT (tenant, namespace, name) DO UPDATE SET active = configurations.active`,
        keyValues(key),
      );
    },

    /** Locks the configuration's row. Resolves to false if it does not exist. Requires a transaction. */
    async lock(key: ConfigurationKey): Promise<boolean> {
      const found = await rows(`SELECT 1 FROM configurations WHERE ${keyMatch} FOR UPDATE`, keyValues(key));
      return found.length > 0;
    },

    async saveRevision(key: ConfigurationKey, revision: Revision): Promise<void> {
      await rows(
        `INSERT INTO configuration_revisions (tenant, namespace, name, revision, created, last_updated, configuration)
         VALUES ($1, $2, $3, $4, $5, $6, $7::json)
         ON CONFLICT (tenant, namespace, name, revision) DO UPDATE
           SET last_updated = excluded.last_updated, configuration = excluded.configuration`,
        [
          ...keyValues(key),
          revision.revision,
          revision.created,
          revision.lastUpdated,
          JSON.stringify(revision.configuration),
        ],
      );
    },

    // Each revision counts as at least 1 KiB. This limits the number of a tenant's revisions, so the sum stays fast.
    /** Returns the compressed size of all values of a tenant in Postgres. Reads no value. */
    async storedBytes(scope: Scope): Promise<number> {
      const [row] = await rows<{ bytes: string | null }>(
        'SELECT sum(greatest(pg_column_size(configuration), 1024)) AS bytes FROM configuration_revisions WHERE tenant = $1',
        [scope],
      );
      return Number(row?.bytes ?? 0);
    },

    async setActive(key: ConfigurationKey, revision: number): Promise<void> {
      await rows(`UPDATE configurations SET active = $4 WHERE ${keyMatch}`, [...keyValues(key), revision]);
    },

    async remove(key: ConfigurationKey): Promise<void> {
      await rows(`DELETE FROM configurations WHERE ${keyMatch}`, keyValues(key));
    },
  };
}

const keyValues = ({ scope, namespace, name }: ConfigurationKey): unknown[] => [scope, namespace, name];

function toRevision(row: RevisionRow): Revision {
  return {
    revision: row.revision,
    created: row.created,
    lastUpdated: row.last_updated,
    configuration: row.configuration,
  };
}

function toEntry(row: EntryRow): StoredEntry {
  const latest = toRevision(row);
  if (row.active === null) return { name: row.name, latest };
  if (row.active === row.revision || !row.active_created || !row.active_last_updated)
    return { name: row.name, latest, active: latest };
  const active = {
    revision: row.active,
    created: row.active_created,
    lastUpdated: row.active_last_updated,
    configuration: row.active_configuration,
  };
  return { name: row.name, latest, active };
}
