// Idempotency keys: a request with the same key and body gets the first response again, for 24 hours. A record belongs to
// a tenant, an account and a route. It holds the key and the body as HMACs only, and is deleted with its form. Pure.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { canonicalJson } from '../../service/json-value.ts';

/** Milliseconds that a record is valid. */
const idempotencyPeriod = 24 * 60 * 60 * 1000;

/** What a record belongs to. */
export interface IdempotencyScope {
  tenantId: string;
  issuer: string;
  subject: string;
  /** The method and the path, with the form's id if there is one. */
  route: string;
  keyHash: Buffer;
}

/** A record as the statement of the change writes it. */
export interface IdempotencyRecord extends IdempotencyScope {
  bodyHash: Buffer;
  /** The response body; it holds no applicant information. */
  answer: object;
  /** Records from this moment or before may be replaced. */
  expired: Date;
}

/** The part of a record that the request alone determines. */
export type IdempotencyClaim = Omit<IdempotencyRecord, 'answer'>;

export interface IdempotentRequest {
  tenantId: string;
  issuer: string;
  subject: string;
  route: string;
  body: unknown;
  now: Date;
}

/** Undefined without the header. A key is 1 to 255 printable ASCII characters. */
export function parseIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (/^[\x20-\x7e]{1,255}$/.test(header)) return header;
  throw invalidRequest([
    { pointer: '/headers/idempotency-key', detail: 'must be 1 to 255 printable ASCII characters' },
  ]);
}

export function createClaim(secret: string, key: string, { body, now, ...scope }: IdempotentRequest): IdempotencyClaim {
  const hash = (purpose: string, text: string) => createHmac('sha256', secret).update(`${purpose}\0${text}`).digest();
  return {
    ...scope,
    keyHash: hash('idempotency-key', key),
    bodyHash: hash('idempotency-body', canonicalJson(body)),
    expired: new Date(now.getTime() - idempotencyPeriod),
  };
}

/** The first response. Throws Problem `idempotency-mismatch` when the key was used with another body. */
export function replay(claim: IdempotencyClaim, found: { bodyHash: Buffer; answer: object }): object {
  if (timingSafeEqual(claim.bodyHash, found.bodyHash)) return found.answer;
  throw new Problem('idempotency-mismatch', 'The idempotency key was used with another body.');
}
