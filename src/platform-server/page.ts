// Builds pages of a list: `{results, page: {after, next, size}}`. Clients must not interpret a cursor. A cursor
// contains the key of the last element of the previous page instead of an offset, so that no element is skipped or
// repeated if the list changes.
import { z } from 'zod';
import { inspectJson } from '../service/json-parser.ts';

export interface Page<T> {
  results: T[];
  page: { after: string | null; next: string | null; size: number; total?: number };
}

function encodeCursor(last: string | number): string {
  return Buffer.from(JSON.stringify([last])).toString('base64url');
}

/** Parses a query parameter that contains a cursor of this service. Returns undefined if the parameter is absent. */
export function cursor<T extends z.ZodType>(last: T) {
  return z
    .string()
    .max(1_000)
    .transform((text, context): z.output<T> => {
      const parsed = z.tuple([last]).safeParse(parseJson(Buffer.from(text, 'base64url').toString()));
      if (!parsed.success) {
        context.addIssue('is not a cursor of this list');
        return z.NEVER;
      }
      return parsed.data[0] as z.output<T>;
    })
    .optional();
}

export function top(defaultValue: number, max: number) {
  return z.coerce.number().int().min(1).max(max).default(defaultValue);
}

/**
 * Parses a query parameter that contains JSON, and checks it with a schema. Returns undefined if the parameter is
 * absent.
 */
export function jsonParameter<T extends z.ZodType>(schema: T) {
  return z
    .string()
    .transform((text, context): z.output<T> => {
      const parsed = schema.safeParse(parseJson(text));
      if (parsed.success) return parsed.data;
      context.addIssue('must be JSON of the documented shape');
      return z.NEVER;
    })
    .optional();
}

/** Description of the routes whose lists `pageSql` reads. */
export const shortPages =
  'A page may end before `top` items, so that its values have at most 8 MiB. The list ends when `page.next` is null.';

interface PageOptions<T> {
  hasMore: boolean;
  after: string | number | undefined;
  cursorOf(row: T): string | number;
  total?: number;
}

export function toPage<T>(results: T[], options: PageOptions<T>): Page<T> {
  const last = results.at(-1);
  return {
    results,
    page: {
      after: options.after === undefined ? null : encodeCursor(options.after),
      next: options.hasMore && last !== undefined ? encodeCursor(options.cursorOf(last)) : null,
      size: results.length,
      ...(options.total !== undefined && { total: options.total }),
    },
  };
}

/**
 * Parses JSON. Returns undefined if the text is malformed, or contains a value that `inspectJson` reports as an error,
 * such as a text with NUL, which Postgres cannot store.
 */
function parseJson(text: string): unknown {
  try {
    const { value, errorCount } = inspectJson(text);
    return errorCount === 0 ? value : undefined;
  } catch {
    return undefined;
  }
}
