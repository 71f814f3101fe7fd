// Keeps the budgets of codes and the read sessions that codes open. A try or a send is reserved under a lock before
// anybody is asked, so that requests at the same time cannot exceed a budget together. It knows hashes only.
//
// Order of locks: the advisory locks, then the form's row, then the rows of its codes. A delete takes the last two in the
// same order, because Postgres removes the rows of codes after the form's row.
import type pg from 'pg';
import { Problem } from '../../service/http/problem.ts';
import type { Claim } from '../../service/limits/fair-queue.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import {
  type Account,
  abandoned,
  type BudgetKeys,
  hour,
  lockKeys,
  readSession,
  sendWait,
  tryWait,
  wrongLimit,
} from './code.ts';

export interface CodeTry extends BudgetKeys, Account {
  codeHash: Buffer;
  now: Date;
}

export type TryReservation =
  /** The code may be checked; the outcome settles the reservation. */
  | { outcome: 'reserved'; id: string }
  /** The code has a read session for this account already. */
  | { outcome: 'session' }
  /** It was used: by another account, or its session is over. */
  | { outcome: 'used' }
  /** The same account is checking the same code at this moment. */
  | { outcome: 'underway' }
  | { outcome: 'spent'; waitMs: number };

export interface CodeStore {
  reserveTry(attempt: CodeTry): Promise<TryReservation>;
  /** The code was right: opens the session. False when another account has used the code meanwhile. */
  settleRight(id: string, attempt: CodeTry): Promise<boolean>;
  /** The code was wrong; the fifth ends the form's sessions. True when this account has opened a session meanwhile. */
  settleWrong(id: string, attempt: CodeTry): Promise<boolean>;
  /** Nobody could say whether the code was right. */
  refundTry(id: string, keys: BudgetKeys): Promise<void>;
  hasSession(session: { tenantId: string; formId: string; account: Account; now: Date }): Promise<boolean>;

  /** The reservation's id, or the milliseconds to wait. */
  reserveSend(keys: BudgetKeys, now: Date): Promise<{ id: string } | { waitMs: number }>;
  /** The code was not sent. */
  refundSend(id: string, keys: BudgetKeys): Promise<void>;
}

export function createCodeStore(pool: SharedPool): CodeStore {
  /** Runs `work` while nobody else counts or reserves for this form or this address, in any replica. */
  function exclusively<T>(keys: BudgetKeys, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    return pool.transaction(claimOf(keys), async (client) => {
      for (const key of lockKeys(keys)) await client.query('SELECT pg_advisory_xact_lock($1)', [key]);
      await client.query(keepFormSql, [keys.formId]);
      return work(client);
    });
  }

  return {
    reserveTry: (attempt) => exclusively(attempt, (client) => reserveTry(client, attempt)),
    settleRight(id, attempt) {
      const { formId, codeHash, issuer, subject, now } = attempt;
      const until = new Date(now.getTime() + readSession);
      return pool.transaction(claimOf(attempt), async (client) => {
        await client.query(keepFormSql, [formId]);
        const values = [id, formId, codeHash, issuer, subject, until, now];
        const { rows } = await client.query<{ mine: boolean }>(rightSql, values);
        return rows[0]?.mine ?? false;
      });
    },
    settleWrong: (id, attempt) => exclusively(attempt, (client) => settleWrong(client, id, attempt)),
    async refundTry(id, keys) {
      await pool.query(claimOf(keys), 'DELETE FROM code_attempts WHERE id = $1', [id]);
    },
    async hasSession({ tenantId, formId, account, now }) {
      const { rowCount } = await pool.query(
        claimOf({ tenantId, formId }),
        'SELECT FROM used_codes WHERE form_id = $1 AND issuer = $2 AND subject = $3 AND session_until > $4 LIMIT 1',
        [formId, account.issuer, account.subject, now],
      );
      return rowCount === 1;
    },
    reserveSend: (keys, now) => exclusively(keys, (client) => reserveSend(client, keys, now)),
    async refundSend(id, keys) {
      await pool.query(claimOf(keys), 'DELETE FROM code_sends WHERE id = $1', [id]);
    },
  };
}

function claimOf({ tenantId, formId }: Pick<BudgetKeys, 'tenantId' | 'formId'>): Claim {
  return { tenant: tenantId, member: formId };
}

interface TryRow {
  attempted: Date;
  wrong: boolean;
  of_form: boolean;
  of_address: boolean;
  same: boolean;
}

