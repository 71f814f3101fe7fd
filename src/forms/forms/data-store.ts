// Reads and saves form data, each in one statement that checks its own conditions. A read does not rewrite form data,
// and a save never overwrites a concurrent change unnoticed. The database returns the form data as JSON text, which
// becomes the response.
import type pg from 'pg';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { Account } from '../codes/code.ts';
import type { FormStatus } from './catalogue.ts';
import type { FormKey } from './store.ts';

/** Form data as the text of a response: `{"data":…,"files":…}`. */
export interface FormDataText {
  body: string;
  revision: string;
}

/** The form and the time of the access. */
interface Access extends FormKey {
  now: Date;
}

export interface Save extends Access {
  /** The new values as JSON text. If `data` or `files` is undefined, the stored value is kept. */
  data: string | undefined;
  files: string | undefined;
  /** The revisions that the save may replace; undefined means any revision. */
  revisions: string[] | undefined;
  /** If true, saves only a form of an anonymous applicant. */
  anonymousOnly: boolean;
  /** If present, a save that keeps the stored `data` or `files` requires that this account has an open read session. */
  session: Account | undefined;
}

const formData = `concat('{"data":', f.data, ',"files":', f.files, '}') AS body, f.revision`;
const openSession = `u.form_id = f.id AND u.session_until > $3`;

const readInSessionSql = `
UPDATE forms f SET last_accessed = $3
FROM used_codes u
WHERE f.id = $1 AND f.tenant_id = $2 AND f.anonymous_applicant AND f.status <> 'Locked'
  AND ${openSession} AND u.code_hash = $4 AND u.issuer = $5 AND u.subject = $6
RETURNING ${formData}`;

const readSql = `
UPDATE forms f SET last_accessed = $3
WHERE f.id = $1 AND f.tenant_id = $2 AND f.status = ANY($4)
RETURNING ${formData}`;

/** Replaces both `data` and `files`. The caller sent both, so the statement returns only the new revision. */
const replaceSql = `
UPDATE forms f SET data = $4, files = $5, revision = f.revision + 1, last_accessed = $3
WHERE f.id = $1 AND f.tenant_id = $2 AND f.status = 'Draft'
  AND ($6::bigint[] IS NULL OR f.revision = ANY($6)) AND (f.anonymous_applicant OR NOT $7)
RETURNING f.revision`;

const saveSql = `
UPDATE forms f SET data = coalesce($4, f.data), files = coalesce($5, f.files), revision = f.revision + 1,
  last_accessed = $3
WHERE f.id = $1 AND f.tenant_id = $2 AND f.status = 'Draft'
  AND ($6::bigint[] IS NULL OR f.revision = ANY($6)) AND (f.anonymous_applicant OR NOT $7)
  AND ($8::text IS NULL OR EXISTS (
    SELECT FROM used_codes u WHERE ${openSession} AND u.issuer = $8 AND u.subject = $9))
RETURNING ${formData}`;

export type DataStore = ReturnType<typeof createDataStore>;

export function createDataStore(pool: SharedPool) {
  async function query<R extends pg.QueryResultRow>({ tenantId, formId, now }: Access, sql: string, more: unknown[]) {
    const requester = { tenant: tenantId, member: formId };
    return (await pool.query<R>(requester, sql, [formId, tenantId, now, ...more])).rows[0];
  }

  return {
    /**
     * Reads the data of an unlocked form of an anonymous applicant, in the session that this code opened for this
     * account.
     */
    readInSession: ({ codeHash, issuer, subject, ...access }: Access & Account & { codeHash: Buffer }) =>
      query<FormDataText>(access, readInSessionSql, [codeHash, issuer, subject]),

    /** Reads the data of a form if the form has one of these statuses. */
    read: (access: Access, statuses: readonly FormStatus[]) => query<FormDataText>(access, readSql, [statuses]),

    /** Saves a draft. Returns undefined if a condition is not met; the caller determines which one. */
    async save(save: Save): Promise<FormDataText | undefined> {
      const { data, files, revisions, anonymousOnly, session } = save;
      const values = [data, files, revisions, anonymousOnly];
      if (data === undefined || files === undefined)
        return query<FormDataText>(save, saveSql, [...values, session?.issuer, session?.subject]);
      const row = await query<{ revision: string }>(save, replaceSql, values);
      return row && { body: `{"data":${data},"files":${files}}`, revision: row.revision };
    },
  };
}
