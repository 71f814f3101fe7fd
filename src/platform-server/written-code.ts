// Finds the code in a configuration: the JSON Schemas and templates that tenants write and this service executes. Each
// piece of code has a pointer to its position. If the service rejects an edit, the response contains this pointer.

/** `source` is the text of a template, or a schema as JSON text. `pointer` is its position in the configuration. */
export interface CodePiece {
  kind: 'schema' | 'template';
  pointer: string;
  source: string;
}

/** Finds the pieces of code in the value of a configuration, one after another. */
export type FindCode = (value: unknown) => Iterable<CodePiece>;

/** Maximum number of pieces of code in a configuration. Each edit goes through all of them. */
export const mostWritten = 10_000;

/**
 * Returns the pieces of code that an edit changed. Unchanged pieces are not checked again, so an error in them does not
 * block an unrelated change. Returns undefined if the configuration has more than `mostWritten` pieces of code.
 */
export function changedCode(find: FindCode, before: unknown, after: unknown): CodePiece[] | undefined {
  const written = Iterator.from(find(after))
    .take(mostWritten + 1)
    .toArray();
  if (written.length > mostWritten) return undefined;
  const known = new Set(Iterator.from(find(before)).take(mostWritten).map(identify));
  return written.filter((piece) => !known.has(identify(piece)));
}

const identify = ({ pointer, source }: CodePiece): string => `${pointer}\0${source}`;
