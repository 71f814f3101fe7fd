// SQL for the filter criteria of lists of configurations and revisions.
import type { Criteria } from './configuration.ts';

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
  if (comparesFields(criteria)) terms.push(fieldsSql(criteria, bind, revision));
  return terms.length > 0 ? ` AND (${terms.join(joiner(criteria))})` : '';
}

const joiner = ({ useOr }: Criteria) => (useOr ? ' OR ' : ' AND ');

/** The subquery converts each value only once. OFFSET 0 keeps Postgres from merging it into the comparisons. */
function fieldsSql(criteria: Criteria, bind: (value: unknown) => string, revision: string): string {
  const terms = Object.entries(criteria.fields).map(
    ([field, value]) => `document #> ${bind(field.split('.'))}::text[] = ${bind(JSON.stringify(value))}::jsonb`,
  );
  return `(SELECT ${terms.join(joiner(criteria))}
    FROM (SELECT ${revision}.configuration::jsonb AS document OFFSET 0) parsed)`;
}

/** True if the criteria compare fields of the values. */
export function comparesFields(criteria: Criteria | undefined): criteria is Criteria {
  return criteria !== undefined && Object.keys(criteria.fields).length > 0;
}

/** Maximum size of all values whose fields a list compares, in bytes of JSON. */
const mostScanned = 64 * 1_048_576;

/**
 * Returns SQL that finds a row if the total size of the values whose fields the criteria compare exceeds `mostScanned`.
 * Appends the parameters of this SQL to `values`. `from` is the FROM clause with the conditions of the list; this SQL
 * adds the other criteria. The window function reads one value at a time, so Postgres stops once the limit is exceeded.
 */
export function oversizeSql(
  criteria: Criteria,
  values: unknown[],
  { from, name, revision, order }: { from: string; name: string; revision: string; order: string },
): string {
  const others = criteria.useOr ? '' : criteriaSql({ ...criteria, fields: {} }, values, name, revision);
  return `SELECT FROM (
      SELECT sum(octet_length(${revision}.configuration::text)) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS size
      FROM ${from}${others}) read
    WHERE size > ${mostScanned} LIMIT 1`;
}
