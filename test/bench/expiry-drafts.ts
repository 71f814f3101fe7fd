// Drafts for the expiry bench, created by SQL: 4 KiB of form data that does not compress, ids in the order of creation,
// and last accesses in roughly the same order, as in a database that has grown over time.
import type pg from 'pg';

export interface Fill {
  tenant: string;
  /**
   * The drafts belong to these definitions in turn, so that the rows of all definitions are on the same database pages.
   */
  definitions: string[];
  /** Number of drafts of all definitions together. */
  count: number;
}

const formDataSql = `
CREATE TABLE IF NOT EXISTS bench_form_data AS
SELECT n, json_build_object('text', (
  SELECT string_agg(md5(n || ':' || i), '') FROM generate_series(1, 127) i)) AS data
FROM generate_series(0, 499) n`;

const fillSql = `
INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
  one_per_applicant, applicant, last_accessed, data, files, subscriber_id)
SELECT (substr(d.hex, 1, 8) || '-' || substr(d.hex, 9, 4) || '-7' || substr(d.random, 16))::uuid, $1,
  ($2::text[])[1 + g % cardinality($2)], 'Draft', d.created, '{"id":"intake","name":"Intake"}', 'core', true, false,
  jsonb_build_object('addressAs', 'Ana', 'channels', jsonb_build_array(
    jsonb_build_object('channel', 'email', 'address', d.random || '@example.org'))),
  d.created + random() * interval '2 days', a.data, '{}', substr(md5(d.random), 1, 24)
FROM generate_series($3::int, $4::int) g
CROSS JOIN LATERAL (SELECT now() - interval '30 days' + g * interval '864 milliseconds' AS created) c
CROSS JOIN LATERAL (
  SELECT c.created, gen_random_uuid()::text AS random,
    lpad(to_hex((extract(epoch FROM c.created) * 1000)::bigint), 12, '0') AS hex) d
JOIN bench_form_data a ON a.n = g % 500`;

const chunk = 25_000;

/**
 * Creates the drafts. Then vacuums as autovacuum would, and writes all pages to disk, so that these writes do not
 * happen during a measurement.
 */
export async function fillDrafts(pool: pg.Pool, { tenant, definitions, count }: Fill): Promise<void> {
  await pool.query(formDataSql);
  // Without this setting, Postgres would spend most of the time trying to compress data that does not compress.
  await pool.query('ALTER TABLE forms ALTER COLUMN data SET STORAGE EXTERNAL');
  for (let done = 0; done < count; done += chunk)
    // All drafts are created between 30 and 20 days ago, regardless of their number.
    await pool.query(fillSql.replace('864 milliseconds', `${864_000 / count} seconds`), [
      tenant,
      definitions,
      done,
      Math.min(done + chunk, count) - 1,
    ]);
  await pool.query('VACUUM (ANALYZE) forms, outbox');
  // After a checkpoint, the first change of a page writes the whole page to the WAL, as it does in a nightly run after
  // a day of other work.
  await pool.query('CHECKPOINT');
}
