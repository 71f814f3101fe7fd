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
  for (const [field, value] of Object.entries(criteria.fields))
    terms.push(
      `${revision}.configuration::jsonb #> ${bind(field.split('.'))}::text[] = ${bind(JSON.stringify(value))}::jsonb`,
    );
  return terms.length > 0 ? ` AND (${terms.join(criteria.useOr ? ' OR ' : ' AND ')})` : '';
}
