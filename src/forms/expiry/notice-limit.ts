// Limits the notices that the expiry sends to one address. Somebody may have created thousands of drafts for the
// address of a stranger. The events of the forms are written in any case, so the forms are locked and deleted as usual.
import { suppressedFacts } from '../forms/notice-budget.ts';

/** Maximum number of notices of one kind for an address within an hour. */
const mostNotices = 20;

/**
 * Maximum number of addresses of a form that count. The range with an order and a limit makes Postgres use the primary
 * key. With outdated statistics, Postgres would otherwise read the whole index by address for each form.
 */
const mostAddresses = 20;

/**
 * The key of an address in `created_notices`. The kind after the hash keeps the notices of the expiry out of the budget
 * of the address, which they must not use up.
 */
const keyOf = (hash: string, kind: string) => `${hash} || '${kind}'::bytea`;
const isRecent = "moment > $7::timestamptz - interval '1 hour'";

/**
 * CTEs that find the forms of the CTE `changed` whose notices exceed the limit of an address. The CTE `over` returns
 * their ids. The CTE `noted` records the notices of the other forms. Addresses with a single form are not recorded,
 * which spares most forms a write.
 */
export const noticeLimitSql = (changed: string, kind: string) => `
addressed AS MATERIALIZED (
  SELECT c.id, a.address_hash, row_number() OVER (PARTITION BY a.address_hash ORDER BY c.id) AS rank
  FROM ${changed} c CROSS JOIN LATERAL (
    SELECT form_id, address_hash FROM applicant_addresses
    WHERE form_id >= c.id ORDER BY form_id LIMIT ${mostAddresses}) a
  WHERE a.form_id = c.id
), recent AS MATERIALIZED (
  SELECT d.address_hash, (
    SELECT count(*) FROM created_notices k, unnest(k.sent) AS moment
    WHERE k.address_hash = ${keyOf('d.address_hash', kind)} AND ${isRecent}) AS count
  FROM addressed d
  WHERE d.rank = 1 AND EXISTS (
    SELECT FROM applicant_addresses a WHERE a.address_hash = d.address_hash AND a.form_id <> d.id)
), over AS MATERIALIZED (
  SELECT DISTINCT id FROM addressed JOIN recent USING (address_hash) WHERE rank + count > ${mostNotices}
), noted AS (
  INSERT INTO created_notices AS known (address_hash, latest, sent)
  SELECT ${keyOf('address_hash', kind)}, $7::timestamptz, array_agg($7::timestamptz)
  FROM addressed JOIN recent USING (address_hash) WHERE id NOT IN (SELECT id FROM over) GROUP BY address_hash
  ON CONFLICT (address_hash) DO UPDATE SET latest = excluded.latest,
    sent = excluded.sent || ARRAY(SELECT moment FROM unnest(known.sent) AS moment WHERE ${isRecent})
)`;

/** SQL for the facts that the event of a form gets if its id is in the CTE `over`. */
export const limitedFacts = suppressedFacts('id IN (SELECT id FROM over)');

/**
 * SQL for the facts of the event `form-deleted`. The address is deleted with the form, and its applicant has not heard
 * of the lock if the notice of the lock was suppressed.
 */
export const unheardFacts = suppressedFacts(`coalesce((
  SELECT o.facts ? 'noticeSuppressed' FROM outbox o
  WHERE o.form_id = gone.id AND o.kind = 'form-locked' ORDER BY o.sequence DESC LIMIT 1), false)`);
