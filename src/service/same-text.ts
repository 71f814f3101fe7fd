// Compares a secret, or the digest of a secret, with a text from a client.
import { timingSafeEqual } from 'node:crypto';

/** Takes constant time for texts of equal length. */
export function isSameText(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}
