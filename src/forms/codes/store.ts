// Stores the budgets of codes and the read sessions that codes open. Each attempt and each send is reserved under a
// lock before the notification service is called. Concurrent requests therefore cannot together exceed a budget. Codes
// and addresses are stored only as hashes.
//
// Locks are taken in this order: the advisory locks, the form's row, the rows of its codes. The deletion of a form also
// locks the form's row first, because Postgres deletes the rows of its codes through a foreign key.
import type pg from 'pg';
import { earlier, later } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Requester } from '../../service/limits/fair-queue.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import {
  type Account,
  abandoned,
  attemptWait,
  type BudgetKeys,
  hour,
  lockKeys,
  readSession,
  sendWait,
  wrongLimit,
} from './code.ts';

export interface CodeAttempt extends BudgetKeys, Account {
  codeHash: Buffer;
  now: Date;
}

export type AttemptReservation =
  /**
   * The caller may check the code, and must then settle the reservation with the result. If an earlier check of the
   * same code has an unknown outcome, `id` is the id of its reservation, and `isRepeated` is true.
   */
  | { outcome: 'reserved'; id: string; isRepeated: boolean }
  /** The code already has a read session for this account. */
  | { outcome: 'session' }
  /** Another account has used the code, or the code's read session is over. */
  | { outcome: 'used' }
  /** The same account is checking the same code in another request. */
  | { outcome: 'underway' }
  | { outcome: 'spent'; waitMs: number };

export type CodeStore = ReturnType<typeof createCodeStore>;

export function createCodeStore(pool: SharedPool) {
  /** Runs `work` while no other request, in any pod, counts or reserves codes for this form or this address. */
  function exclusively<T>(keys: BudgetKeys, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    return pool.transaction(requesterOf(keys), async (client) => {
      for (const key of lockKeys(keys)) await client.query('SELECT pg_advisory_xact_lock($1)', [key]);
      await keepForm(client, keys.formId);
      return work(client);
    });
  }

  return {
    reserveAttempt: (attempt: CodeAttempt): Promise<AttemptReservation> =>
      exclusively(attempt, (client) => reserveAttempt(client, attempt)),

    /**
     * Settles an attempt with a correct code: opens a read session. Returns false if another account has used the code.
     */
    settleRight(id: string, attempt: CodeAttempt): Promise<boolean> {
      const { formId, codeHash, issuer, subject, now } = attempt;
      const until = later(now, readSession);
      return pool.transaction(requesterOf(attempt), async (client) => {
        await keepForm(client, formId);
        const values = [id, formId, codeHash, issuer, subject, until, now];
        const { rows } = await client.query<{ mine: boolean }>(rightSql, values);
        return rows[0]?.mine ?? false;
      });
    },

    /**
     * Settles an attempt whose code was wrong. The fifth wrong code ends the form's read sessions. Returns true if this
     * account has opened a session with the code since the reservation.
     */
    settleWrong: (id: string, attempt: CodeAttempt): Promise<boolean> =>
      exclusively(attempt, (client) => settleWrong(client, id, attempt)),

    /**
     * Records that it is unknown whether the attempt's code was checked. The attempt counts towards the limit of wrong
     * codes; a retry with the same code is allowed and does not count again.
     */
    async leaveUndecided(id: string, keys: BudgetKeys): Promise<void> {
      await pool.query(requesterOf(keys), 'UPDATE code_attempts SET undecided = true WHERE id = $1', [id]);
    },

    /** Removes an attempt whose code was certainly not checked, so that it does not count. */
    async refundAttempt(id: string, keys: BudgetKeys): Promise<void> {
      await pool.query(requesterOf(keys), 'DELETE FROM code_attempts WHERE id = $1', [id]);
    },

    async hasSession(session: { tenantId: string; formId: string; account: Account; now: Date }): Promise<boolean> {
      const { formId, account, now } = session;
      const { rowCount } = await pool.query(
        requesterOf(session),
        'SELECT FROM used_codes WHERE form_id = $1 AND issuer = $2 AND subject = $3 AND session_until > $4 LIMIT 1',
        [formId, account.issuer, account.subject, now],
      );
      return rowCount === 1;
    },

    /** Reserves a send. Returns the id of the reservation, or the milliseconds to wait if the budget is used up. */
    reserveSend: (keys: BudgetKeys, now: Date): Promise<{ id: string } | { waitMs: number }> =>
      exclusively(keys, (client) => reserveSend(client, keys, now)),

    /** Removes the reservation of a send that failed, so that it does not count. */
    async refundSend(id: string, keys: BudgetKeys): Promise<void> {
      await pool.query(requesterOf(keys), 'DELETE FROM code_sends WHERE id = $1', [id]);
    },
  };
}

