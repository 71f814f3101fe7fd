// Verify codes: how one is made, and what is kept of it. A code is shown once, to the one who sends it; what is stored
// is an HMAC under a key that the database does not hold, over the place it was sent to as well.
import { createHmac, randomInt, timingSafeEqual } from 'node:crypto';

/** Letters and digits that are not mistaken for one another. */
export const codeAlphabet = 'CDEHKMPRTUWXY012458';
export const codeLength = 6;
/** Milliseconds. */
export const codeLifetime = 600_000;
export const maxFailures = 10;

/** Where a code was sent. */
export interface CodePlace {
  subscriberId: string;
  channel: string;
  address: string;
}

/** What is stored of a code that was sent; `digest` is null once it was used or has failed too often. */
export interface SentCode {
  digest: Buffer | null;
  expires: Date;
  failures: number;
}

/** What a check comes to, and what has to be stored of it. */
export type CodeCheck = 'verified' | 'failed' | 'exhausted' | 'dead';

export function generateCode(): string {
  return Array.from({ length: codeLength }, () => codeAlphabet[randomInt(codeAlphabet.length)]).join('');
}

export function digestCode(key: string, { subscriberId, channel, address }: CodePlace, code: string): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([subscriberId, channel, address, code]))
    .digest();
}

/**
 * Compares in constant time. 'dead': there is no code to compare with any more. 'exhausted': this was the tenth failure.
 */
export function judgeCode(sent: SentCode, given: Buffer, now: Date): CodeCheck {
  if (!sent.digest || sent.expires <= now) return 'dead';
  if (timingSafeEqual(sent.digest, given)) return 'verified';
  return sent.failures + 1 >= maxFailures ? 'exhausted' : 'failed';
}
