// Finds out which answers are required because of other answers: by conditions (`if`, `then`, `else`), and by
// dependencies between members.
import { dereferenced } from './elements.ts';
import type { Field } from './fields.ts';
import { isObject, type JsonObject } from './json.ts';
import { matches } from './validator.ts';

/** True if the answer of the field is required always, or because of the current data. */
export function isRequiredNow({ isRequired, path, place: { root } }: Field, data: unknown): boolean {
  const name = path.at(-1);
  if (isRequired || name === undefined) return isRequired;
  let value = isObject(data) ? data : {};
  let schemas = schemasOfForm(root, value);
  for (const part of path.slice(0, -1)) {
    const inner: unknown = Reflect.get(value, part);
    const next = isObject(inner) || Array.isArray(inner) ? (inner as JsonObject) : {};
    schemas = schemas.flatMap((schema) => activeSchemas(partOf(schema, part), next, root));
    value = next;
  }
  return schemas.some((schema) => requiredBy(schema, value).includes(name));
}

/** The active schemas of the whole form, by its schema and its data. */
const known = new WeakMap<JsonObject, WeakMap<JsonObject, JsonObject[]>>();

/** The schemas of the whole form, which all of its fields ask for. Data never changes: a change is another object. */
function schemasOfForm(root: JsonObject, data: JsonObject): JsonObject[] {
  const ofForm = known.get(root) ?? new WeakMap<JsonObject, JsonObject[]>();
  known.set(root, ofForm);
  const schemas = ofForm.get(data) ?? activeSchemas(root, data, root);
  ofForm.set(data, schemas);
  return schemas;
}

const partOf = ({ properties, items }: JsonObject, name: string): unknown =>
  isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : items;

/** Returns the schema itself, and those that apply together with it under the current conditions. */
function activeSchemas(given: unknown, value: JsonObject, root: JsonObject, depth = 0): JsonObject[] {
  if (!isObject(given) || depth > 20) return [];
  // With any `type`, this only follows the reference, and merges nothing.
  const schema = dereferenced({ type: '', ...given }, root) ?? {};
  const branch = isKnown(schema.if) ? (matches(schema.if, value, root) ? schema.then : schema.else) : undefined;
  const all = Array.isArray(schema.allOf) ? schema.allOf : [];
  const more = [...all, branch, ...dependents(schema, value)];
  return [schema, ...more.flatMap((other) => activeSchemas(other, value, root, depth + 1))];
}

/** False for a missing condition, and for one with references to anything but the definitions of the schema. */
const isKnown = (condition: unknown) =>
  condition !== undefined && !/"\$ref":"(?!#\/(definitions|\$defs)\/)/.test(JSON.stringify(condition));

/** What the schema says for each member that is present: a list of required members, or a schema. */
function dependents({ dependencies, dependentRequired, dependentSchemas }: JsonObject, value: JsonObject): unknown[] {
  return [dependencies, dependentRequired, dependentSchemas]
    .flatMap((said) => (isObject(said) ? Object.entries(said) : []))
    .flatMap(([name, consequence]) => (value[name] === undefined ? [] : [consequence]));
}

function requiredBy(schema: JsonObject, value: JsonObject): unknown[] {
  const lists = [schema.required, ...dependents(schema, value)].filter(Array.isArray);
  return lists.flat();
}