function requesterOf({ tenantId, formId }: Pick<BudgetKeys, 'tenantId' | 'formId'>): Requester {
  return { tenant: tenantId, member: formId };
}

interface AttemptRow {
  attempted: Date;
  wrong: boolean;
  of_form: boolean;
  of_address: boolean;
  /** The id of this attempt if its outcome is unknown and the new attempt has the same form and code; else null. */
  repeatable: string | null;
  same: boolean;
}

async function reserveAttempt(client: pg.PoolClient, attempt: CodeAttempt): Promise<AttemptReservation> {
  const { formId, addressHash, codeHash, issuer, subject, now } = attempt;
  const used = await findUsed(client, attempt);
  if (used?.open) return { outcome: 'session' };
  const anHourAgo = earlier(now, hour);
  const values = [formId, addressHash, anHourAgo, codeHash, issuer, subject, earlier(now, abandoned)];
  const { rows } = await client.query<AttemptRow>(attemptsSql, values);
  if (rows.some((row) => row.same)) return { outcome: 'underway' };
  const repeated = rows.find((row) => row.repeatable)?.repeatable;
  const counted = (budget: 'of_form' | 'of_address') => rows.filter((row) => row[budget] && !row.repeatable);
  const waitMs = Math.max(attemptWait(counted('of_form'), now), attemptWait(counted('of_address'), now));
  if (waitMs > 0) return { outcome: 'spent', waitMs };
  if (used) return { outcome: 'used' };
  if (repeated) {
    await client.query(repeatSql, [repeated, issuer, subject, now]);
    return { outcome: 'reserved', id: repeated, isRepeated: true };
  }
  const inserted = await client.query<{ id: string }>(
    `INSERT INTO code_attempts (form_id, address_hash, code_hash, issuer, subject, attempted)
    VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
    [formId, addressHash, codeHash, issuer, subject, now],
  );
  await client.query(sweepSql('code_attempts', 'attempted'), [anHourAgo]);
  return { outcome: 'reserved', id: idOf(inserted), isRepeated: false };
}

async function settleWrong(client: pg.PoolClient, id: string, attempt: CodeAttempt): Promise<boolean> {
  const used = await findUsed(client, attempt);
  if (used?.open) {
    await client.query('DELETE FROM code_attempts WHERE id = $1', [id]);
    return true;
  }
  await client.query('UPDATE code_attempts SET wrong = true WHERE id = $1', [id]);
  const { rows } = await client.query<{ wrong: number }>(
    'SELECT count(*)::int AS wrong FROM code_attempts WHERE form_id = $1 AND wrong AND attempted > $2',
    [attempt.formId, earlier(attempt.now, hour)],
  );
  // The fifth wrong code ends the open read sessions of all codes of the form.
  if ((rows[0]?.wrong ?? 0) >= wrongLimit)
    await client.query('UPDATE used_codes SET session_until = $2 WHERE form_id = $1 AND session_until > $2', [
      attempt.formId,
      attempt.now,
    ]);
  return false;
}

async function findUsed(client: pg.PoolClient, { formId, codeHash, issuer, subject, now }: CodeAttempt) {
  const { rows } = await client.query<{ open: boolean }>(
    `SELECT issuer = $3 AND subject = $4 AND session_until > $5 AS open FROM used_codes
    WHERE form_id = $1 AND code_hash = $2`,
    [formId, codeHash, issuer, subject, now],
  );
  return rows[0];
}

async function reserveSend(client: pg.PoolClient, { formId, addressHash }: BudgetKeys, now: Date) {
  const { rows } = await client.query<{ sent: Date; of_form: boolean; of_address: boolean }>(
    `SELECT sent, coalesce(form_id = $1, false) AS of_form, address_hash = $2 AS of_address FROM code_sends
    WHERE (form_id = $1 OR address_hash = $2) AND sent > $3 ORDER BY sent DESC`,
    [formId, addressHash, earlier(now, hour)],
  );
  const times = (budget: 'of_form' | 'of_address') => rows.filter((row) => row[budget]).map(({ sent }) => sent);
  const waitMs = Math.max(sendWait(times('of_form'), now), sendWait(times('of_address'), now));
  if (waitMs > 0) return { waitMs };
  const inserted = await client.query<{ id: string }>(
    'INSERT INTO code_sends (form_id, address_hash, sent) VALUES ($1, $2, $3) RETURNING id',
    [formId, addressHash, now],
  );
  await client.query(sweepSql('code_sends', 'sent'), [earlier(now, hour)]);
  return { id: idOf(inserted) };
}

/** Returns the id of the only inserted row. */
const idOf = ({ rows }: pg.QueryResult<{ id: string }>): string => rows.map(({ id }) => id).join();

/**
 * Locks the form's row. Until the transaction ends, the form can be saved but not deleted. Throws Problem `gone` if the
 * form was deleted after it was read.
 */
async function keepForm(client: pg.PoolClient, formId: string): Promise<void> {
  const { rowCount } = await client.query('SELECT FROM forms WHERE id = $1 FOR KEY SHARE', [formId]);
  if (rowCount === 0) throw new Problem('gone', 'The form was deleted.');
}

/**
 * $1 form id, $2 address hash, $3 an hour ago, $4 code hash, $5 issuer, $6 subject, $7 a minute ago. Unfinished
 * attempts that began at $7 or earlier are abandoned.
 */
const attemptsSql = `
SELECT attempted, wrong, coalesce(form_id = $1, false) AS of_form, address_hash = $2 AS of_address,
  CASE WHEN form_id = $1 AND NOT wrong AND code_hash = $4 AND (undecided OR attempted <= $7) THEN id END AS repeatable,
  coalesce(form_id = $1, false) AND NOT wrong AND NOT undecided AND code_hash = $4 AND issuer = $5 AND subject = $6
    AND attempted > $7 AS same
FROM code_attempts
WHERE (form_id = $1 OR address_hash = $2) AND attempted > $3
ORDER BY attempted DESC`;

/** $1 reservation id, $2 issuer, $3 subject, $4 now. */
const repeatSql = 'UPDATE code_attempts SET undecided = false, issuer = $2, subject = $3, attempted = $4 WHERE id = $1';

/** $1 reservation id, $2 form id, $3 code hash, $4 issuer, $5 subject, $6 end of the session, $7 now. */
const rightSql = `
WITH settled AS (
  DELETE FROM code_attempts WHERE id = $1
), opened AS (
  INSERT INTO used_codes (form_id, code_hash, issuer, subject, session_until)
  VALUES ($2, $3, $4, $5, $6)
  ON CONFLICT (form_id, code_hash) DO NOTHING
  RETURNING true AS mine
)
SELECT mine FROM opened
UNION ALL
SELECT issuer = $4 AND subject = $5 AND session_until > $7 FROM used_codes WHERE form_id = $2 AND code_hash = $3
LIMIT 1`;

/** Deletes up to 100 rows that no longer count towards a budget. Runs with each write to the table. */
const sweepSql = (table: string, column: string) => `
DELETE FROM ${table} WHERE id IN (
  SELECT id FROM ${table} WHERE ${column} <= $1 ORDER BY ${column} LIMIT 100 FOR UPDATE SKIP LOCKED)`;
