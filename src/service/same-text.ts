// Compares a secret, or the digest of a secret, with a text from a client.
import { timingSafeEqual } from 'node:crypto';

/** Takes the same time for all given texts of the expected length. */
export function isSameText(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}
