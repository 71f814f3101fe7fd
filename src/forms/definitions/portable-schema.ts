// Rewrites data schemas in the same way as the public platform's form service, so that the definitions of that platform
// also work here. Draft 4 becomes draft 7. If the options of a choice come from a register, the choice has the
// placeholder `enum: [""]`, which is removed.
import { type SchemaObject, visitSchemas } from './schema-tree.ts';

const draft4 = /^https?:\/\/json-schema\.org\/draft-04\/schema#?$/;

/** Returns a rewritten copy, without `$schema`. */
export function portableSchema({ $schema, ...schema }: SchemaObject): SchemaObject {
  const isDraft4 = typeof $schema === 'string' && draft4.test($schema);
  const copy = structuredClone(schema);
  visitSchemas(copy, (inner, { isUnconditional }) => {
    if (isDraft4) migrate(inner);
    // In a condition, `enum: [""]` is not a placeholder: it requires that the value is empty.
    if (isUnconditional && isPlaceholder(inner.enum)) delete inner.enum;
  });
  return copy;
}

function isPlaceholder(values: unknown): boolean {
  return Array.isArray(values) && values.length === 1 && values[0] === '';
}

/** In draft 4, `$id` is called `id`, and the exclusive bounds are flags beside `minimum` and `maximum`. */
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
