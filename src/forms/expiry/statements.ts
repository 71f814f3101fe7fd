// The SQL of the expiry. Each statement takes one batch: it walks an index from where the batch before ended, locks what
// is due and free, changes it and writes the outbox rows that tell of it. The whole policy is in the statement that
// writes, so a form that was saved, held, released or unlocked a moment ago is judged as it is now.
//
// The walk takes no lock and is bounded by the batch, whatever it finds: a million forms that wait for their notice are
// as many short looks. What it found is judged again when its row is locked; a row that somebody holds is passed over.
//
// No statement parses the data or the files of a form, so a form whose content Postgres cannot read expires like any other.
// A form in quarantine for a stage is passed over in that stage.
//
// $1 tenants, $2 definitions, $3 and $4 the place after which each walk begins, $5 moments before which forms are due,
// $6 rows in a batch, $7 now; what follows is said at each statement. Definitions are walked in the order of the arrays.
import { fileUrnsSql } from '../outbox/file-urns.ts';
import { clearQuarantineSql } from '../quarantine/clear.ts';

interface Walk {
  status: 'Draft' | 'Locked';
  /** The column that the period counts from. */
  since: 'last_accessed' | 'locked';
  /** Further arrays, by name and type; they stand in the page too. */
  more: string;
  names: string;
}

const pageOf = ({ status, since, more, names }: Walk) => `
page AS MATERIALIZED (
  SELECT w.id, w.at, p.position, p.before${names.replaceAll(/\w+/g, (name) => `p.${name}`)}
  FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::uuid[], $5::timestamptz[]${more})
    WITH ORDINALITY AS p (tenant_id, definition_id, after_at, after_id, before${names}, position)
  CROSS JOIN LATERAL (
    SELECT f.id, f.${since} AS at FROM forms f
    WHERE f.tenant_id = p.tenant_id AND f.definition_id = p.definition_id AND f.status = '${status}' AND NOT f.held
      AND f.${since} < p.before AND (f.${since}, f.id) > (p.after_at, p.after_id)
    ORDER BY f.${since}, f.id LIMIT $6) w
  LIMIT $6
), last AS (
  SELECT page.position::int, page.at::text, page.id FROM page
  ORDER BY page.position DESC, page.at DESC, page.id DESC LIMIT 1
)`;

/**
 * Goes before a batch, in its transaction. A run turns the table round, so the planner's statistics are those of before:
 * where it expects no row it would scan an index, or the table, for each of a thousand. So it is told to walk and to
 * look up. Up to version 17 Postgres tells itself so by costs that make it compile what looks so dear: hence no JIT.
 */
export const planSql = ['seqscan', 'bitmapscan', 'sort', 'hashjoin', 'mergejoin']
  .map((way) => `SET LOCAL enable_${way} = off;`)
  .concat('SET LOCAL jit = off')
  .join(' ');

/** The status when the row is locked. The sum keeps the partial indexes out of it: rows are looked up by their id. */
const stillIs = (status: Walk['status']) => `f.status || '' = '${status}' AND NOT f.held`;

/** Not quarantined for the stage, or released since. */
const isFree = (stage: string, id: string) =>
  `NOT EXISTS (SELECT FROM quarantine q WHERE q.form_id = ${id} AND q.kind = '${stage}' AND NOT q.released)`;

