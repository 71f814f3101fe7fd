// The rows of configurations in Postgres, and how they become entries and revisions.
import type { ConfigurationKey, Revision } from './configuration.ts';

export interface StoredEntry<Value = unknown> {
  name: string;
  latest?: Revision<Value>;
  active?: Revision<Value>;
}

export interface RevisionRow<Value> {
  revision: number;
  created: Date;
  last_updated: Date;
  configuration: Value;
}

export interface EntryRow<Value> extends RevisionRow<Value> {
  name: string;
  active: number | null;
  active_created: Date | null;
  active_last_updated: Date | null;
  active_configuration: Value;
}

/** `cast` is `::text` for values as JSON text, or empty for parsed values. */
export const entryColumns = (cast: '' | '::text') =>
  `c.name, l.revision, l.created, l.last_updated, l.configuration${cast} AS configuration, c.active,
  a.created AS active_created, a.last_updated AS active_last_updated, a.configuration${cast} AS active_configuration`;

/** The columns of a revision, with its value as JSON text. */
export const revisionTexts = 'revision, created, last_updated, configuration::text AS configuration';

// Joins the active revision only if it is not the latest one. LATERAL with LIMIT is needed if Postgres has no
// statistics: a plain join then reads all revisions of the namespace for each configuration.
export const entryTables = `configurations c
  JOIN LATERAL (SELECT revision, created, last_updated, configuration FROM configuration_revisions r
    WHERE r.tenant = c.tenant AND r.namespace = c.namespace AND r.name = c.name
    ORDER BY r.revision DESC LIMIT 1) l ON true
  LEFT JOIN LATERAL (SELECT revision, created, last_updated, configuration FROM configuration_revisions r
    WHERE r.tenant = c.tenant AND r.namespace = c.namespace AND r.name = c.name
      AND r.revision = c.active AND r.revision <> l.revision LIMIT 1) a ON true`;

export const keyMatch = 'tenant = $1 AND namespace = $2 AND name = $3';

export type Rows = <T extends object>(sql: string, values: unknown[]) => Promise<T[]>;

export const keyValues = ({ scope, namespace, name }: ConfigurationKey): unknown[] => [scope, namespace, name];

export function toRevision<Value>(row: RevisionRow<Value>): Revision<Value> {
  return {
    revision: row.revision,
    created: row.created,
    lastUpdated: row.last_updated,
    configuration: row.configuration,
  };
}

export function toEntry<Value>(row: EntryRow<Value>): StoredEntry<Value> {
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
