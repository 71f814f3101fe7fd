// Lists the forms of a tenant in pages.
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { FormStatus } from './catalogue.ts';
import type { Form } from './form.ts';
import { formColumns } from './store.ts';

/** The columns that can be filtered by a range of times. The keys begin the names of the criteria. */
const ranges = {
  createDate: 'created',
  lastAccessed: 'last_accessed',
  locked: 'locked',
  submitted: 'submitted',
} as const;

type Range = keyof typeof ranges;

/** All time bounds are exclusive. */
type FormCriteria = { [bound in `${Range}After` | `${Range}Before`]?: Date | undefined } & {
  definitionIdEquals?: string | undefined;
  statusEquals?: FormStatus | undefined;
  anonymousApplicantEquals?: boolean | undefined;
};

export interface FormListQuery {
  tenantId: string;
  criteria: FormCriteria;
  /** The last form of the previous page. */
  after?: Pick<Form, 'created' | 'id'> | undefined;
  top: number;
  includeData: boolean;
}

export interface FormPage {
  /** `data` and `files` are null unless the query has `includeData`. */
  forms: (Form & { data: unknown; files: unknown })[];
  /** The last form of the page, if there are more forms. */
  last: Form | undefined;
}

const formDataLimit = 8 * 1_048_576;

/** $1 tenant, $2 number of rows, $3 bytes of form data on a page, $4 whether to include form data. */
function listSql(conditions: string[]): string {
  return `
WITH page AS MATERIALIZED (
  SELECT ${formColumns}, CASE WHEN $4 THEN data END AS data, CASE WHEN $4 THEN files END AS files
  FROM forms WHERE ${['tenant_id = $1', ...conditions].join(' AND ')}
  ORDER BY created DESC, id DESC LIMIT $2
), sized AS (
  SELECT page.*, (count(*) OVER ())::int AS found, row_number() OVER newest AS rank,
    sum(coalesce(octet_length(data::text) + octet_length(files::text), 0)) OVER newest AS bytes
  FROM page WINDOW newest AS (ORDER BY created DESC, id DESC)
)
SELECT * FROM sized WHERE rank = 1 OR bytes <= $3
ORDER BY created DESC, id DESC`;
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

/** Lists forms, newest first. A page with form data ends early when it reaches 8 MiB. */
export function createFormList(pool: SharedPool) {
  return async ({ tenantId, criteria, after, top, includeData }: FormListQuery): Promise<FormPage> => {
    const values: unknown[] = [tenantId, top + 1, formDataLimit, includeData];
    const bind = (value: unknown) => `$${values.push(value)}`;
    const conditions = criteriaSql(criteria, bind);
    if (after) conditions.push(`(created, id) < (${bind(after.created)}, ${bind(after.id)})`);
    const { rows } = await pool.query<FormPage['forms'][number] & { found: number }>(
      { tenant: tenantId, member: 'lists' },
      listSql(conditions),
      values,
    );
    const forms = rows.slice(0, top);
    return { forms, last: (rows[0]?.found ?? 0) > forms.length ? forms.at(-1) : undefined };
  };
}
