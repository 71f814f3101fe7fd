// The SQL that finds the definitions whose forms may expire.
import { type ExpiringStatus, expiringStatuses } from '../forms/catalogue.ts';

const firstPair = (status: ExpiringStatus, after: string) => `
  SELECT tenant_id, definition_id FROM forms
  WHERE status = '${status}' AND NOT held ${after} ORDER BY tenant_id, definition_id LIMIT 1`;
const afterPair = 'AND (tenant_id, definition_id) > (p.tenant_id, p.definition_id)';
const pairs = (status: ExpiringStatus) => `(
  WITH RECURSIVE pairs AS (
    (${firstPair(status, '')})
    UNION ALL
    SELECT n.* FROM pairs p CROSS JOIN LATERAL (${firstPair(status, afterPair)}) n
  ) SELECT tenant_id, definition_id FROM pairs)`;

/** Finds the definitions of forms that may expire, with one index lookup per definition instead of one per form. */
export const definitionsSql = `
SELECT tenant_id AS "tenantId", definition_id AS "definitionId"
FROM (${expiringStatuses.map(pairs).join(' UNION ')}) AS found
ORDER BY tenant_id, definition_id`;
