// Finds idempotency records. They are written by the statements that do the work they answer for.
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { IdempotencyClaim } from './idempotency.ts';

export interface IdempotencyStore {
  /** A record that has not expired. */
  find(claim: IdempotencyClaim): Promise<{ bodyHash: Buffer; answer: object } | undefined>;
}

export function createIdempotencyStore(pool: SharedPool): IdempotencyStore {
  return {
    async find({ tenantId, issuer, subject, route, keyHash, expired }) {
      const { rows } = await pool.query<{ bodyHash: Buffer; answer: object }>(
        { tenant: tenantId, member: subject },
        `SELECT body_hash AS "bodyHash", answer FROM idempotency_keys
        WHERE tenant_id = $1 AND issuer = $2 AND subject = $3 AND route = $4 AND key_hash = $5 AND created > $6`,
        [tenantId, issuer, subject, route, keyHash, expired],
      );
      return rows[0];
    },
  };
}
