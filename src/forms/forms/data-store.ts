// Reads and saves form data, each in one statement with its own conditions: a read never rewrites form data, and a save
// never overwrites a concurrent change unnoticed. The database returns form data as the text of the response.
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { FormStatus } from './catalogue.ts';

/** Form data as the text of a response: `{"data":…,"files":…}`. */
export interface FormDataText {
  body: string;
  revision: string;
}

/** The form and the time of the access. */
export interface FormKey {
  tenantId: string;
  formId: string;
  now: Date;
}

export interface SessionKey {
  issuer: string;
  subject: string;
}

export interface Save extends FormKey {
  /** JSON text; undefined keeps the stored member. */
  data: string | undefined;
  files: string | undefined;
  /** Replace only these revisions; undefined for any. */
  revisions: string[] | undefined;
  /** Save only to a form of an anonymous applicant. */
  anonymousOnly: boolean;
  /** Save only while this account has a read session. */
  session: SessionKey | undefined;
}

export interface DataStore {
  /** Reads a form of an anonymous applicant that is not locked, in the session that this code opened for this account. */
  readInSession(key: FormKey & SessionKey & { codeHash: Buffer }): Promise<FormDataText | undefined>;
  /** Reads a form that has one of these statuses. */
  read(key: FormKey, statuses: readonly FormStatus[]): Promise<FormDataText | undefined>;
  /** Saves a draft. Undefined if a condition is not met; the caller finds out which one. */
  save(save: Save): Promise<FormDataText | undefined>;
  /** The form data that a submit validates, and its revision. Sets no lastAccessed. */
  peek(key: Omit<FormKey, 'now'>): Promise<{ data: string; revision: string } | undefined>;
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

/** Both members are given, so only the revision is returned. */
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

export function createDataStore(pool: SharedPool): DataStore {
  return {
    async readInSession({ formId, tenantId, now, codeHash, issuer, subject }) {
      const values = [formId, tenantId, now, codeHash, issuer, subject];
      return (await pool.query<FormDataText>({ tenant: tenantId, member: formId }, readInSessionSql, values)).rows[0];
    },
    async read({ formId, tenantId, now }, statuses) {
      return (
        await pool.query<FormDataText>({ tenant: tenantId, member: formId }, readSql, [formId, tenantId, now, statuses])
      ).rows[0];
    },
    async save({ formId, tenantId, now, data, files, revisions, anonymousOnly, session }) {
      const claim = { tenant: tenantId, member: formId };
      const values = [formId, tenantId, now, data, files, revisions, anonymousOnly];
      if (data === undefined || files === undefined) {
        const more = [session?.issuer, session?.subject];
        return (await pool.query<FormDataText>(claim, saveSql, [...values, ...more])).rows[0];
      }
      const [row] = (await pool.query<{ revision: string }>(claim, replaceSql, values)).rows;
      return row && { body: `{"data":${data},"files":${files}}`, revision: row.revision };
    },
    async peek({ formId, tenantId }) {
      const sql = 'SELECT data::text, revision FROM forms WHERE id = $1 AND tenant_id = $2';
      return (
        await pool.query<{ data: string; revision: string }>({ tenant: tenantId, member: formId }, sql, [
          formId,
          tenantId,
        ])
      ).rows[0];
    },
  };
}
