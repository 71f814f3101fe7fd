// Stores configurations in Postgres. Writes run in the caller's transaction. That transaction must hold the lock of the
// configuration's row.
import type { Queryable } from '../../service/postgres/postgres.ts';
import { type ConfigurationKey, coreScope, type Revision, type Scope } from './configuration.ts';
import { chooseDefinition, type Definition, definitionKeys, definitionsHome } from './definition.ts';
import { createLists } from './lists.ts';
import {
  type EntryRow,
  entryColumns,
  entryTables,
  keyMatch,
  keyValues,
  type RevisionRow,
  type Rows,
  revisionTexts,
  type StoredEntry,
  toEntry,
  toRevision,
} from './rows.ts';

export type ConfigurationHome = Pick<ConfigurationKey, 'namespace' | 'name'>;

/**
 * SQL expression for the stored size of a value. A revision counts as at least 1 KiB. This limits a tenant's revisions,
 * so that their sum remains fast to compute.
 */
const storedSize = 'greatest(pg_column_size(configuration), 1024)';

const latestNumber = `(SELECT max(revision) FROM configuration_revisions WHERE ${keyMatch})`;
const activeNumber = `(SELECT active FROM configurations WHERE ${keyMatch})`;
/** SQL expressions for the number of a revision. */
const currentSql = {
  latest: latestNumber,
  active: activeNumber,
  activeOrLatest: `coalesce(${activeNumber}, ${latestNumber})`,
};

const latestOfBothSql = `SELECT DISTINCT ON (tenant) tenant, configuration FROM configuration_revisions
  WHERE tenant IN ($1, $2) AND namespace = $3 AND name = $4 ORDER BY tenant, revision DESC`;

export type ConfigurationStore = ReturnType<typeof createConfigurationStore>;

export function createConfigurationStore(database: Queryable) {
  const rows: Rows = async <T extends object>(sql: string, values: unknown[]) =>
    (await database.query<T>(sql, values)).rows;
  return { ...createReads(rows), ...createLists(rows), ...createLatestReads(rows), ...createWrites(rows) };
}

function createReads(rows: Rows) {
  async function entry<Value>(key: ConfigurationKey, cast: '' | '::text'): Promise<StoredEntry<Value>> {
    const [row] = await rows<EntryRow<Value>>(
      `SELECT ${entryColumns(cast)} FROM ${entryTables} WHERE c.tenant = $1 AND c.namespace = $2 AND c.name = $3`,
      keyValues(key),
    );
    return row ? toEntry(row) : { name: key.name };
  }

  /** `number` is an SQL expression. */
  async function revisionText(key: ConfigurationKey, number: string, values: unknown[] = []) {
    const sql = `SELECT ${revisionTexts} FROM configuration_revisions WHERE ${keyMatch} AND revision = ${number}`;
    const [row] = await rows<RevisionRow<string>>(sql, [...keyValues(key), ...values]);
    return row && toRevision(row);
  }

  return {
    read: (key: ConfigurationKey): Promise<StoredEntry> => entry(key, ''),

    /** Like `read`, with the values as JSON texts. */
    readTexts: (key: ConfigurationKey): Promise<StoredEntry<string>> => entry<string>(key, '::text'),

    /** Returns a revision with its value as JSON text. */
    revision: (key: ConfigurationKey, revision: number): Promise<Revision<string> | undefined> =>
      revisionText(key, '$4', [revision]),

    /** Returns the latest or active revision with its value as JSON text. */
    current: (key: ConfigurationKey, which: keyof typeof currentSql): Promise<Revision<string> | undefined> =>
      revisionText(key, currentSql[which]),
  };
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

    /**
     * Returns the JSON text of the member at `path` in the core value, or in the tenant's value if the core value has
     * no member `path[0]`. Undefined if there is none. Only Postgres parses the whole value.
     */
    async memberText(scope: Scope, home: ConfigurationHome, path: [string, ...string[]]): Promise<string | undefined> {
      const [first, ...rest] = path;
      const [row] = await rows<{ text: string | null }>(
        `SELECT (configuration -> $5 #> $6)::text AS text FROM (${latestOfBothSql}) latest
         WHERE json_typeof(configuration) = 'object' AND json_typeof(configuration -> $5) <> 'null'
         ORDER BY tenant = $1 DESC LIMIT 1`,
        [coreScope, scope, home.namespace, home.name, first, rest],
      );
      return row?.text ?? undefined;
    },

    /**
     * Returns a text that changes whenever `latestOfBoth` would return other values. Does not read the values. `xmin`
     * is the transaction that wrote a row, because an edit overwrites the latest revision.
     */
    async latestVersion(scope: Scope, home: ConfigurationHome): Promise<string> {
      const [row] = await rows<{ version: string | null }>(
        `SELECT string_agg(concat_ws(' ', tenant, revision, version), ' ' ORDER BY tenant) AS version FROM (
           SELECT DISTINCT ON (tenant) tenant, revision, xmin AS version FROM configuration_revisions
           WHERE tenant IN ($1, $2) AND namespace = $3 AND name = $4 ORDER BY tenant, revision DESC) latest`,
        [coreScope, scope, home.namespace, home.name],
      );
      return row?.version ?? '';
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

    /** Returns the compressed size of all values of a tenant in Postgres. Reads no value. */
    async storedBytes(scope: Scope): Promise<number> {
      const [row] = await rows<{ bytes: string | null }>(
        `SELECT sum(${storedSize}) AS bytes FROM configuration_revisions WHERE tenant = $1`,
        [scope],
      );
      return Number(row?.bytes ?? 0);
    },

    /** Returns the compressed size of a revision in Postgres; 0 if it does not exist. */
    async storedBytesOf(key: ConfigurationKey, revision: number): Promise<number> {
      const [row] = await rows<{ bytes: number }>(
        `SELECT ${storedSize} AS bytes FROM configuration_revisions WHERE ${keyMatch} AND revision = $4`,
        [...keyValues(key), revision],
      );
      return row?.bytes ?? 0;
    },

    async setActive(key: ConfigurationKey, revision: number): Promise<void> {
      await rows(`UPDATE configurations SET active = $4 WHERE ${keyMatch}`, [...keyValues(key), revision]);
    },

    async remove(key: ConfigurationKey): Promise<void> {
      await rows(`DELETE FROM configurations WHERE ${keyMatch}`, keyValues(key));
    },
  };
}
