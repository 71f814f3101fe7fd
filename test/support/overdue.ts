// Creates many drafts that nobody has opened for some days, for applicants without an account. One SQL statement
// creates all of them, for speed. The dispatcher subscribes each applicant, as after a create request.
import type pg from 'pg';
import { permit } from './forms.ts';

export interface OverdueDrafts {
  /** URN of the tenant that owns the drafts. */
  tenantId: string;
  count: number;
  /** Days since the last access of each draft. */
  days: number;
  held?: boolean;
  /** The n-th applicant's address is `<name>-<n>@example.org`. */
  name: string;
}

const sql = `
WITH made AS (
  INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
    one_per_applicant, applicant, last_accessed, held, data)
  SELECT gen_random_uuid(), $1, $2, 'Draft', m.moment, '{"id":"intake","name":"Intake"}', 'demo', true, false,
    json_build_object('addressAs', 'Ana', 'channels', json_build_array(
      json_build_object('channel', 'email', 'address', $6 || '-' || n || '@example.org'))),
    m.moment, $5, '{"name":"Ana"}'
  FROM generate_series(1, $3::int) n,
    LATERAL (SELECT now() - $4::int * interval '1 day' - n * interval '1 second' AS moment) m
  RETURNING id, tenant_id, definition_id, created
)
INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
SELECT id, tenant_id, 'subscribe', json_build_object('definitionId', definition_id), created, created FROM made
RETURNING form_id`;

/** Creates the drafts, and returns their ids. */
export async function addOverdue(pool: pg.Pool, drafts: OverdueDrafts): Promise<string[]> {
  const { tenantId, count, days, held = false, name } = drafts;
  const { rows } = await pool.query<{ form_id: string }>(sql, [tenantId, permit.id, count, days, held, name]);
  return rows.map(({ form_id }) => form_id);
}
