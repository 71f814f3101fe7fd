// Stores the digests of sent codes in Postgres. The row of a code remains after the code has expired or was used. The
// row distinguishes such a code from a code that was never sent.
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { CodePlace, SentCode } from './code.ts';

const matchesAddress = 'subscriber_id = $1 AND channel = $2 AND address = $3';
const values = ({ subscriberId, channel, address }: CodePlace): unknown[] => [subscriberId, channel, address];

export function createCodeStore(database: Queryable) {
  return {
    /** Stores the digest of a new code in place of the previous one, and resets the number of failures. */
    async replace(to: CodePlace, digest: Buffer, expires: Date): Promise<void> {
      await database.query(
        `INSERT INTO codes (subscriber_id, channel, address, digest, expires) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (subscriber_id, channel, address) DO UPDATE SET digest = $4, expires = $5, failures = 0,
           verified_check = NULL`,
        [...values(to), digest, expires],
      );
    },

    /**
     * Stores `former` in place of the code with this digest. Deletes the row if there was no former code. Changes
     * nothing if the code was replaced or used in the meantime.
     */
    async restore(at: CodePlace, digest: Buffer, former: SentCode | undefined): Promise<void> {
      if (!former) {
        await database.query(`DELETE FROM codes WHERE ${matchesAddress} AND digest = $4`, [...values(at), digest]);
        return;
      }
      await database.query(
        `UPDATE codes SET digest = $5, expires = $6, failures = $7, verified_check = $8
         WHERE ${matchesAddress} AND digest = $4`,
        [...values(at), digest, former.digest, former.expires, former.failures, former.verifiedCheck],
      );
    },

    /**
     * Locks and returns the code of an address. Returns undefined if no code was ever sent to the address. Requires a
     * transaction.
     */
    async lock(at: CodePlace): Promise<SentCode | undefined> {
      const { rows } = await database.query<SentCode>(
        `SELECT digest, verified_check AS "verifiedCheck", expires, failures FROM codes WHERE ${matchesAddress} FOR UPDATE`,
        values(at),
      );
      return rows[0];
    },

    /** Makes a code void. `check` identifies the check that used the code, if that check can be repeated. */
    async end(at: CodePlace, check?: Buffer): Promise<void> {
      await database.query(`UPDATE codes SET digest = NULL, verified_check = $4 WHERE ${matchesAddress}`, [
        ...values(at),
        check,
      ]);
    },

    async countFailure(at: CodePlace): Promise<void> {
      await database.query(`UPDATE codes SET failures = failures + 1 WHERE ${matchesAddress}`, values(at));
    },
  };
}
