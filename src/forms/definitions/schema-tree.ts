// Visits the subschemas of a JSON Schema. One list of keywords serves all drafts from 4 to 2020-12: later drafts add
// keywords with subschemas, but do not change the meaning of existing ones.
import { isObject } from '../../service/json-value.ts';

export type SchemaObject = Record<string, unknown>;

export interface SchemaPlace {
  /** Member names and array indexes that lead from the root to the subschema. */
  path: readonly string[];
  /**
   * True if every value at this place must match the subschema. False below any condition or combination, such as `if`,
   * `not`, `anyOf` or `allOf`.
   */
  isUnconditional: boolean;
}

const holdsSchema = new Set([
  ...['additionalItems', 'additionalProperties', 'contains', 'contentSchema', 'else', 'if', 'items', 'not'],
  ...['propertyNames', 'then', 'unevaluatedItems', 'unevaluatedProperties'],
]);
const holdsList = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']);
const holdsMap = new Set([
  ...['$defs', 'definitions', 'dependencies', 'dependentSchemas', 'patternProperties', 'properties'],
]);
const unconditional = new Set([
  ...['$defs', 'additionalProperties', 'definitions', 'items', 'patternProperties', 'prefixItems', 'properties'],
]);

/** Calls `visit` for the schema and each of its subschemas, outer schemas first. Boolean schemas are not visited. */
export function visitSchemas(
  schema: unknown,
  visit: (schema: SchemaObject, place: SchemaPlace) => void,
  place: SchemaPlace = { path: [], isUnconditional: true },
): void {
  if (!isObject(schema)) return;
  visit(schema, place);
  for (const [keyword, value] of Object.entries(schema)) {
    const isUnconditional = place.isUnconditional && unconditional.has(keyword);
    const into = (inner: unknown, ...path: string[]) =>
      visitSchemas(inner, visit, { path: [...place.path, keyword, ...path], isUnconditional });
    if (Array.isArray(value)) {
      if (holdsList.has(keyword)) for (const [index, inner] of value.entries()) into(inner, String(index));
    } else if (holdsSchema.has(keyword)) into(value);
    else if (holdsMap.has(keyword) && isObject(value))
      for (const [name, inner] of Object.entries(value)) into(inner, name);
  }
}
