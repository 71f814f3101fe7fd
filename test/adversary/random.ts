// Generates random choices from a seed: the same seed and the same calls give the same choices.
import { createHash } from 'node:crypto';

export interface Random {
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  fraction(): number;
  /** Returns an integer from `min` to `max`, both inclusive. */
  integer(min: number, max: number): number;
  chance(probability: number): boolean;
  pick<T>(values: readonly T[]): T;
  shuffle<T>(values: readonly T[]): T[];
  bytes(length: number): Buffer;
  /** Returns a text of `length` lower-case letters and digits. */
  word(length: number): string;
}

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';

export function createRandom(seed: string): Random {
  const next = sfc32(createHash('sha256').update(seed).digest());
  const fraction = () => next() / 2 ** 32;
  const integer = (min: number, max: number) => min + Math.floor(fraction() * (max - min + 1));
  return {
    fraction,
    integer,
    chance: (probability) => fraction() < probability,
    pick(values) {
      const value = values[integer(0, values.length - 1)];
      if (value === undefined) throw new Error('there is nothing to pick from');
      return value;
    },
    shuffle(values) {
      const left = [...values];
      return values.flatMap(() => left.splice(integer(0, left.length - 1), 1));
    },
    bytes: (length) => Buffer.from(Array.from({ length }, () => next() & 0xff)),
    word: (length) => Array.from({ length }, () => letters[integer(0, letters.length - 1)]).join(''),
  };
}

/** PractRand's sfc32: small, fast, and good enough for test data. */
function sfc32(seed: Buffer): () => number {
  let [a, b, c, counter] = [0, 4, 8, 12].map((offset) => seed.readInt32LE(offset)) as [number, number, number, number];
  return () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    c |= 0;
    return sum >>> 0;
  };
}
