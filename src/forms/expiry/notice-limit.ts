// Limits the notices that the expiry sends to one address. Somebody may have created thousands of drafts for the
// address of a stranger. The events of the forms are written in any case, so the forms are locked and deleted as usual.
import { suppressedFacts } from '../forms/notice-budget.ts';

/** Maximum number of notices of one kind for an address within an hour. */
const mostNotices = 20;
/**
 * Number of forms of an address, before and after those of the batch, that are searched for recent notices. Forms
 * expire roughly in the order of their creation, which is that of their ids. If an address has thousands of forms that
 * were opened in another order, it can therefore get {@link mostNotices} in each batch.
 */
const searchedForms = 100;

/**
 * Maximum number of addresses of a form that count. The range with an order and a limit makes Postgres use the primary
 * key. With outdated statistics, Postgres would otherwise read the whole index by address for each form.
 */
const mostAddresses = 20;

/**
 * CTEs that find the forms of the CTE `changed` whose notices exceed the limit of an address. The CTE `over` returns
 * their ids. Suppressed notices count too, so that a batch does not have to search further than the one before.
 */
export const noticeLimitSql = (changed: string, kind: string) => `
addressed AS MATERIALIZED (
  SELECT c.id, a.address_hash, row_number() OVER (PARTITION BY a.address_hash ORDER BY c.id) AS rank,
    first_value(c.id) OVER (PARTITION BY a.address_hash ORDER BY c.id DESC) AS newest
  FROM ${changed} c CROSS JOIN LATERAL (
    SELECT form_id, address_hash FROM applicant_addresses
    WHERE form_id >= c.id ORDER BY form_id LIMIT ${mostAddresses}) a
  WHERE a.form_id = c.id
), recent AS MATERIALIZED (
  SELECT d.address_hash, (
    SELECT count(*) FROM (
      (SELECT form_id FROM applicant_addresses a WHERE a.address_hash = d.address_hash AND a.form_id < d.id
        ORDER BY a.form_id DESC LIMIT ${searchedForms})
      UNION ALL
      (SELECT form_id FROM applicant_addresses a WHERE a.address_hash = d.address_hash AND a.form_id > d.newest
        ORDER BY a.form_id LIMIT ${searchedForms})) near
    WHERE EXISTS (
      SELECT FROM outbox o
      WHERE o.form_id = near.form_id AND o.kind = '${kind}' AND o.created > $7::timestamptz - interval '1 hour')) AS count
  FROM addressed d WHERE d.rank = 1
), over AS MATERIALIZED (
  SELECT DISTINCT id FROM addressed JOIN recent USING (address_hash) WHERE rank + count > ${mostNotices}
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
