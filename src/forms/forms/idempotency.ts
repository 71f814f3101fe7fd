// Idempotency keys: for 24 hours, a repeated request with the same key and body gets the first response again. A record
// belongs to a tenant, an account and a route. It contains the key and the body only as HMACs. The statement that
// changes the form also writes the record. The deletion of the form deletes the record.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { earlier } from '../../service/clock.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { canonicalJson } from '../../service/json-value.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';

/** Milliseconds for which an idempotency record is valid. */
const idempotencyPeriod = 24 * 60 * 60 * 1000;

/** The scope in which an idempotency key is unique. */
interface Scope {
  tenantId: string;
  issuer: string;
  subject: string;
  /** The method and the path of the request, including the form's id if the path has one. */
  route: string;
}

/** The part of a record that is known before the request is processed. */
export interface IdempotencyClaim extends Scope {
  keyHash: Buffer;
  bodyHash: Buffer;
  /** A record that was created at or before this time may be replaced. */
  expired: Date;
}

export interface IdempotencyRecord extends IdempotencyClaim {
  /** The response body; it contains no applicant information. */
  response: { id: string };
}

/**
 * Creates the claim of a request. `key` is the value of the header Idempotency-Key. Throws 400 unless `key` has 1 to
 * 255 printable ASCII characters.
 */
export function createClaim(
  secret: string,
  key: string,
  { body, now, ...scope }: Scope & { body: unknown; now: Date },
): IdempotencyClaim {
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    const detail = 'must be 1 to 255 printable ASCII characters';
    throw invalidRequest([{ pointer: '/headers/idempotency-key', detail }]);
  }
  const hash = (purpose: string, text: string) => createHmac('sha256', secret).update(`${purpose}\0${text}`).digest();
  return {
    ...scope,
    keyHash: hash('idempotency-key', key),
    bodyHash: hash('idempotency-body', canonicalJson(body)),
    expired: earlier(now, idempotencyPeriod),
  };
}

export type FindResponse = ReturnType<typeof createFindResponse>;

/**
 * Returns a function that finds the first response to a request. It returns undefined if no response is stored or the
 * record has expired, and throws Problem `idempotency-mismatch` if the key was used with another body.
 */
export function createFindResponse(pool: SharedPool) {
  return async ({ tenantId, issuer, subject, route, keyHash, bodyHash, expired }: IdempotencyClaim) => {
    const { rows } = await pool.query<{ body_hash: Buffer; answer: IdempotencyRecord['response'] }>(
      { tenant: tenantId, member: subject },
      `SELECT body_hash, answer FROM idempotency_keys
      WHERE tenant_id = $1 AND issuer = $2 AND subject = $3 AND route = $4 AND key_hash = $5 AND created > $6`,
      [tenantId, issuer, subject, route, keyHash, expired],
    );
    if (!rows[0] || timingSafeEqual(bodyHash, rows[0].body_hash)) return rows[0]?.answer;
    throw new Problem('idempotency-mismatch', 'The idempotency key was used with another body.');
  };
}
