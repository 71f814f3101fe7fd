// Sent codes in Postgres, as digests. The row stays when a code is over, so that "none was sent" can be told apart.
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { CodePlace, SentCode } from './code.ts';

const place = 'subscriber_id = $1 AND channel = $2 AND address = $3';
const values = ({ subscriberId, channel, address }: CodePlace): unknown[] => [subscriberId, channel, address];

export function createCodeStore(database: Queryable) {
  return {
    /** Replaces the code that was sent before, its failures included. */
    async replace(to: CodePlace, digest: Buffer, expires: Date): Promise<void> {
      await database.query(
        `INSERT INTO codes (subscriber_id, channel, address, digest, expires) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (subscriber_id, channel, address) DO UPDATE SET digest = $4, expires = $5, failures = 0`,
        [...values(to), digest, expires],
      );
    },

    /** Takes the code of a place; undefined when none was ever sent there. Only inside a transaction. */
    async lock(at: CodePlace): Promise<SentCode | undefined> {
      const { rows } = await database.query<SentCode>(
        `SELECT digest, expires, failures FROM codes WHERE ${place} FOR UPDATE`,
        values(at),
      );
      return rows[0];
    },

    async end(at: CodePlace): Promise<void> {
      await database.query(`UPDATE codes SET digest = NULL WHERE ${place}`, values(at));
    },

    async countFailure(at: CodePlace): Promise<void> {
      await database.query(`UPDATE codes SET failures = failures + 1 WHERE ${place}`, values(at));
    },
  };
}
