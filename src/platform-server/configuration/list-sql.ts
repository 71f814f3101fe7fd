// SQL for the lists of configurations and revisions: the filter criteria, and the limits of a page.
import type { Criteria } from './configuration.ts';

/** Maximum size of the values on a page, in bytes of JSON. It limits the memory that a response needs. */
const maxPageBytes = 8 * 1_048_576;

export interface PageOptions<After> {
  /** Maximum number of rows. */
  top: number;
  /** The position of the last row of the previous page. Undefined for the first page. */
  after: After | undefined;
  criteria: Criteria | undefined;
  /** Maximum size of the values. A page has at least one row, even if its value is larger. */
  maxBytes?: number;
}

/** A column that `pageSql` adds to the rows of a page. */
export interface PageRow {
  /** True if another row follows. */
  more: boolean | null;
}

/**
 * Returns SQL for the rows of a page, and appends its values to `values`. `rowAfter` returns SQL for the first row
 * after a position, `position` is the column that orders the rows, and the lengths of the columns in `sizes` count
 * towards `maxBytes`. Postgres knows the length of a value only after it has read the value. A recursive query
 * therefore reads one row at a time, and stops at the first row that no longer fits.
 */
export function pageSql(
  { top, maxBytes = maxPageBytes }: Pick<PageOptions<unknown>, 'top' | 'maxBytes'>,
  values: unknown[],
  row: { first: string; rowAfter(position: string): string; position: string; sizes: readonly string[] },
): string {
  const bind = (value: number) => `$${values.push(value)}::bigint`;
  const [rows, bytes] = [bind(top), bind(maxBytes)];
  const size = row.sizes.map((column) => `coalesce(octet_length(found.${column}::text), 0)::bigint`).join(' + ');
  return `WITH RECURSIVE page AS (
    SELECT 1 AS nth, ${size} AS total_size, found.* FROM (${row.rowAfter(row.first)}) found
    UNION ALL
    SELECT page.nth + 1, page.total_size + ${size}, found.*
    FROM page CROSS JOIN LATERAL (${row.rowAfter(`page.${row.position}`)}) found
    WHERE page.nth <= ${rows} AND (page.nth = 1 OR page.total_size <= ${bytes})
  )
  SELECT * FROM (SELECT *, lead(true) OVER (ORDER BY nth) AS more FROM page) listed
  WHERE nth = 1 OR (nth <= ${rows} AND total_size <= ${bytes}) ORDER BY nth`;
}

/**
 * Returns SQL ` AND (…)` for the criteria, and appends their values to `values`. Returns an empty string if there are
 * no criteria.
 */
export function criteriaSql(criteria: Criteria | undefined, values: unknown[], name: string, revision: string): string {
  if (!criteria) return '';
  const bind = (value: unknown) => `$${values.push(value)}`;
  const terms: string[] = [];
  if (criteria.nameContains) terms.push(`position(lower(${bind(criteria.nameContains)}) IN lower(${name})) > 0`);
  if (criteria.createDateAfter) terms.push(`${revision}.created > ${bind(criteria.createDateAfter)}`);
  if (criteria.createDateBefore) terms.push(`${revision}.created < ${bind(criteria.createDateBefore)}`);
  for (const [field, value] of Object.entries(criteria.fields))
    terms.push(
      `${revision}.configuration::jsonb #> ${bind(field.split('.'))}::text[] = ${bind(JSON.stringify(value))}::jsonb`,
    );
  return terms.length > 0 ? ` AND (${terms.join(criteria.useOr ? ' OR ' : ' AND ')})` : '';
}
