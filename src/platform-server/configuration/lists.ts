// Lists configurations and revisions, page by page. Their values are JSON texts, which only the reader parses.
import { invalidRequest } from '../../service/http/problem.ts';
import { type PageLimits, type PageRow, pageSql } from '../list-sql.ts';
import type { ConfigurationKey, Criteria, Revision, Scope } from './configuration.ts';
import { comparesFields, criteriaSql, oversizeSql } from './criteria-sql.ts';
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

export function createLists(rows: Rows) {
  /** Throws 400 if the criteria compare fields of too many large values. */
  async function requireScannable(
    criteria: Criteria | undefined,
    keys: unknown[],
    scan: Parameters<typeof oversizeSql>[2],
  ): Promise<void> {
    if (!comparesFields(criteria)) return;
    const values = [...keys];
    const found = await rows(oversizeSql(criteria, values, scan), values);
    if (found.length === 0) return;
    const detail = 'compare more than 64 MiB of values. Add nameContains, createDateAfter or createDateBefore';
    throw invalidRequest([{ pointer: '/query/criteria', detail }]);
  }

  return {
    async list(scope: Scope, namespace: string, options: PageOptions<string>): Promise<Listed<StoredEntry<string>>> {
      const values: unknown[] = [scope, namespace];
      const ofNamespace = 'c.tenant = $1 AND c.namespace = $2';
      const scan = { from: `${entryTables} WHERE ${ofNamespace}`, name: 'c.name', revision: 'l', order: 'c.name' };
      await requireScannable(options.criteria, values, scan);
      const matches = `${ofNamespace}${criteriaSql(options.criteria, values, 'c.name', 'l')}`;
      // Without criteria, the count needs no revisions: each configuration has one.
      const counted = matches === ofNamespace ? 'configurations c' : entryTables;
      const [count] = await rows<{ total: number }>(
        `SELECT count(*)::integer AS total FROM ${counted} WHERE ${matches}`,
        values,
      );
      const sql = pageSql(options, values, {
        first: `$${values.push(options.after ?? '')}::text`,
        position: 'name',
        sizes: ['configuration', 'active_configuration'],
        rowAfter: (name) =>
          `SELECT ${entryColumns('::text')} FROM ${entryTables} WHERE ${matches} AND c.name > ${name} ORDER BY c.name LIMIT 1`,
      });
      return listed(await rows<EntryRow<string> & PageRow>(sql, values), toEntry, count?.total);
    },

    async revisions(key: ConfigurationKey, options: PageOptions<number>): Promise<Listed<Revision<string>>> {
      const values: unknown[] = keyValues(key);
      const table = 'configuration_revisions';
      const scan = { from: `${table} WHERE ${keyMatch}`, name: 'name', revision: table, order: `${table}.revision` };
      await requireScannable(options.criteria, values, scan);
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
          `SELECT ${revisionTexts} FROM configuration_revisions
           WHERE ${matches} AND configuration_revisions.revision < ${revision} ORDER BY revision DESC LIMIT 1`,
      });
      return listed(await rows<RevisionRow<string> & PageRow>(sql, values), toRevision, count?.total);
    },
  };
}

function listed<Row extends PageRow, T>(rows: Row[], map: (row: Row) => T, total = 0): Listed<T> {
  return { items: rows.map(map), total, hasMore: rows.at(-1)?.more === true };
}
