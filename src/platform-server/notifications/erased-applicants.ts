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
 * subscribes an applicant with the form's URN as user id. Returns the deleted subscribers, with the URNs of their
 * tenants.
 */
export async function deleteApplicantsAgain(
  db: Pick<pg.Pool, 'query'>,
  forms: readonly DeletedForm[],
): Promise<{ id: string; tenantId: string }[]> {
  const subscribers = forms.flatMap(({ formId, tenantId }) => {
    const [prefix = '', rest] = tenantId.split(':platform:tenant-service:');
    const tenant = rest?.split('/tenants/')[1];
    return tenant === undefined ? [] : [{ tenantId, tenant, userId: createUrns(prefix).form(formId) }];
  });
  const columns = (['tenantId', 'tenant', 'userId'] as const).map((name) => subscribers.map((item) => item[name]));
  const { rows } = await db.query<{ id: string; tenantId: string }>(
    `DELETE FROM subscribers s USING unnest($1::text[], $2::text[], $3::text[]) AS erased (urn, tenant, user_id)
     WHERE s.tenant = erased.tenant AND s.user_id = erased.user_id RETURNING s.id, erased.urn AS "tenantId"`,
    columns,
  );
  return rows;
}
