// Finds the code in a configuration: the JSON Schemas and templates that tenants write and this service executes. Each
// piece has its position, so that an edit with unusable code is rejected with a pointer to it.

/** `source` is the text of a template, or a schema as JSON text. `pointer` is its position in the configuration. */
export interface CodePiece {
  kind: 'schema' | 'template';
  pointer: string;
  source: string;
}

/** Finds the pieces of code in the value of a configuration. */
export type FindCode = (value: unknown) => CodePiece[];

/**
 * Returns the pieces that an edit changed. Unchanged pieces are not checked again, so that they cannot block an
 * unrelated change.
 */
export function changedCode(find: FindCode, before: unknown, after: unknown): CodePiece[] {
  const known = new Set(find(before).map(identify));
  return find(after).filter((piece) => !known.has(identify(piece)));
}

const identify = ({ pointer, source }: CodePiece): string => `${pointer}\0${source}`;
