// Rewrites data schemas as the public platform's form service does, so that definitions which work there work here: from
// draft 4 to draft 7, and without the placeholder `enum: [""]` of choices whose options come from a register.
import { type SchemaObject, visitSchemas } from './schema-tree.ts';

const draft4 = /^https?:\/\/json-schema\.org\/draft-04\/schema#?$/;

/** Returns a copy without `$schema`. */
export function portableSchema({ $schema, ...schema }: SchemaObject): SchemaObject {
  const isDraft4 = typeof $schema === 'string' && draft4.test($schema);
  const copy = structuredClone(schema);
  visitSchemas(copy, (inner, { isUnconditional }) => {
    if (isDraft4) migrate(inner);
    // In a condition, the same enum means that the value is empty.
    if (isUnconditional && isPlaceholder(inner.enum)) delete inner.enum;
  });
  return copy;
}

function isPlaceholder(values: unknown): boolean {
  return Array.isArray(values) && values.length === 1 && values[0] === '';
}

/** Draft 4 has `id`, and the exclusive bounds are flags beside `minimum` and `maximum`. */
function migrate(schema: SchemaObject): void {
  if (typeof schema.id === 'string') {
    schema.$id = schema.id;
    delete schema.id;
  }
  migrateBound(schema, 'minimum', 'exclusiveMinimum');
  migrateBound(schema, 'maximum', 'exclusiveMaximum');
}

function migrateBound(schema: SchemaObject, bound: string, exclusive: string): void {
  if (typeof schema[exclusive] !== 'boolean') return;
  const isExclusive = schema[exclusive];
  delete schema[exclusive];
  if (!isExclusive || schema[bound] === undefined) return;
  schema[exclusive] = schema[bound];
  delete schema[bound];
}
