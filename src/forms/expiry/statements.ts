// The SQL of the expiry. Each statement processes one batch: it scans an index from the end of the previous batch,
// locks the due forms, changes them and writes their outbox rows. The locking step checks every condition again, so a
// form that was just saved, held, released or unlocked is judged by its current state. Forms that other transactions
// have locked are skipped.
//
// The scan takes no locks and reads at most one batch. If a million locked forms wait for their notice, many short
// scans read them instead of one long scan.
//
// No statement parses the data or files of a form, so a form whose JSON Postgres cannot parse expires like any other. A
// form that is quarantined for a stage is skipped in that stage.
//
// Parameters: $1 tenants, $2 definitions, $3 and $4 the position after which each scan begins, $5 the times before
// which forms are due, $6 batch size, $7 now. Each statement documents its other parameters. Definitions are scanned in
// the order of the arrays.
import { escapeLiteral } from 'pg';
import { type ExpiringStatus, statuses } from '../forms/catalogue.ts';
import { appendSql, expiryEvents, systemRole } from '../forms/history.ts';
import { deletionFacts, deletionSql } from './deletion.ts';
import { limitedFacts, noticeLimitSql, unheardFacts } from './notice-limit.ts';

interface Walk {
  status: ExpiringStatus;
  /** SQL with the types of the statement's additional array parameters. */
  more: string;
  /** The names of the additional parameters, which become columns of the CTE `page`. */
  names: readonly string[];
}

export const sinceOf = (status: ExpiringStatus) => statuses[status].expiry.since;

const pageOf = ({ status, more, names }: Walk) => `
page AS MATERIALIZED (
  SELECT w.id, w.at, p.position, ${['before', ...names].map((name) => `p.${name}`).join(', ')}
  FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::uuid[], $5::timestamptz[]${more})
    WITH ORDINALITY AS p (tenant_id, definition_id, after_at, after_id, ${['before', ...names].join(', ')}, position)
  CROSS JOIN LATERAL (
    SELECT f.id, f.${sinceOf(status)} AS at FROM forms f
    WHERE f.tenant_id = p.tenant_id AND f.definition_id = p.definition_id AND f.status = '${status}' AND NOT f.held
      AND f.${sinceOf(status)} < p.before AND (f.${sinceOf(status)}, f.id) > (p.after_at, p.after_id)
    ORDER BY f.${sinceOf(status)}, f.id LIMIT $6) w
  LIMIT $6
), last AS (
  SELECT page.position::int, page.at::text, page.id FROM page
  ORDER BY page.position DESC, page.at DESC, page.id DESC LIMIT 1
)`;

/**
 * SQL that checks the status when the row is locked. The concatenation makes Postgres look up rows by id, not by a
 * partial index.
 */
const stillIs = (status: ExpiringStatus) => `f.status || '' = '${status}' AND NOT f.held`;

/** SQL that is true if the form is not in quarantine for this stage, or was released from it. */
const isFree = (stage: string, id: string) =>
  `NOT EXISTS (SELECT FROM quarantine q WHERE q.form_id = ${id} AND q.kind = '${stage}' AND NOT q.released)`;

/** The `traceparent` that `setTraceSql` sets for the transaction; null if the run is not traced. */
const traceSql = "nullif(current_setting('formgate.traceparent', true), '')";

/** Returns SQL to put before a statement. It sets the trace of the outbox rows that the transaction writes. */
export function setTraceSql(traceparent: string | undefined): string {
  return traceparent === undefined ? '' : `SET LOCAL formgate.traceparent = ${escapeLiteral(traceparent)};`;
}

