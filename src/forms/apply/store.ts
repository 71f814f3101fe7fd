// Stores the intake application's own data: counts of created drafts and uploaded bytes, codes that a browser has used,
// and the last save of each form. It does not use the tables of forms, so the intake application can move to another
// process with its own database.
import { earlier } from '../../service/clock.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import { cookieLife } from './cookies.ts';

/** A limit in a window of time for one key, such as a client network or one request, and what to count towards it. */
export interface Limit {
  name: string;
  /** An HMAC of the client network, email address or request. */
  key: Buffer;
  most: number;
  amount: number;
}

export interface CodeUse {
  formId: string;
  /** One hash for each key of the ring. */
  codeHashes: readonly Buffer[];
  /** The hashes of the browser under the same keys. */
  browserHashes: readonly Buffer[];
  now: Date;
}

export interface LastSave {
  formId: string;
  /** One hash for each key of the ring. The first is stored. */
  saveHashes: readonly Buffer[];
  etag: string;
  now: Date;
}

/** The names of the limits that were already reached, and of those towards which the statement has counted. */
interface CountResult {
  spent: string[];
  counted: string[];
}

/** Thrown to roll back the transaction that reserves a code. */
class CodeTaken extends Error {}

export type ApplyStore = ReturnType<typeof createApplyStore>;

/** Milliseconds for which saves are stored. */
const savesKept = 60 * 60_000;
/**
 * Maximum number of old rows that one statement removes. A statement adds fewer rows than this, so the tables stay
 * small.
 */
const removedAtOnce = 10;

const removeOld = (table: string, column: string, before: string) => `
DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM ${table} WHERE ${column} < ${before} LIMIT ${removedAtOnce} FOR UPDATE SKIP LOCKED))`;

// Counts the amounts towards all limits, unless one of them would be exceeded when the statement begins. Skips a limit
// that a concurrent request has reached since then. Rows are locked in a fixed order, so that concurrent requests do
// not deadlock.
const countSql = `
WITH wanted AS (
  SELECT * FROM unnest($1::text[], $2::bytea[], $3::int[], $4::int[]) AS w (name, key, most, amount)
), spent AS (
  SELECT w.name FROM wanted w LEFT JOIN apply_counts c ON c.name = w.name AND c.key = w.key AND c.window_start = $5
  WHERE coalesce(c.used, 0) + w.amount > w.most
), counted AS (
  INSERT INTO apply_counts AS c (name, key, window_start, used)
  SELECT name, key, $5, amount FROM wanted WHERE NOT EXISTS (SELECT FROM spent) ORDER BY name, key
  ON CONFLICT (name, key, window_start) DO UPDATE SET used = c.used + excluded.used
  WHERE c.used + excluded.used <= (SELECT w.most FROM wanted w WHERE w.name = c.name AND w.key = c.key)
  RETURNING c.name
), removed AS (${removeOld('apply_counts', 'window_start', '$5::timestamptz')})
SELECT ARRAY(SELECT name FROM spent) AS spent, ARRAY(SELECT name FROM counted) AS counted`;

const uncountSql = `
WITH counted AS (
  SELECT c.name, c.key, w.amount
  FROM apply_counts c JOIN unnest($1::text[], $2::bytea[], $3::int[]) AS w (name, key, amount) USING (name, key)
  WHERE c.window_start = $4 ORDER BY c.name, c.key FOR UPDATE OF c
)
UPDATE apply_counts c SET used = greatest(c.used - counted.amount, 0) FROM counted
WHERE c.name = counted.name AND c.key = counted.key AND c.window_start = $4`;

// Rows are locked in a fixed order, so that concurrent requests do not deadlock.
const claimCodeSql = `
WITH removed AS (${removeOld('apply_codes', 'used', '$5::timestamptz')}), claimed AS (
  INSERT INTO apply_codes AS c (form_id, code_hash, browser_hash, used, accepted)
  SELECT $1, h.code, h.browser, $4, $6 FROM unnest($2::bytea[], $3::bytea[]) AS h (code, browser) ORDER BY h.code
  ON CONFLICT (form_id, code_hash) DO UPDATE SET accepted = c.accepted OR excluded.accepted
  WHERE c.browser_hash = excluded.browser_hash
  RETURNING c.form_id
)
SELECT form_id FROM claimed`;

const releaseCodeSql = `
DELETE FROM apply_codes WHERE form_id = $1 AND NOT accepted
  AND (code_hash, browser_hash) IN (SELECT * FROM unnest($2::bytea[], $3::bytea[]))`;

