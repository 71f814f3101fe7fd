// The SQL that deletes forms, for administrators and for the reconciler. It does not parse the data or files of a form,
// so it can also delete a form whose JSON Postgres cannot parse.
import { isOpen } from '../outbox/settle-statements.ts';

const alphanumeric = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The characters of file URNs and of the separator between them. JSON allows an escape for each of them. */
const urnCharacters = [...`/:;-${alphanumeric}`];
/** The part of file URNs between `urn:` with the namespace identifier and the UUID of the file. */
const service = ':platform:file-service:v1:/files/';
/** Maximum length of a URN_PREFIX. */
const prefixLength = 36;
const uuidShape = '00000000-0000-0000-0000-000000000000';
const nonZeroDigits = '123456789ABCDEFabcdef';

const replaced = (text: string, from: string, to: string) => `replace(${text}, '${from}', '${to}')`;

/** SQL that decodes the escapes of one character. JSON allows the hexadecimal digits of an escape in both cases. */
function withCharacter(text: string, character: string): string {
  const digits = character.charCodeAt(0).toString(16);
  const spellings = new Set([digits, digits.toUpperCase()]);
  return [...spellings].reduce((sql, spelling) => replaced(sql, `\\u00${spelling}`, character), text);
}

/**
 * SQL that decodes the escapes of the characters of URNs. Replaces escaped backslashes first, so that each remaining
 * backslash begins an escape. Uses `replace`, which creates no row for each escape. A text with 500,000 escapes
 * therefore takes only a tenth of a second.
 */
function unescaped(text: string): string {
  const short = replaced(replaced(text, String.raw`\\`, ' '), String.raw`\/`, '/');
  return `CASE WHEN strpos(${text}, '\\') = 0 THEN ${text} ELSE ${urnCharacters.reduce(withCharacter, short)} END`;
}

/**
 * SQL for a jsonb array of the file URNs in the column `files`. The SQL searches the text without parsing the JSON, so
 * it never fails. It splits the text at the constant part of URNs, and looks at the characters before and after it. It
 * uses no regular expression, because Postgres would need hours to match some file names that a request can contain.
 */
const fileUrnsSql = `(
  SELECT coalesce(jsonb_agg(DISTINCT concat(scheme, ':', namespace, '${service}', uuid)), '[]')
  FROM (
    SELECT right(split_part(prefix, ':', -2), 3) AS scheme, split_part(prefix, ':', -1) AS namespace, uuid
    FROM (
      SELECT right(lag(part) OVER (ORDER BY position), ${prefixLength}) AS prefix, left(part, ${uuidShape.length}) AS uuid
      FROM string_to_table(${unescaped('files::text')}, '${service}') WITH ORDINALITY AS parts (part, position)
    ) AS neighbours
  ) AS candidates
  WHERE lower(scheme) = 'urn' AND namespace <> '' AND translate(namespace, '-${alphanumeric}', '') = ''
    AND translate(uuid, '${nonZeroDigits}', '${'0'.repeat(nonZeroDigits.length)}') = '${uuidShape}')`;

/** SQL for a jsonb array of distinct URNs: those in `files`, and those of uploaded files that `files` may not name. */
const allFileUrnsSql = `(
  SELECT coalesce(jsonb_agg(DISTINCT urn), '[]') FROM (
    SELECT jsonb_array_elements_text(${fileUrnsSql}) AS urn
    UNION ALL SELECT jsonb_path_query(uploads, '$.*.urn') #>> '{}') AS urns)`;

const quarantinedRow = `o.form_id = c.form_id AND o.not_before = 'infinity' AND ${isOpen('o')}`;

/**
 * CTEs that delete the forms of the CTE `due` (id, notified), write their tombstones and clear their quarantined items.
 * The CTE `gone` returns the deleted forms. Foreign keys delete the forms' idempotency records and codes. The caller's
 * statement must write a `form-deleted` row with {@link deletionFacts}.
 *
 * The quarantined outbox rows of a deleted form are dropped, except `subscribe`, which becomes due again. The
 * notification service may already have a subscriber for the form. It may also accept the request now, because the
 * request no longer contains the applicant's address.
 */
export const deletionSql = (now: string) => `
gone AS (
  DELETE FROM forms f USING due WHERE f.id = due.id
  RETURNING f.id, f.tenant_id, f.definition_id, f.anonymous_applicant, f.files, f.uploads, f.subscriber_id,
    f.applicant ->> 'language' AS language, f.status IN ('Draft', 'Locked') AS was_draft, due.notified
), tombstone AS (
  INSERT INTO tombstones (form_id, tenant_id, definition_id, anonymous_applicant, deleted, notified)
  SELECT id, tenant_id, definition_id, anonymous_applicant, ${now}, notified FROM gone
  ON CONFLICT (form_id) DO UPDATE SET deleted = excluded.deleted, notified = excluded.notified
), cleared AS (
  DELETE FROM quarantine q USING gone WHERE q.form_id = gone.id RETURNING q.form_id
), dropped AS (
  DELETE FROM outbox o USING (SELECT DISTINCT form_id FROM cleared) c
  WHERE ${quarantinedRow} AND o.kind <> 'subscribe'
), resumed AS (
  UPDATE outbox o SET not_before = ${now}, refusals = 0 FROM (SELECT DISTINCT form_id FROM cleared) c
  WHERE ${quarantinedRow} AND o.kind = 'subscribe'
)`;

/**
 * The facts of a `form-deleted` row, computed from a row of `gone`. `actor` is an SQL expression, NULL for the expiry.
 */
export const deletionFacts = (actor: string) => `jsonb_strip_nulls(jsonb_build_object(
    'definitionId', definition_id, 'actor', ${actor}::jsonb, 'subscriberId', subscriber_id, 'language', language,
    'wasDraft', was_draft, 'files', ${allFileUrnsSql}))`;