async function reserveTry(client: pg.PoolClient, attempt: CodeTry): Promise<TryReservation> {
  const { formId, addressHash, codeHash, issuer, subject, now } = attempt;
  const used = await findUsed(client, attempt);
  if (used?.open) return { outcome: 'session' };
  const { rows } = await client.query<TryRow>(triesSql, [
    formId,
    addressHash,
    before(now, hour),
    codeHash,
    issuer,
    subject,
    before(now, abandoned),
  ]);
  const ofForm = tryWait(
    rows.filter((row) => row.of_form),
    now,
  );
  const ofAddress = tryWait(
    rows.filter((row) => row.of_address),
    now,
  );
  if (rows.some((row) => row.same)) return { outcome: 'underway' };
  if (ofForm > 0 || ofAddress > 0) return { outcome: 'spent', waitMs: Math.max(ofForm, ofAddress) };
  if (used) return { outcome: 'used' };
  const inserted = await client.query<{ id: string }>(
    `INSERT INTO code_attempts (form_id, address_hash, code_hash, issuer, subject, attempted)
    SELECT id, $2, $3, $4, $5, $6 FROM forms WHERE id = $1 RETURNING id`,
    [formId, addressHash, codeHash, issuer, subject, now],
  );
  await client.query(sweepSql('code_attempts', 'attempted'), [before(now, hour)]);
  return { outcome: 'reserved', id: idOf(inserted) };
}

async function settleWrong(client: pg.PoolClient, id: string, attempt: CodeTry): Promise<boolean> {
  const used = await findUsed(client, attempt);
  if (used?.open) {
    await client.query('DELETE FROM code_attempts WHERE id = $1', [id]);
    return true;
  }
  await client.query('UPDATE code_attempts SET wrong = true WHERE id = $1', [id]);
  const { rows } = await client.query<{ wrong: number }>(
    'SELECT count(*)::int AS wrong FROM code_attempts WHERE form_id = $1 AND wrong AND attempted > $2',
    [attempt.formId, before(attempt.now, hour)],
  );
  // The form's codes are void from here on, those that have opened a session included.
  if ((rows[0]?.wrong ?? 0) >= wrongLimit)
    await client.query('UPDATE used_codes SET session_until = $2 WHERE form_id = $1 AND session_until > $2', [
      attempt.formId,
      attempt.now,
    ]);
  return false;
}

async function findUsed(client: pg.PoolClient, { formId, codeHash, issuer, subject, now }: CodeTry) {
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
    [formId, addressHash, before(now, hour)],
  );
  const times = (part: 'of_form' | 'of_address') => rows.filter((row) => row[part]).map(({ sent }) => sent);
  const waitMs = Math.max(sendWait(times('of_form'), now), sendWait(times('of_address'), now));
  if (waitMs > 0) return { waitMs };
  const inserted = await client.query<{ id: string }>(
    'INSERT INTO code_sends (form_id, address_hash, sent) SELECT id, $2, $3 FROM forms WHERE id = $1 RETURNING id',
    [formId, addressHash, now],
  );
  await client.query(sweepSql('code_sends', 'sent'), [before(now, hour)]);
  return { id: idOf(inserted) };
}

/** Nothing is reserved for a form that was deleted after it was looked up. */
function idOf({ rows }: pg.QueryResult<{ id: string }>): string {
  if (!rows[0]) throw new Problem('gone', 'The form was deleted.');
  return rows[0].id;
}

function before(moment: Date, milliseconds: number): Date {
  return new Date(moment.getTime() - milliseconds);
}

/** Keeps the form from being deleted until the transaction ends; saves go on. */
const keepFormSql = 'SELECT FROM forms WHERE id = $1 FOR KEY SHARE';

/** $1 form, $2 address, $3 an hour ago, $4 code, $5 issuer, $6 subject, $7 when an unfinished try is abandoned. */
const triesSql = `
SELECT attempted, wrong, coalesce(form_id = $1, false) AS of_form, address_hash = $2 AS of_address,
  coalesce(form_id = $1, false) AND NOT wrong AND code_hash = $4 AND issuer = $5 AND subject = $6 AND attempted > $7 AS same
FROM code_attempts
WHERE (form_id = $1 OR address_hash = $2) AND attempted > $3
ORDER BY attempted DESC`;

/** $1 reservation, $2 form, $3 code, $4 issuer, $5 subject, $6 end of the session, $7 now. */
const rightSql = `
WITH settled AS (
  DELETE FROM code_attempts WHERE id = $1
), opened AS (
  INSERT INTO used_codes (form_id, code_hash, issuer, subject, session_until)
  SELECT id, $3, $4, $5, $6 FROM forms WHERE id = $2
  ON CONFLICT (form_id, code_hash) DO NOTHING
  RETURNING true AS mine
)
SELECT mine FROM opened
UNION ALL
SELECT issuer = $4 AND subject = $5 AND session_until > $7 FROM used_codes WHERE form_id = $2 AND code_hash = $3
LIMIT 1`;

/** Rows that no budget counts any more, a few at a time, with the writes that come anyway. */
const sweepSql = (table: string, column: string) => `
DELETE FROM ${table} WHERE id IN (
  SELECT id FROM ${table} WHERE ${column} <= $1 ORDER BY ${column} LIMIT 100 FOR UPDATE SKIP LOCKED)`;
