// Records, in a form's row, the files that the intake application uploads for the form. An upload is counted before it
// is sent to the file service. Its URN is recorded before the browser gets the response. The deletion of the form
// therefore finds every uploaded file, even if the form data does not name it.
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import { storedOrigin } from '../../service/tracing/tracing.ts';
import { type FormKey, requesterOf } from './store.ts';

export interface UploadKey extends FormKey {
  /** A UUID for this upload. */
  uploadId: string;
}

export interface FormFileLimits {
  /** Maximum number of files that are uploaded for one form, including those that its form data no longer names. */
  files: number;
  /** Maximum size in bytes of these files together. */
  bytes: number;
}

export interface UploadStoreOptions {
  pool: SharedPool;
  limits: FormFileLimits;
  /** True if the deletion of a form deletes its files. */
  deleteFiles: boolean;
}

export type UploadStore = ReturnType<typeof createUploadStore>;

// Postgres evaluates the condition again if a concurrent upload has just changed the row.
const countSql = `
UPDATE forms SET uploads = uploads || jsonb_build_object($3::text, jsonb_build_object('size', $4::bigint, 'time', $5::timestamptz))
WHERE id = $1 AND tenant_id = $2 AND status = 'Draft' AND (
  SELECT count(*) < $6 AND coalesce(sum((u.value ->> 'size')::bigint), 0) + $4 <= $7 FROM jsonb_each(uploads) AS u)`;

const uncountSql = 'UPDATE forms SET uploads = uploads - $3::text WHERE id = $1 AND tenant_id = $2';

const keepSql = `
UPDATE forms SET uploads = jsonb_set(uploads, ARRAY[$3, 'urn'], to_jsonb($4::text))
WHERE id = $1 AND tenant_id = $2 AND uploads ? $3`;

const removeFileSql = `
INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, traceparent, request_id)
SELECT form_id, tenant_id, 'remove-files',
  jsonb_build_object('definitionId', definition_id, 'files', jsonb_build_array($3::text)), $4, $4, $5, $6
FROM tombstones WHERE form_id = $1 AND tenant_id = $2`;

export function createUploadStore({ pool, limits, deleteFiles }: UploadStoreOptions) {
  return {
    /** Counts an upload. Returns false if the form is not a draft, or if the upload would exceed a limit. */
    async count(upload: UploadKey & { size: number; now: Date }): Promise<boolean> {
      const { formId, tenantId, uploadId, size, now } = upload;
      const values = [formId, tenantId, uploadId, size, now, limits.files, limits.bytes];
      return (await pool.query(requesterOf(upload), countSql, values)).rowCount === 1;
    },

    /** Takes back the count of an upload that the file service certainly has not stored. */
    async uncount(upload: UploadKey): Promise<void> {
      await pool.query(requesterOf(upload), uncountSql, [upload.formId, upload.tenantId, upload.uploadId]);
    },

    /**
     * Records the URN of an uploaded file. Returns false if the form was deleted during the upload. If deletions
     * include files, the file is then deleted too.
     */
    async keep(upload: UploadKey & { urn: string; now: Date }): Promise<boolean> {
      const { formId, tenantId, uploadId, urn, now } = upload;
      const kept = await pool.query(requesterOf(upload), keepSql, [formId, tenantId, uploadId, urn]);
      if (kept.rowCount === 1) return true;
      // A separate statement sees the tombstone. The first one does not if it began before the deletion committed.
      if (deleteFiles)
        await pool.query(requesterOf(upload), removeFileSql, [formId, tenantId, urn, now, ...storedOrigin()]);
      return false;
    },
  };
}
