// Makes forms that cannot be processed: content that Postgres stores but cannot read, values at the end of their range,
// and rows that a trigger refuses to change. Uses SQL, because no request can create such forms.
import type pg from 'pg';

const file = 'urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a551';

/**
 * JSON text of about a megabyte: a long member name that ends in a file URN without its last digit, directly followed
 * by a complete file URN. Searching it with a regular expression that begins with an unbounded class takes hours.
 */
export const slowFiles = `{"${'a'.repeat(1_000_000)}${file.slice(11, -1)}${file.slice(11)}":"${file}"}`;

/** SET clauses that break an existing form, keyed by the defect that they cause. */
export const poisons: Record<string, string> = {
  'a NUL in data': String.raw`data = '{"q":1,"\u0000":"\u0000"}'`,
  'a NUL in the name of a file': String.raw`files = '{"a\u0000b":"${file}"}'`,
  'a NUL in the value of a file': String.raw`files = '{"a":"\u0000"}'`,
  'half a surrogate pair': String.raw`data = '{"\ud800":1}', files = '{"a\ud800":"\udc00"}'`,
  'files that are a list': `files = '["urn:example"]'`,
  'files that are text': `files = '"text"'`,
  'one name twice': `data = '{"a":1,"a":2}', files = '{"a":"b","a":"c"}'`,
  'a number that fits nowhere': `data = '{"a":1e999999}', files = '{"a":1e999999}'`,
  'a name of a file that is slow to search': `files = '${slowFiles}'`,
  'names nested 3,000 deep': `data = (repeat('{"a":', 3000) || '1' || repeat('}', 3000))::json`,
  'the last revision': 'revision = 9223372036854775807',
};

export async function poison(pool: pg.Pool, formIds: readonly string[], assignment: string): Promise<void> {
  await pool.query(`UPDATE forms SET ${assignment} WHERE id = ANY ($1)`, [formIds]);
}

/** From now on, statements that write an outbox row for these forms fail with a data exception. */
export async function refuseOutboxRows(pool: pg.Pool, formIds: readonly string[]): Promise<void> {
  await pool.query(`
    CREATE TABLE IF NOT EXISTS refused_forms (form_id uuid PRIMARY KEY);
    CREATE OR REPLACE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF EXISTS (SELECT FROM refused_forms r WHERE r.form_id = NEW.form_id) THEN
          RAISE EXCEPTION 'Ana lives at 1 Main Street' USING ERRCODE = '22P05';
        END IF;
        RETURN NEW;
      END $$;
    CREATE OR REPLACE TRIGGER refuse_row BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION refuse_row()`);
  await pool.query('INSERT INTO refused_forms SELECT unnest($1::uuid[])', [formIds]);
}

/** From now on, statements that change these forms fail with a data exception. */
export async function refuseFormChanges(pool: pg.Pool, formIds: readonly string[]): Promise<void> {
  await pool.query(`
    CREATE TABLE IF NOT EXISTS unchangeable (form_id uuid PRIMARY KEY);
    CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF EXISTS (SELECT FROM unchangeable u WHERE u.form_id = OLD.id) THEN
          RAISE EXCEPTION 'Ana lives at 1 Main Street' USING ERRCODE = '22P05';
        END IF;
        RETURN NEW;
      END $$;
    CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE ON forms FOR EACH ROW EXECUTE FUNCTION refuse_change()`);
  await pool.query('INSERT INTO unchangeable SELECT unnest($1::uuid[])', [formIds]);
}

/** From now on, updates of these forms take `milliseconds` longer. Replaces the forms of earlier calls. */
export async function delayFormChanges(
  pool: pg.Pool,
  formIds: readonly string[] | 'all',
  milliseconds: number,
): Promise<void> {
  await pool.query(`
    CREATE TABLE IF NOT EXISTS slow_forms (form_id uuid PRIMARY KEY);
    TRUNCATE slow_forms;
    CREATE OR REPLACE FUNCTION delay_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF ${formIds === 'all'} OR EXISTS (SELECT FROM slow_forms s WHERE s.form_id = OLD.id) THEN
          PERFORM pg_sleep(${milliseconds / 1_000});
        END IF;
        RETURN NEW;
      END $$;
    CREATE OR REPLACE TRIGGER delay_change BEFORE UPDATE ON forms FOR EACH ROW EXECUTE FUNCTION delay_change()`);
  if (formIds !== 'all') await pool.query('INSERT INTO slow_forms SELECT unnest($1::uuid[])', [formIds]);
}