const isoOf = (moment: string) => `to_char(${moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** Where the next batch begins, how many forms were looked at, and the columns of the statement. */
const answer = (columns: string) => `
SELECT last.*, (SELECT count(*)::int FROM page) AS walked, ${columns} FROM last`;

/**
 * The outbox row of each changed form. Postgres may refuse that row: `full` statements write it, `bare` ones change only the
 * one form in their last parameter and return the row in `untold`.
 */
interface Outbox {
  only(parameter: string): string;
  told(row: { kind: string; facts: string; from: string }): string;
  untold: string;
}

const full: Outbox = {
  only: () => '',
  told: ({ kind, facts, from }) => `
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
  SELECT id, tenant_id, '${kind}', ${facts}, $7, $7 FROM ${from}`,
  untold: '',
};

const bare: Outbox = {
  only: (parameter) => `AND f.id = ${parameter}::uuid`,
  told: ({ facts, from }) => `
  SELECT id AS "formId", tenant_id AS "tenantId", ${facts} AS facts FROM ${from}`,
  untold: `, (SELECT coalesce(json_agg(told), '[]') FROM told) AS untold`,
};

const lockPage = pageOf({ status: 'Draft', since: 'last_accessed', more: ', $8::timestamptz[]', names: ', delete_on' });

/** A bigint's last. The lock of a form with this revision must not fail for it. */
const lastRevision = '9223372036854775807';

const lockStatement = ({ only, told, untold }: Outbox) => `
WITH ${lockPage}, due AS MATERIALIZED (
  SELECT f.id, page.delete_on FROM page JOIN forms f ON f.id = page.id
  WHERE ${stillIs('Draft')} AND f.last_accessed < page.before AND ${isFree('lock', 'f.id')} ${only('$9')}
  FOR UPDATE OF f SKIP LOCKED
), locked AS (
  UPDATE forms f SET status = 'Locked', locked = $7, revision = f.revision + (f.revision < ${lastRevision})::int
  FROM due WHERE f.id = due.id
  RETURNING f.id, f.tenant_id, f.definition_id, due.delete_on
), told AS (${told({
  kind: 'form-locked',
  facts: `jsonb_build_object('definitionId', definition_id, 'deleteOn', ${isoOf('delete_on')})`,
  from: 'locked',
})}
)
${answer(`(SELECT count(*)::int FROM locked) AS locked${untold}`)}`;

/** $8 when what is locked now will be deleted. The event names no actor: without one it is the expiry itself. */
export const lockSql = lockStatement(full);

/** As above; $9 the form. */
export const bareLockSql = lockStatement(bare);

export const lockLookSql = `
WITH ${lockPage}
${answer(`(
  SELECT count(*)::int FROM page WHERE ${isFree('lock', 'page.id')} AND $7::timestamptz IS NOT NULL) AS locked`)}`;

const warnPage = pageOf({
  status: 'Draft',
  since: 'last_accessed',
  more: ', $8::timestamptz[], $9::float8[], $10::float8[]',
  names: ', not_before, lock_after, delete_after',
});
// A warning from before the last access is void; one of the same moment may be, and a second warning does less harm.
const unwarned = 'f.last_accessed >= page.not_before AND (f.warned IS NULL OR f.warned <= f.last_accessed)';
const span = (milliseconds: string) => `${milliseconds} * interval '1 millisecond'`;

/** $8 moments from which on forms are not to be locked yet, $9 and $10 milliseconds from access to lock, and to deletion. */
export const warnSql = `
WITH ${warnPage}, due AS MATERIALIZED (
  SELECT f.id, page.lock_after, page.delete_after FROM page JOIN forms f ON f.id = page.id
  WHERE ${stillIs('Draft')} AND f.last_accessed < page.before AND ${unwarned} AND ${isFree('warn', 'f.id')}
  FOR UPDATE OF f SKIP LOCKED
), warned AS (
  UPDATE forms f SET warned = $7
  FROM due WHERE f.id = due.id
  RETURNING f.id, f.tenant_id, f.definition_id, f.last_accessed + ${span('due.lock_after')} AS lock_on, due.delete_after
), told AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
  SELECT id, tenant_id, 'form-expiring', jsonb_build_object('definitionId', definition_id,
    'lockOn', ${isoOf('lock_on')}, 'deleteOn', ${isoOf(`(lock_on + ${span('delete_after')})`)}), $7, $7
  FROM warned
)
${answer('(SELECT count(*)::int FROM warned) AS warned')}`;

export const warnLookSql = `
WITH ${warnPage}
${answer(`(SELECT count(*)::int FROM page JOIN forms f ON f.id = page.id
  WHERE ${unwarned} AND ${isFree('warn', 'f.id')} AND $7::timestamptz IS NOT NULL) AS warned`)}`;

// The latest form-locked may be of an earlier lock, if that of the present one could not be written.
const deletePage = `${pageOf({ status: 'Locked', since: 'locked', more: ', $8::timestamptz[]', names: ', anyhow_before' })}, gate AS MATERIALIZED (
  SELECT page.*, page.at < page.anyhow_before AS anyhow, coalesce((
    SELECT o.accepted IS NOT NULL FROM outbox o
    WHERE o.form_id = page.id AND o.kind = 'form-locked' ORDER BY o.sequence DESC LIMIT 1), false)
    AND NOT EXISTS (SELECT FROM quarantine q WHERE q.form_id = page.id AND q.kind = 'lock-notice') AS notified
  FROM page
)`;
const waiting = '(SELECT count(*)::int FROM gate WHERE NOT notified AND NOT anyhow) AS waiting';

const deleteStatement = ({ only, told, untold }: Outbox) => `
WITH ${deletePage}, due AS MATERIALIZED (
  SELECT f.id, gate.notified FROM gate JOIN forms f ON f.id = gate.id
  WHERE (gate.notified OR gate.anyhow) AND ${stillIs('Locked')} AND f.locked = gate.at AND ${isFree('delete', 'f.id')}
    ${only('$9')}
  FOR UPDATE OF f SKIP LOCKED
), gone AS (
  DELETE FROM forms f USING due WHERE f.id = due.id
  RETURNING f.id, f.tenant_id, f.definition_id, f.anonymous_applicant, f.files, f.subscriber_id, due.notified
), tombstone AS (
  INSERT INTO tombstones (form_id, tenant_id, definition_id, anonymous_applicant, deleted, notified)
  SELECT id, tenant_id, definition_id, anonymous_applicant, $7, notified FROM gone
  ON CONFLICT (form_id) DO UPDATE SET deleted = excluded.deleted, notified = excluded.notified
), ${clearQuarantineSql('$7')}, told AS (${told({
  kind: 'form-deleted',
  facts: `jsonb_strip_nulls(jsonb_build_object(
    'definitionId', definition_id, 'subscriberId', subscriber_id, 'files', ${fileUrnsSql('files')}))`,
  from: 'gone',
})}
)
${answer(`${waiting}, (SELECT count(*)::int FROM gone) AS deleted, (
  SELECT coalesce(json_agg(json_build_object('formId', id, 'tenantId', tenant_id, 'definitionId', definition_id)), '[]')
  FROM gone WHERE NOT notified) AS unnotified${untold}`)}`;

/**
 * $8 moments before which forms are deleted though nobody could be told of their lock. Idempotency records and codes go
 * with the form, by their foreign keys.
 */
export const deleteSql = deleteStatement(full);

/** As above; $9 the form. */
export const bareDeleteSql = deleteStatement(bare);

export const deleteLookSql = `
WITH ${deletePage}
${answer(`${waiting}, (
  SELECT count(*)::int FROM gate WHERE (notified OR anyhow) AND ${isFree('delete', 'gate.id')}) AS deleted, (
  SELECT coalesce(json_agg(json_build_object('formId', id)), '[]')
  FROM gate WHERE anyhow AND NOT notified AND $7::timestamptz IS NOT NULL) AS unnotified`)}`;

/** $1 tenants, $2 definitions, $3 from, $4 before: how many forms a walk will come by. */
export const countSql = (since: 'last_accessed' | 'locked') => `
SELECT count(*)::int AS count
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) AS p (tenant_id, definition_id, start, before)
JOIN forms f ON f.tenant_id = p.tenant_id AND f.definition_id = p.definition_id
  AND f.status = '${since === 'locked' ? 'Locked' : 'Draft'}' AND NOT f.held
  AND f.${since} >= p.start AND f.${since} < p.before`;

/** $1 tenants, $2 definitions, $3 moments before which drafts are overdue, $4 milliseconds from access to lock. */
export const oldestOverdueSql = `
SELECT min(w.last_accessed + ${span('p.lock_after')}) AS moment
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::float8[]) AS p (tenant_id, definition_id, before, lock_after)
CROSS JOIN LATERAL (
  SELECT f.last_accessed FROM forms f
  WHERE f.tenant_id = p.tenant_id AND f.definition_id = p.definition_id AND f.status = 'Draft' AND NOT f.held
    AND f.last_accessed < p.before
  ORDER BY f.last_accessed, f.id LIMIT 1) w`;

const firstPair = (status: string, after: string) => `
  SELECT tenant_id, definition_id FROM forms
  WHERE status = '${status}' AND NOT held ${after} ORDER BY tenant_id, definition_id LIMIT 1`;
const afterPair = 'AND (tenant_id, definition_id) > (p.tenant_id, p.definition_id)';
const pairs = (status: string) => `(
  WITH RECURSIVE pairs AS (
    (${firstPair(status, '')})
    UNION ALL
    SELECT n.* FROM pairs p CROSS JOIN LATERAL (${firstPair(status, afterPair)}) n
  ) SELECT tenant_id, definition_id FROM pairs)`;

/** The definitions of drafts and locked forms, by jumps through the index: one for each definition, not for each form. */
export const definitionsSql = `
SELECT tenant_id AS "tenantId", definition_id AS "definitionId"
FROM (${pairs('Draft')} UNION ${pairs('Locked')}) AS found
ORDER BY tenant_id, definition_id`;
