// SQL that finds the file URNs in the `files` of a form without parsing them as JSON: whatever the text holds, it finds
// URNs or none, and never fails. A form that cannot be parsed can still be deleted.

const tokens = String.raw`\\u00[2-7][0-9a-fA-F]|\\.|[^\\]+`;
const asciiEscape = String.raw`^\\u00`;
const urn = '[A-Za-z0-9:-]+:file-service:v1:/files/[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}';

/** The text with the escapes of printable ASCII characters resolved, which JSON allows anywhere in a string. */
const unescaped = (text: string) => `
  CASE WHEN strpos(${text}, '\\') = 0 THEN ${text} ELSE (
    SELECT string_agg(CASE
      WHEN token[1] ~ '${asciiEscape}' THEN chr(get_byte(decode(right(token[1], 2), 'hex'), 0))
      WHEN token[1] = '\\/' THEN '/'
      ELSE token[1] END, '' ORDER BY position)
    FROM regexp_matches(${text}, '${tokens}', 'g') WITH ORDINALITY AS t (token, position)) END`;

/** A jsonb array of the URNs in `files`, a json column. */
export const fileUrnsSql = (files: string) => `(
  SELECT coalesce(jsonb_agg(DISTINCT match[1]), '[]')
  FROM regexp_matches(${unescaped(`${files}::text`)}, '${urn}', 'g') AS match)`;
