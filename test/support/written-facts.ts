// Keeps the facts of outbox rows as they were written, because the dispatcher soon removes the actor.
import type pg from 'pg';

/** Returns a function that lists the rows of a form, as they were written since this call. */
export async function keepWrittenFacts(
  pool: pg.Pool,
): Promise<(formId: string) => Promise<{ kind: string; facts: object; created: Date }[]>> {
  await pool.query(`
    CREATE TABLE written_facts (sequence bigint, form_id uuid, kind text, facts jsonb, created timestamptz);
    CREATE FUNCTION keep_facts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO written_facts VALUES (NEW.sequence, NEW.form_id, NEW.kind, NEW.facts, NEW.created);
      RETURN NULL;
    END $$;
    CREATE TRIGGER keep_facts AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION keep_facts()`);
  return async (formId) => {
    const sql = 'SELECT kind, facts, created FROM written_facts WHERE form_id = $1 ORDER BY sequence';
    return (await pool.query<{ kind: string; facts: object; created: Date }>(sql, [formId])).rows;
  };
}
