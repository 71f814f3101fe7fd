// The schema of numbers in paths and queries, if 0 is one of the allowed values.
import { z } from 'zod';

/**
 * Reads the digits of a number. Unlike `z.coerce.number`, it does not read a blank text as 0, and accepts no other
 * notation, such as `0x10`.
 */
export function numberInUrl<S extends z.ZodNumber>(schema: S) {
  return z.preprocess((text) => (typeof text === 'string' && /^\d+$/.test(text) ? Number(text) : text), schema);
}
