// Deletes the subscribers of deleted forms again after this server's database was restored from a backup. The form
// service had removed these subscribers together with the forms, but the backup still contains them.
import type pg from 'pg';
import { createUrns } from '../../service/urn.ts';

/** A deleted form: its id, and the URN of its tenant. */
interface DeletedForm {
  formId: string;
  tenantId: string;
}

/**
 * Deletes the subscribers of the forms, with their addresses, codes and undelivered notices. The form service
 * subscribes an applicant with the form's URN as user id. Returns the number of deleted subscribers.
 */
export async function deleteApplicantsAgain(
  db: Pick<pg.Pool, 'query'>,
  forms: readonly DeletedForm[],
): Promise<number> {
  const subscribers = forms.flatMap(({ formId, tenantId }) => {
    const [prefix = '', rest] = tenantId.split(':platform:tenant-service:');
    const tenant = rest?.split('/tenants/')[1];
    return tenant === undefined ? [] : [{ tenant, userId: createUrns(prefix).form(formId) }];
  });
  const { rowCount } = await db.query(
    `DELETE FROM subscribers WHERE (tenant, user_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
    [subscribers.map(({ tenant }) => tenant), subscribers.map(({ userId }) => userId)],
  );
  return rowCount ?? 0;
}
