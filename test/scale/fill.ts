// Fills a database of the form service as some weeks of use would: with the forms of 20 tenants of very different
// sizes, with ten definitions each. For every 100 drafts, there are ten forms in other statuses. One draft in 20 is due
// to be locked, and one locked form in four is due to be deleted. Form data has 0.4 KiB (70 %), 1 KiB, 4 KiB or 16 KiB
// (1 %).
import pg from 'pg';

export interface FillOptions {
  databaseUrl: string;
  /** URN of the tenant with the most forms. */
  tenant: string;
  /** Number of forms in the status Draft. There are a tenth as many forms in other statuses. */
  drafts: number;
  log(line: string): void;
}

/** The definition of a tenth of the forms. */
export const filledDefinition = 'permit';

const formDataSql = `
CREATE TABLE scale_form_data AS
SELECT n, json_build_object('name', 'Ana', 'text', (
  SELECT string_agg(md5(n || ':' || i), '') FROM generate_series(1,
    CASE WHEN n < 700 THEN 12 WHEN n < 900 THEN 31 WHEN n < 990 THEN 127 ELSE 511 END) i)) AS data
FROM generate_series(0, 999) n`;

// $1: the largest tenant, $2: the definition, $3 and $4: the first and last number, $5: the number of forms. Forms are
// inserted in the order of their creation times, which cover 30 days. The multiplications scatter the kinds of forms
// evenly.
const fillSql = `
INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
  one_per_applicant, applicant, last_accessed, locked, submitted, revision, data, files, subscriber_id)
SELECT (substr(d.hex, 1, 8) || '-' || substr(d.hex, 9, 4) || '-7' || substr(d.random, 16))::uuid,
  CASE WHEN d.tenant = 0 THEN $1 ELSE overlay($1 placing lpad(d.tenant::text, 4, '0') from length($1) - 3) END,
  CASE WHEN d.definition = 0 THEN $2 ELSE 'definition-' || d.definition END,
  d.status, d.created, '{"id":"intake","name":"Intake"}', 'core', true, false,
  jsonb_build_object('addressAs', 'Ana', 'channels', jsonb_build_array(
    jsonb_build_object('channel', 'email', 'address', d.random || '@example.org'))),
  d.accessed,
  CASE d.status WHEN 'Locked' THEN now() - d.locked_days * interval '1 day' END,
  CASE WHEN d.status IN ('Submitted', 'Archived') THEN d.accessed END,
  1 + g % 20, a.data, '{}', substr(md5(d.random), 1, 24)
FROM generate_series($3::bigint, $4::bigint) g
CROSS JOIN LATERAL (
  SELECT now() - interval '30 days' + g::float8 / $5::float8 * interval '30 days' AS created, g * 7919 % 1100 AS kind,
    g * 104729 % 1000 AS share) c
CROSS JOIN LATERAL (
  SELECT c.created, gen_random_uuid()::text AS random,
    lpad(to_hex((extract(epoch FROM c.created) * 1000)::bigint), 12, '0') AS hex,
    floor(20 * power(c.share / 1000.0, 2))::int AS tenant, (g % 10)::int AS definition,
    CASE WHEN c.kind < 1000 THEN 'Draft' WHEN c.kind < 1040 THEN 'Locked'
      WHEN c.kind < 1090 THEN 'Submitted' ELSE 'Archived' END AS status,
    CASE WHEN c.kind < 1030 THEN 1 + c.kind % 13 ELSE 16 END AS locked_days,
    CASE WHEN g * 3 < $5::bigint AND c.kind < 150 THEN c.created + random() * interval '2 days'
      ELSE greatest(c.created, now() - (0.1 + 11 * random()) * interval '1 day') END AS accessed) d
JOIN scale_form_data a ON a.n = (g * 31) % 1000`;

/** Adds, for each locked form that is due, the delivered outbox row of the applicant's notice. */
const noticesSql = `
INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
SELECT id, tenant_id, 'form-locked', jsonb_build_object('definitionId', definition_id), locked, locked, locked
FROM forms WHERE status = 'Locked' AND locked < now() - interval '15 days'`;

const chunk = 20_000;
/** Number of connections that insert forms. */
const width = 2;

/**
 * Fills the database. Drops the indexes first and recreates them at the end, which halves the duration. A million
 * drafts take about 100 s.
 */
export async function fill(options: FillOptions): Promise<void> {
  const { drafts, log, tenant } = options;
  const total = Math.round(drafts * 1.1);
  const pool = new pg.Pool({
    connectionString: options.databaseUrl,
    max: width,
    options: '-c statement_timeout=0 -c lock_timeout=0 -c synchronous_commit=off -c maintenance_work_mem=512MB',
  });
  const started = performance.now();
  await pool.query(formDataSql);
  // Without this setting, Postgres would spend most of the time trying to compress data that does not compress.
  await pool.query('ALTER TABLE forms ALTER COLUMN data SET STORAGE EXTERNAL');
  const { rows: indexes } = await pool.query<{ name: string; sql: string }>(
    `SELECT indexname AS name, indexdef AS sql FROM pg_indexes WHERE tablename = 'forms' AND indexname <> 'forms_pkey'`,
  );
  for (const { name } of indexes) await pool.query(`DROP INDEX ${name}`);
  let next = 0;
  const work = async () => {
    for (let from = next; from < total; from = next) {
      next += chunk;
      await pool.query(fillSql, [tenant, filledDefinition, from, Math.min(from + chunk, total) - 1, total]);
      if ((from / chunk) % 50 === 0) log(`${from} of ${total} forms after ${seconds(started)} s`);
    }
  };
  await Promise.all(Array.from({ length: width }, work));
  for (const { sql } of indexes) await pool.query(sql);
  await pool.query(noticesSql);
  log(`${total} forms after ${seconds(started)} s`);
  await pool.query('VACUUM (ANALYZE) forms');
  await pool.query('VACUUM (ANALYZE) outbox');
  await pool.query('CHECKPOINT');
  log(`indexes, vacuum and checkpoint after ${seconds(started)} s`);
  await pool.end();
}

const seconds = (started: number) => Math.round((performance.now() - started) / 1_000);