const isoOf = (moment: string) => `to_char(${moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** Returns SQL that selects the position for the next batch, the number of scanned forms and the given columns. */
const summary = (columns: string) => `
SELECT last.*, (SELECT count(*)::int FROM page) AS walked, ${columns} FROM last`;

/**
 * How a statement handles the outbox row of each changed form. A `full` statement changes a batch of forms and writes
 * their rows. If Postgres rejects a row, a `bare` statement changes only the form of that row, which its last parameter
 * names. The `bare` statement returns the row in `unwritten` instead of writing it.
 */
interface Outbox {
  only(parameter: string): string;
  /** `suppression`: SQL for the facts of an event whose notice is suppressed. */
  write(row: { kind: string; facts: string; suppression: string; from: string }): string;
  unwritten: string;
}

const full: Outbox = {
  only: () => '',
  write: ({ kind, facts, suppression, from }) => `
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, traceparent)
  SELECT id, tenant_id, '${kind}', ${facts} || ${suppression}, $7, $7, ${traceSql} FROM ${from}`,
  unwritten: '',
};

const bare: Outbox = {
  only: (parameter) => `AND f.id = ${parameter}::uuid`,
  write: ({ facts, from }) => `
  SELECT id AS "formId", tenant_id AS "tenantId", ${facts} AS facts FROM ${from}`,
  unwritten: `, (SELECT coalesce(json_agg(written), '[]') FROM written) AS unwritten`,
};

const recorded = (stage: keyof typeof expiryEvents) =>
  appendSql({ event: `'${expiryEvents[stage]}'`, time: '$7', role: `'${systemRole}'` }, 'f');

const lockPage = pageOf({ status: 'Draft', more: ', $8::timestamptz[]', names: ['delete_on'] });

/** The largest bigint. If a form has this revision, a lock does not increase it, because adding 1 would fail. */
const lastRevision = '9223372036854775807';

const lockStatement = ({ only, write, unwritten }: Outbox) => `
WITH ${lockPage}, due AS MATERIALIZED (
  SELECT f.id, page.delete_on FROM page JOIN forms f ON f.id = page.id
  WHERE ${stillIs('Draft')} AND f.last_accessed < page.before AND ${isFree('lock', 'f.id')} ${only('$9')}
  FOR UPDATE OF f SKIP LOCKED
), locked AS (
  UPDATE forms f SET status = 'Locked', locked = $7, revision = f.revision + (f.revision < ${lastRevision})::int,
    history = ${recorded('lock')}
  FROM due WHERE f.id = due.id
  RETURNING f.id, f.tenant_id, f.definition_id, due.delete_on
), ${noticeLimitSql('locked', 'form-locked')}, written AS (${write({
  kind: 'form-locked',
  facts: `jsonb_build_object('definitionId', definition_id, 'deleteOn', ${isoOf('delete_on')})`,
  suppression: limitedFacts,
  from: 'locked',
})}
)
${summary(`(SELECT count(*)::int FROM locked) AS locked${unwritten}`)}`;

/**
 * Locks drafts. $8: the times at which the locked forms will be deleted. The event has no actor, because no person
 * causes it.
 */
export const lockSql = lockStatement(full);

/** Like {@link lockSql}, but locks only the form $9, and returns its outbox row instead of writing it. */
export const bareLockSql = lockStatement(bare);

// The statements of a dry run have the same parameters. If one does not use $7, the condition gives it a type.
export const lockDryRunSql = `
WITH ${lockPage}
${summary(`(
  SELECT count(*)::int FROM page WHERE ${isFree('lock', 'page.id')} AND $7::timestamptz IS NOT NULL) AS locked`)}`;

const warnPage = pageOf({
  status: 'Draft',
  more: ', $8::timestamptz[], $9::float8[], $10::float8[]',
  names: ['not_before', 'lock_after', 'delete_after'],
});
// A warning counts only if it was sent within the current warning period. Otherwise, if the retention was extended
// after a warning, the draft would be locked on a date that no warning named. The SQL compares intervals, because a sum
// of a time and days would depend on the server's time zone.
const unwarned = `f.last_accessed >= page.not_before
    AND (f.warned IS NULL OR f.warned - f.last_accessed < $7::timestamptz - page.before)`;
export const span = (milliseconds: string) => `${milliseconds} * interval '1 millisecond'`;

/**
 * Writes warnings for drafts. $8: forms whose last access was before these times get no warning, because they are due
 * to be locked. $9, $10: milliseconds from the last access to the lock, and from the lock to the deletion.
 */
export const warnSql = `
WITH ${warnPage}, due AS MATERIALIZED (
  SELECT f.id, page.lock_after, page.delete_after FROM page JOIN forms f ON f.id = page.id
  WHERE ${stillIs('Draft')} AND f.last_accessed < page.before AND ${unwarned} AND ${isFree('warn', 'f.id')}
  FOR UPDATE OF f SKIP LOCKED
), warned AS (
  UPDATE forms f SET warned = $7, history = ${recorded('warn')}
  FROM due WHERE f.id = due.id
  RETURNING f.id, f.tenant_id, f.definition_id, f.last_accessed + ${span('due.lock_after')} AS lock_on, due.delete_after
), ${noticeLimitSql('warned', 'form-expiring')}, written AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, traceparent)
  SELECT id, tenant_id, 'form-expiring', jsonb_build_object('definitionId', definition_id,
    'lockOn', ${isoOf('lock_on')}, 'deleteOn', ${isoOf(`(lock_on + ${span('delete_after')})`)}) || ${limitedFacts}, $7, $7, ${traceSql}
  FROM warned
)
${summary('(SELECT count(*)::int FROM warned) AS warned')}`;

export const warnDryRunSql = `
WITH ${warnPage}
${summary(`(SELECT count(*)::int FROM page JOIN forms f ON f.id = page.id
  WHERE ${unwarned} AND ${isFree('warn', 'f.id')}) AS warned`)}`;

// `notified` is false while the notice of the current lock is quarantined: the latest row may be from an earlier lock.
const deletePage = `${pageOf({ status: 'Locked', more: ', $8::timestamptz[]', names: ['anyhow_before'] })}, gate AS MATERIALIZED (
  SELECT page.*, page.at < page.anyhow_before AS anyhow, coalesce((
    SELECT o.accepted IS NOT NULL FROM outbox o
    WHERE o.form_id = page.id AND o.kind = 'form-locked' ORDER BY o.sequence DESC LIMIT 1), false)
    AND NOT EXISTS (SELECT FROM quarantine q WHERE q.form_id = page.id AND q.kind = 'lock-notice') AS notified
  FROM page
)`;
const waiting = '(SELECT count(*)::int FROM gate WHERE NOT notified AND NOT anyhow) AS waiting';

const deleteStatement = ({ only, write, unwritten }: Outbox) => `
WITH ${deletePage}, due AS MATERIALIZED (
  SELECT f.id, gate.notified FROM gate JOIN forms f ON f.id = gate.id
  WHERE (gate.notified OR gate.anyhow) AND ${stillIs('Locked')} AND f.locked = gate.at AND ${isFree('delete', 'f.id')}
    ${only('$9')}
  FOR UPDATE OF f SKIP LOCKED
), ${deletionSql('$7')}, written AS (${write({
  kind: 'form-deleted',
  facts: deletionFacts('NULL'),
  suppression: unheardFacts,
  from: 'gone',
})}
)
${summary(`${waiting}, (SELECT count(*)::int FROM gone) AS deleted, (
  SELECT coalesce(json_agg(json_build_object('formId', id, 'tenantId', tenant_id, 'definitionId', definition_id)), '[]')
  FROM gone WHERE NOT notified) AS unnotified${unwritten}`)}`;

/**
 * Deletes locked forms. $8: a form that was locked before this time is deleted even if the event service did not accept
 * its `form-locked` event. Foreign keys delete the form's idempotency records and codes.
 */
export const deleteSql = deleteStatement(full);

/** Like {@link deleteSql}, but deletes only the form $9, and returns its outbox row instead of writing it. */
export const bareDeleteSql = deleteStatement(bare);

export const deleteDryRunSql = `
WITH ${deletePage}
${summary(`${waiting}, (
  SELECT count(*)::int FROM gate WHERE (notified OR anyhow) AND ${isFree('delete', 'gate.id')}) AS deleted, (
  SELECT coalesce(json_agg(json_build_object('formId', id)), '[]')
  FROM gate WHERE anyhow AND NOT notified AND $7::timestamptz IS NOT NULL) AS unnotified`)}`;
