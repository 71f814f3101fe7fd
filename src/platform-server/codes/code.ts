// Generates, digests and checks one-time codes. The database contains a code only as an HMAC, which also covers the
// destination address. The key of the HMAC is not in the database.
import { createHmac, randomInt, timingSafeEqual } from 'node:crypto';

/** Letters and digits that people seldom confuse with each other. */
export const codeAlphabet = 'CDEHKMPRTUWXY012458';
export const codeLength = 6;
/** Milliseconds for which a code can be used. */
export const codeLifetime = 600_000;
export const maxFailures = 10;

/** The subscriber's address to which a code is sent. */
export interface CodePlace {
  subscriberId: string;
  channel: string;
  address: string;
}

/** The stored record of a code. `digest` is null after the code was used or has failed too often. */
export interface SentCode {
  digest: Buffer | null;
  /** Identifies the check that used the code. Null if the code is unused, or if that check cannot be repeated. */
  verifiedCheck: Buffer | null;
  expires: Date;
  failures: number;
}

/** The outcome of a check. The caller must store it. */
export type CodeCheck = 'verified' | 'repeated' | 'failed' | 'exhausted' | 'dead';

export function generateCode(): string {
  return Array.from({ length: codeLength }, () => codeAlphabet[randomInt(codeAlphabet.length)]).join('');
}

export function digestCode(key: string, { subscriberId, channel, address }: CodePlace, code: string): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([subscriberId, channel, address, code]))
    .digest();
}

/** Returns a digest that identifies a check by its code and its idempotency key. */
export function digestCheck(key: string, codeDigest: Buffer, idempotencyKey: string): Buffer {
  return createHmac('sha256', key).update(codeDigest).update(idempotencyKey).digest();
}

/**
 * Compares the digests in constant time. 'dead': the code was used, has failed too often or has expired. 'exhausted':
 * this was the tenth failure. 'repeated': the same `check` has used the code before. `check` is undefined if the check
 * cannot be repeated.
 */
export function judgeCode(sent: SentCode, given: Buffer, now: Date, check?: Buffer): CodeCheck {
  if (sent.expires <= now) return 'dead';
  if (!sent.digest)
    return sent.verifiedCheck && check && timingSafeEqual(sent.verifiedCheck, check) ? 'repeated' : 'dead';
  if (timingSafeEqual(sent.digest, given)) return 'verified';
  return sent.failures + 1 >= maxFailures ? 'exhausted' : 'failed';
}
