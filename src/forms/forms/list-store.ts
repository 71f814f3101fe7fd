// Lists the forms of a tenant in pages.
import type pg from 'pg';
import { Problem } from '../../service/http/problem.ts';
import { isStatementTimeout } from '../../service/postgres/postgres.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { FormStatus } from './catalogue.ts';
import type { Form } from './form.ts';
import { formColumns } from './store.ts';

/**
 * The columns that can be filtered by a range of times. The names of the criteria begin with the keys: `locked` has the
 * criteria `lockedAfter` and `lockedBefore`.
 */
const ranges = {
  createDate: 'created',
  lastAccessed: 'last_accessed',
  locked: 'locked',
  submitted: 'submitted',
} as const;

type Range = keyof typeof ranges;

/** The criteria of a list. All bounds of times are exclusive. */
type FormCriteria = { [bound in `${Range}After` | `${Range}Before`]?: Date | undefined } & {
  definitionIdEquals?: string | undefined;
  statusEquals?: FormStatus | undefined;
  anonymousApplicantEquals?: boolean | undefined;
};

export interface FormListQuery {
  tenantId: string;
  criteria: FormCriteria;
  /** Lists only forms that this person created, except those for anonymous applicants. */
  creator?: { issuer: string; subject: string } | undefined;
  /** Lists only forms whose applicant has the address with this HMAC. */
  addressHash?: Buffer | undefined;
  sortBy: 'created' | 'status';
  sortDirection: 'asc' | 'desc';
  /** The last form of the previous page. */
  after?: (Pick<Form, 'created' | 'id'> & { status?: FormStatus | undefined }) | undefined;
  top: number;
  includeData: boolean;
  includeTotal: boolean;
}

export interface FormPage {
  /** `data` and `files` are JSON text; null unless the query has `includeData`. */
  forms: (Form & { data: string | null; files: string | null })[];
  /** The last form of this page if more forms follow; undefined on the last page. */
  last: Form | undefined;
  /** The number of forms on all pages, at most `mostCounted` + 1; undefined unless the query has `includeTotal`. */
  total: number | undefined;
}

const formDataLimit = 8 * 1_048_576;
/** Maximum number of forms that a total counts, because counting more takes too long. */
export const mostCounted = 10_000;

interface PageSql {
  conditions: string[];
  order: string;
  /** SQL placeholder for the maximum number of rows. */
  top: string;
  /** SQL placeholder for the limit of form data on a page, in bytes. */
  mostBytes: string;
  /** SQL placeholder for a boolean that says whether to include form data. */
  includeData: string;
}

function listSql({ conditions, order, top, mostBytes, includeData }: PageSql): string {
  return `
WITH page AS MATERIALIZED (
  SELECT ${formColumns}, CASE WHEN ${includeData} THEN data::text END AS data,
    CASE WHEN ${includeData} THEN files::text END AS files
  FROM forms WHERE ${conditions.join(' AND ')}
  ORDER BY ${order} LIMIT ${top}
), sized AS (
  SELECT page.*, (count(*) OVER ())::int AS found, row_number() OVER listed AS rank,
    sum(coalesce(octet_length(data) + octet_length(files), 0)) OVER listed AS bytes
  FROM page WINDOW listed AS (ORDER BY ${order})
)
SELECT * FROM sized WHERE rank = 1 OR bytes <= ${mostBytes}
ORDER BY rank`;
}

function criteriaSql(criteria: FormCriteria, bind: (value: unknown) => string): string[] {
  const conditions: string[] = [];
  const add = (column: string, operator: '=' | '<' | '>', value: unknown) => {
    if (value !== undefined) conditions.push(`${column} ${operator} ${bind(value)}`);
  };
  add('definition_id', '=', criteria.definitionIdEquals);
  add('status', '=', criteria.statusEquals);
  add('anonymous_applicant', '=', criteria.anonymousApplicantEquals);
  for (const [name, column] of Object.entries(ranges) as [Range, string][]) {
    add(column, '>', criteria[`${name}After`]);
    add(column, '<', criteria[`${name}Before`]);
  }
  return conditions;
}

export type FormList = ReturnType<typeof createFormList>;

/**
 * Explains a statement that Postgres ended after 15 s: few of the many forms that it read matched the criteria. A retry
 * would fail again, so the client is told to wait, and what to change.
 */
function explain(error: unknown): never {
  if (!isStatementTimeout(error)) throw error;
  const detail =
    'The list took too long. Narrow it by criteria for which fewer forms are read: definitionIdEquals, statusEquals, or createDateAfter and createDateBefore.';
  throw new Problem('busy', detail, { cause: error, headers: { 'Retry-After': '30' } });
}

/** Lists forms. If a page includes form data, the page ends early when its form data reaches 8 MiB. */
export function createFormList(pool: SharedPool) {
  const read = <R extends pg.QueryResultRow>(tenantId: string, sql: string, values: unknown[]) =>
    pool.query<R>(requesterOfLists(tenantId), sql, values).catch(explain);

  return async (query: FormListQuery): Promise<FormPage> => {
    const { tenantId, criteria, creator, addressHash, sortBy, sortDirection, after, top, includeData } = query;
    const values: unknown[] = [];
    const bind = (value: unknown) => `$${values.push(value)}`;
    const filter = [
      `tenant_id = ${bind(tenantId)}`,
      ...creatorSql(creator, bind),
      ...(addressHash ? [addressSql(bind(addressHash))] : []),
      ...criteriaSql(criteria, bind),
    ];
    const total = query.includeTotal ? await count(tenantId, filter, [...values]) : undefined;
    const keys = sortBy === 'status' ? (['status', 'created', 'id'] as const) : (['created', 'id'] as const);
    const next = `(${keys.join(', ')}) ${sortDirection === 'asc' ? '>' : '<'}`;
    const sql = listSql({
      conditions: after ? [...filter, `${next} (${keys.map((key) => bind(after[key])).join(', ')})`] : filter,
      order: keys.map((key) => `${key} ${sortDirection}`).join(', '),
      ...{ top: bind(top + 1), mostBytes: bind(formDataLimit), includeData: bind(includeData) },
    });
    const { rows } = await read<FormPage['forms'][number] & { found: number }>(tenantId, sql, values);
    const forms = rows.slice(0, top);
    return { forms, last: (rows[0]?.found ?? 0) > forms.length ? forms.at(-1) : undefined, total };
  };

  async function count(tenantId: string, filter: string[], values: unknown[]): Promise<number> {
    const some = `SELECT FROM forms WHERE ${filter.join(' AND ')} LIMIT ${mostCounted + 1}`;
    const sql = `SELECT count(*)::int AS total FROM (${some}) AS listed`;
    return (await read<{ total: number }>(tenantId, sql, values)).rows[0]?.total ?? 0;
  }
}

const requesterOfLists = (tenantId: string) => ({ tenant: tenantId, member: 'lists' });

/** The array makes Postgres look up the few forms of the address first, regardless of its statistics. */
const addressSql = (hash: string) =>
  `id = ANY (ARRAY(SELECT form_id FROM applicant_addresses WHERE address_hash = ${hash}))`;

/** Returns conditions on the columns of the index `forms_of_creator`. */
function creatorSql(creator: FormListQuery['creator'], bind: (value: unknown) => string): string[] {
  if (!creator) return [];
  const { issuer, subject } = creator;
  return [`created_by_issuer = ${bind(issuer)}`, `created_by ->> 'id' = ${bind(subject)}`, 'NOT anonymous_applicant'];
}
