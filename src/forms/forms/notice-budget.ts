// Limits the notices that callers can send to the addresses of strangers. Each address of a tenant has a budget. Mails
// about created drafts, notices that signed-in applicants cause, and codes count towards it. If the budget is used up,
// only the notice is suppressed: the event is still sent. A notice never delays or refuses a code.
import type { Caller } from '../../service/auth/identity.ts';
import type { CodeHashes } from '../codes/code.ts';
import type { FormRole } from './catalogue.ts';
import { type Form, noticeChannels } from './form.ts';
import { type CreatingRole, isPerson } from './policy.ts';

/** The SQL expressions of a statement that counts a notice. */
export interface NoticeSql {
  /** A FROM item with one row for each notice to count. It may have no rows. */
  source: string;
  /** HMACs of the addresses, a `bytea[]`. */
  hashes: string;
  now: string;
  /** True if the notice must not follow another mail within a minute. */
  paused: string;
}

/**
 * Inserts or updates one row for each address whose budget allows a notice now, and returns these rows. The statement
 * locks existing rows, so that only one of several concurrent requests sends a mail.
 */
export function countNoticeSql({ source, hashes, now, paused }: NoticeSql): string {
  const lastHour = (moment: string) => `${moment} > ${now} - interval '1 hour'`;
  const isApart = (moment: string) => `(NOT ${paused} OR ${moment} <= ${now} - interval '1 minute')`;
  const isLeft = (hash: string, others: string) => `(
    SELECT count(*) + ${others} < 5 AND coalesce(${isApart('max(c.sent)')}, true)
    FROM code_sends c WHERE c.address_hash = ${hash} AND ${lastHour('c.sent')})`;
  return `
INSERT INTO created_notices AS known (address_hash, latest, sent)
SELECT hash, ${now}, ARRAY[${now}::timestamptz] FROM ${source}, unnest(${hashes}::bytea[]) AS hash
WHERE ${isLeft('hash', '0')}
ORDER BY hash
ON CONFLICT (address_hash) DO UPDATE SET latest = excluded.latest,
  sent = excluded.sent || ARRAY(SELECT moment FROM unnest(known.sent) AS moment WHERE ${lastHour('moment')})
WHERE ${isApart('known.latest')}
  AND ${isLeft('known.address_hash', `(SELECT count(*) FROM unnest(known.sent) AS moment WHERE ${lastHour('moment')})`)}
RETURNING address_hash`;
}

/** SQL that is true if a budget does not allow the notice. The CTE `notice` contains {@link countNoticeSql}. */
export const isOverBudget = (hashes: string) =>
  `(SELECT count(*) FROM notice) < cardinality(coalesce(${hashes}::bytea[], '{}'))`;

/** SQL for the facts that an event gets if `suppressed` is true. */
export const suppressedFacts = (suppressed: string) =>
  `CASE WHEN ${suppressed} THEN '{"noticeSuppressed":true}'::jsonb ELSE '{}' END`;

/**
 * SQL that is true if nobody has opened the draft in the row of `forms`, and all notices about it were suppressed. The
 * applicant has then not heard of the form, so its deletion needs no notice either.
 */
export const isUnheardOf = `(status = 'Draft' AND last_accessed = created AND coalesce((
  SELECT bool_and(o.facts ? 'noticeSuppressed') FROM outbox o WHERE o.form_id = forms.id AND o.lane = 'events'), false))`;

/** Returns the HMACs of the addresses to which notices about a form may be sent. */
export function noticeHashes(hashes: CodeHashes, { tenantId, applicant }: Pick<Form, 'tenantId' | 'applicant'>) {
  return noticeChannels(applicant).map((channel) => hashes.address(tenantId, channel));
}

/**
 * True if the budgets of the addresses apply to the notices that the caller causes. They apply to signed-in applicants,
 * because such an applicant can enter a stranger's address. They do not apply if all notices go to the applicant's own
 * verified email address.
 */
export function isBudgeted(
  caller: Caller,
  role: FormRole | CreatingRole,
  { applicant, forAnother }: Pick<Form, 'applicant' | 'forAnother'>,
): boolean {
  if ((role !== 'applicant' && role !== 'creator') || forAnother || !isPerson(caller)) return false;
  const own = caller.isEmailVerified ? caller.email?.toLowerCase() : undefined;
  return !noticeChannels(applicant).every(({ channel, address }) => channel === 'email' && address === own);
}

/**
 * Returns the HMACs of the addresses whose budgets apply to the notice of a change. Undefined if the notice is sent in
 * any case.
 */
export function budgetsOf(
  hashes: CodeHashes,
  caller: Caller,
  { form, role }: { form: Form; role: FormRole },
): Buffer[] | undefined {
  return isBudgeted(caller, role, form) ? noticeHashes(hashes, form) : undefined;
}
