// Finds and lists forms and the tombstones of deleted forms, always of one tenant. It changes nothing.
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { FormStatus } from './catalogue.ts';
import type { Applicant, Form, Person } from './form.ts';

/** The record of a deleted form. It contains nothing about the applicant. */
export interface Tombstone {
  definitionId: string;
  anonymousApplicant: boolean;
}

/** Bounds are exclusive. */
export interface FormCriteria {
  definitionIdEquals?: string | undefined;
  statusEquals?: FormStatus | undefined;
  anonymousApplicantEquals?: boolean | undefined;
  createDateAfter?: Date | undefined;
  createDateBefore?: Date | undefined;
  lastAccessedAfter?: Date | undefined;
  lastAccessedBefore?: Date | undefined;
  lockedAfter?: Date | undefined;
  lockedBefore?: Date | undefined;
  submittedAfter?: Date | undefined;
  submittedBefore?: Date | undefined;
}

/** The position after which a page begins. */
export interface FormPosition {
  created: Date;
  id: string;
}

export interface ListedForm {
  form: Form;
  /** Present if the query asked for form data. */
  formData?: { data: unknown; files: unknown };
}

export interface FormList {
  forms: ListedForm[];
  /** Present if there are more forms. */
  next?: FormPosition;
}

export interface FormStore {
  find(tenantId: string, formId: string): Promise<Form | undefined>;
  /** Of a form deleted after `since`. */
  findTombstone(tenantId: string, formId: string, since: Date): Promise<Tombstone | undefined>;
  /** The oldest form of a definition that a signed-in creator has. */
  findOfCreator(creator: {
    tenantId: string;
    definitionId: string;
    issuer: string;
    id: string;
  }): Promise<string | undefined>;
  /** Newest first. A page with form data ends early at 8 MiB. */
  list(query: {
    tenantId: string;
    criteria: FormCriteria;
    after?: FormPosition | undefined;
    top: number;
    includeData: boolean;
  }): Promise<FormList>;
}

/** A row of `forms`. Form data is not among the columns: it is passed on as text that is never parsed. */
export interface FormRow {
  id: string;
  tenant_id: string;
  definition_id: string;
  status: FormStatus;
  created: Date;
  created_by: Person;
  created_by_issuer: string;
  anonymous_applicant: boolean;
  applicant: Applicant;
  subscriber_id: string | null;
  last_accessed: Date;
  locked: Date | null;
  submitted: Date | null;
  held: boolean;
  revision: string;
}

export const formColumns = `id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
  anonymous_applicant, applicant, subscriber_id, last_accessed, locked, submitted, held, revision`;

export function toForm(row: FormRow): Form {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    definitionId: row.definition_id,
    status: row.status,
    created: row.created,
    createdBy: row.created_by,
    issuer: row.created_by_issuer,
    anonymousApplicant: row.anonymous_applicant,
    applicant: row.applicant,
    subscriberId: row.subscriber_id,
    lastAccessed: row.last_accessed,
    locked: row.locked,
    submitted: row.submitted,
    held: row.held,
    revision: row.revision,
  };
}

const formDataLimit = 8 * 1_048_576;

export function createFormStore(pool: SharedPool): FormStore {
  return {
    async find(tenantId, formId) {
      const sql = `SELECT ${formColumns} FROM forms WHERE id = $1 AND tenant_id = $2`;
      const [row] = (await pool.query<FormRow>({ tenant: tenantId, member: formId }, sql, [formId, tenantId])).rows;
      return row && toForm(row);
    },
    async findTombstone(tenantId, formId, since) {
      const { rows } = await pool.query<Tombstone>(
        { tenant: tenantId, member: formId },
        `SELECT definition_id AS "definitionId", anonymous_applicant AS "anonymousApplicant" FROM tombstones
        WHERE form_id = $1 AND tenant_id = $2 AND deleted > $3`,
        [formId, tenantId, since],
      );
      return rows[0];
    },
    async findOfCreator({ tenantId, definitionId, issuer, id }) {
      const { rows } = await pool.query<{ id: string }>(
        { tenant: tenantId, member: id },
        `SELECT id FROM forms WHERE tenant_id = $1 AND definition_id = $2 AND created_by_issuer = $3
          AND created_by ->> 'id' = $4 AND NOT anonymous_applicant
        ORDER BY created, id LIMIT 1`,
        [tenantId, definitionId, issuer, id],
      );
      return rows[0]?.id;
    },
    async list({ tenantId, criteria, after, top, includeData }) {
      const values: unknown[] = [tenantId, top + 1, formDataLimit, includeData];
      const bind = (value: unknown) => `$${values.push(value)}`;
      const conditions = [
        ...criteriaSql(criteria, bind),
        ...(after ? [`(created, id) < (${bind(after.created)}, ${bind(after.id)})`] : []),
      ];
      const { rows } = await pool.query<ListRow>({ tenant: tenantId, member: 'lists' }, listSql(conditions), values);
      return toList(rows, top, includeData);
    },
  };
}

interface ListRow extends FormRow {
  data: unknown;
  files: unknown;
  found: number;
}

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
SELECT ${formColumns}, data, files, found FROM sized WHERE rank = 1 OR bytes <= $3
ORDER BY created DESC, id DESC`;
}

const ranges = {
  createDate: 'created',
  lastAccessed: 'last_accessed',
  locked: 'locked',
  submitted: 'submitted',
} as const;

function criteriaSql(criteria: FormCriteria, bind: (value: unknown) => string): string[] {
  const conditions: string[] = [];
  const add = (column: string, operator: '=' | '<' | '>', value: unknown) => {
    if (value !== undefined) conditions.push(`${column} ${operator} ${bind(value)}`);
  };
  add('definition_id', '=', criteria.definitionIdEquals);
  add('status', '=', criteria.statusEquals);
  add('anonymous_applicant', '=', criteria.anonymousApplicantEquals);
  for (const [name, column] of Object.entries(ranges) as [keyof typeof ranges, string][]) {
    add(column, '>', criteria[`${name}After`]);
    add(column, '<', criteria[`${name}Before`]);
  }
  return conditions;
}

function toList(rows: ListRow[], top: number, includeData: boolean): FormList {
  const found = rows[0]?.found ?? 0;
  const shown = rows.slice(0, top);
  const last = shown.at(-1);
  return {
    forms: shown.map((row) => ({
      form: toForm(row),
      ...(includeData && { formData: { data: row.data, files: row.files } }),
    })),
    ...(last && found > shown.length && { next: { created: last.created, id: last.id } }),
  };
}
