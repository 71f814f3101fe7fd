// What a configuration holds that this process executes: JSON Schemas and templates that tenants write. It says where they
// stand, so that they can be checked when they are written.

/** `source` is a template's text or a schema as JSON text; `pointer` leads to it in the configuration. */
export interface CodePiece {
  kind: 'schema' | 'template';
  pointer: string;
  source: string;
}

/** The pieces of a configuration's value. */
export type FindCode = (value: unknown) => CodePiece[];

/** The pieces that an edit changed: what was accepted before must not stand in the way of another change. */
export function changedCode(find: FindCode, before: unknown, after: unknown): CodePiece[] {
  const known = new Set(find(before).map(identify));
  return find(after).filter((piece) => !known.has(identify(piece)));
}

const identify = ({ pointer, source }: CodePiece): string => `${pointer}\0${source}`;
