import { z } from 'zod';

/**
 * The schema of a number in a path or query. Unlike `z.coerce.number`, it does not read a blank text as 0, or accept other
 * notations, such as `0x10`.
 */
export function numberInUrl<S extends z.ZodNumber>(schema: S) {
  return z.preprocess((text) => (typeof text === 'string' && /^\d+$/.test(text) ? Number(text) : text), schema);
}
