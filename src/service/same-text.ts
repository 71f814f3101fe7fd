// Compares a secret, or the digest of a secret, with a text from a client.
import { timingSafeEqual } from 'node:crypto';

/** True if the texts are equal. Takes the same time for every `given` text of the expected length. */
export function isSameText(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}
