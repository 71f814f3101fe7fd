// Finds out that a list of another service would never end, because the service repeats a cursor or always returns
// another page.

/** Maximum number of pages of one list. */
const mostPages = 1_000;

/**
 * Returns a function for one list. Pass it the cursor of each next page. It returns what is wrong with the list, or
 * undefined.
 */
export function createCursorCheck(): (cursor: string) => string | undefined {
  const seen = new Set<string>();
  return (cursor) => {
    if (seen.has(cursor)) return 'it repeated a cursor';
    seen.add(cursor);
    return seen.size < mostPages ? undefined : 'it has too many pages';
  };
}
