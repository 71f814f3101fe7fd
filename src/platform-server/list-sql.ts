// SQL for the pages of lists, and the limits of a page.

/** Maximum size of the values on a page, in bytes of JSON. It limits the memory that a response needs. */
export const maxPageBytes = 8 * 1_048_576;

export interface PageLimits {
  /** Maximum number of rows. */
  top: number;
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
  { top, maxBytes = maxPageBytes }: PageLimits,
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
