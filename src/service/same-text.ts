// Compares a secret, or a digest made with one, with what a client sent.
import { timingSafeEqual } from 'node:crypto';

/** Takes the same time wherever two texts of equal length differ. */
export function isSameText(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}