const keepSaveSql = `
WITH removed AS (${removeOld('apply_saves', 'saved', '$5::timestamptz')} AND form_id <> $1)
INSERT INTO apply_saves (form_id, save_hash, etag, saved) VALUES ($1, $2, $3, $4)
ON CONFLICT (form_id) DO UPDATE SET save_hash = excluded.save_hash, etag = excluded.etag, saved = excluded.saved`;

const columnsOf = (limits: readonly Limit[], ...names: (keyof Limit)[]) =>
  names.map((name) => limits.map((limit) => limit[name]));

export function createApplyStore(pool: SharedPool) {
  /** Takes back a count, for what was not created. */
  async function uncount(tenantId: string, limits: readonly Limit[], start: Date): Promise<void> {
    const values = [...columnsOf(limits, 'name', 'key', 'amount'), start];
    await pool.query({ tenant: tenantId, member: 'apply' }, uncountSql, values);
  }

  return {
    /**
     * Counts towards all limits, or towards none if one of them would be exceeded. Returns the name of the first limit
     * that would be exceeded, else undefined. `start` is the beginning of the window, which is the same in all pods.
     */
    async count(tenantId: string, limits: readonly Limit[], start: Date): Promise<string | undefined> {
      const values = [...columnsOf(limits, 'name', 'key', 'most', 'amount'), start];
      // The statement is its own transaction, because all tenants share some of the rows. In a longer transaction, a
      // pod that stalls between two statements would keep these rows locked, and nobody could create drafts.
      const { rows } = await pool.query<CountResult>({ tenant: tenantId, member: 'apply' }, countSql, values);
      const { spent = [], counted = [] } = rows[0] ?? {};
      const reached = limits.find(({ name }) => (spent.length > 0 ? spent.includes(name) : !counted.includes(name)));
      // Otherwise, one person's refused requests would use up the limits that all applicants share.
      const taken = limits.filter(({ name }) => counted.includes(name));
      if (reached && taken.length > 0) await uncount(tenantId, taken, start);
      return reached?.name;
    },

    uncount,

    /**
     * Reserves a code for a browser. If `isAccepted` is true, the code can no longer be released. Returns false if
     * another browser has reserved the code. Stores one row for each key of the ring, so that during a rotation each
     * pod finds the codes that the other pods have reserved.
     */
    async claimCode(tenantId: string, use: CodeUse, isAccepted = false): Promise<boolean> {
      const { formId, codeHashes, browserHashes, now } = use;
      // A cookie without a code may be as old as its form, so codes are kept until no such cookie is accepted.
      const values = [formId, codeHashes, browserHashes, now, earlier(now, cookieLife), isAccepted];
      try {
        await pool.transaction({ tenant: tenantId, member: formId }, async (client) => {
          const { rowCount } = await client.query(claimCodeSql, values);
          if (rowCount !== codeHashes.length) throw new CodeTaken();
        });
        return true;
      } catch (error) {
        if (error instanceof CodeTaken) return false;
        throw error;
      }
    },

    /** Releases a code that this browser has reserved, if the code was not accepted. */
    async releaseCode(tenantId: string, { formId, codeHashes, browserHashes }: CodeUse): Promise<void> {
      await pool.query({ tenant: tenantId, member: formId }, releaseCodeSql, [formId, codeHashes, browserHashes]);
    },

    /** True if a browser has opened the form with a code since the oldest accepted cookies were issued. */
    async isOpenedWithCode(tenantId: string, formId: string): Promise<boolean> {
      const sql = 'SELECT FROM apply_codes WHERE form_id = $1 AND accepted LIMIT 1';
      return (await pool.query({ tenant: tenantId, member: formId }, sql, [formId])).rowCount === 1;
    },

    async keepSave(tenantId: string, { formId, saveHashes, etag, now }: LastSave): Promise<void> {
      const values = [formId, saveHashes[0], etag, now, earlier(now, savesKept)];
      await pool.query({ tenant: tenantId, member: formId }, keepSaveSql, values);
    },

    /** Returns the ETag that the form's last save got. Undefined if none of these hashes identifies that save. */
    async findSave(tenantId: string, formId: string, saveHashes: readonly Buffer[]): Promise<string | undefined> {
      const sql = 'SELECT etag FROM apply_saves WHERE form_id = $1 AND save_hash = ANY($2)';
      const values = [formId, saveHashes];
      return (await pool.query<{ etag: string }>({ tenant: tenantId, member: formId }, sql, values)).rows[0]?.etag;
    },
  };
}
