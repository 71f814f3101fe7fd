// Checks texts before they reach Postgres, which stores neither NUL nor lone surrogates.
import { z } from 'zod';

/** Returns why Postgres cannot store the text, or undefined if it can. */
export function unstorable(text: string): string | undefined {
  if (text.includes('\0')) return 'contains a NUL character';
  return text.isWellFormed() ? undefined : 'contains a lone surrogate';
}

/** A text of at most `longest` characters that Postgres can store. */
export const storableText = (longest: number) =>
  z
    .string()
    .max(longest)
    .refine((text) => unstorable(text) === undefined);

/** Returns at most `longest` characters of the text. Replaces what Postgres cannot store with U+FFFD. */
export function storable(text: string, longest: number): string {
  return text.slice(0, longest).toWellFormed().replaceAll('\0', '\ufffd');
}
