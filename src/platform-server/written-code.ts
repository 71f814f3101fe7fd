// Finds the code in a configuration: the JSON Schemas and templates that tenants write and this service executes. Each
// piece of code has a pointer to its position, which the response contains if the service rejects an edit.

/** `source` is the text of a template, or a schema as JSON text. `pointer` is its position in the configuration. */
export interface CodePiece {
  kind: 'schema' | 'template';
  pointer: string;
  source: string;
}

/** Finds the pieces of code in the value of a configuration. */
export type FindCode = (value: unknown) => CodePiece[];

/**
 * Returns the pieces of code that an edit changed. Unchanged pieces are not checked again, so an error in them does not
 * block an unrelated change.
 */
export function changedCode(find: FindCode, before: unknown, after: unknown): CodePiece[] {
  const known = new Set(find(before).map(identify));
  return find(after).filter((piece) => !known.has(identify(piece)));
}

const identify = ({ pointer, source }: CodePiece): string => `${pointer}\0${source}`;
