// Validates form data in the browser by interpreting the data schema, because the pages' policy forbids to compile it.
// The form service validates again at submission and is the authority.
import { dereference, format, type OutputUnit, type Schema, validate } from '@cfworker/json-schema';
import { fileUrnCheck, formatChecks } from './formats.ts';
import { isObject, type JsonObject, type Path, pathOf, valueAt } from './json.ts';
import { portableSchema } from './portable-schema.ts';

export interface Finding {
  /** The value that is wrong, missing or not expected. */
  path: Path;
  keyword: string;
  /** The schema that has the keyword; empty if it cannot be found. */
  schema: JsonObject;
}

export type Validator = (data: unknown) => Finding[];

// The validator's own formats differ from those of the form service.
for (const name of Object.keys(format)) delete format[name];
Object.assign(format, formatChecks());

/**
 * References stay within the schema. A schema that cannot be used finds nothing. URNs of files must have the prefix of
 * the platform; rules of the UI schema, which have none, do not check them.
 */
export function createValidator(given: unknown, urnPrefix?: string): Validator {
  const isFileUrn = urnPrefix === undefined ? () => true : fileUrnCheck(urnPrefix);
  const { schema: portable, draft } = portableSchema(given);
  const schema: Schema | boolean = portable;
  let lookup: Record<string, Schema | boolean> | undefined;
  return (data) => {
    try {
      lookup ??= dereference(schema);
      // The library has one table of formats for all validators.
      format['file-urn'] = isFileUrn;
      const { errors } = validate(data, schema, draft, lookup, false);
      return errors.flatMap((error) => findingsOf(error, data, schema, lookup ?? {}));
    } catch {
      return [];
    }
  };
}

const compiled = new WeakMap<object, Validator>();

/** Rules of the UI schema compare single values, of which some are missing. */
export function matches(schema: unknown, value: unknown): boolean {
  if (!isObject(schema)) return schema !== false;
  // The validator knows no missing values. Null differs only in schemas that name it.
  if (value === undefined && JSON.stringify(schema).includes('null')) return false;
  const validator = compiled.get(schema) ?? createValidator(schema);
  compiled.set(schema, validator);
  return validator(value ?? null).length === 0;
}

/** These only say that an inner schema has findings. */
const outer = new Set([
  ...['$ref', '$recursiveRef', 'allOf', 'if', 'items', 'prefixItems', 'additionalItems', 'properties'],
  ...['patternProperties', 'additionalProperties', 'dependentSchemas', 'unevaluatedProperties', 'unevaluatedItems'],
]);

function findingsOf(error: OutputUnit, data: unknown, root: unknown, lookup: Record<string, unknown>): Finding[] {
  const { keyword, instanceLocation, keywordLocation } = error;
  if (outer.has(keyword)) return [];
  const path = pathOf(instanceLocation);
  const location = pathOf(keywordLocation);
  // An item beyond the end is a fault of the list.
  if (keyword === 'false' && Array.isArray(valueAt(data, path.slice(0, -1))))
    return [{ path: path.slice(0, -1), keyword: 'maxItems', schema: {} }];
  const schema = schemaAt(root, location.slice(0, -1), lookup);
  if (keyword === 'required') {
    const name = /"(.*)"\.$/su.exec(error.error)?.[1];
    return [{ path: name === undefined ? path : [...path, name], keyword, schema }];
  }
  if (keyword === 'dependencies' || keyword === 'dependentRequired') {
    // The message names the member that is there, then the one that is missing. Otherwise an inner schema has findings.
    const name = /does not have "(.*)"\.$/su.exec(error.error)?.[1];
    return name === undefined ? [] : [{ path: [...path, name], keyword: 'required', schema: {} }];
  }
  return [{ path, keyword, schema }];
}

/** Follows the location of a keyword through references. */
function schemaAt(root: unknown, location: Path, lookup: Record<string, unknown>): JsonObject {
  let schema = root;
  for (const name of location) {
    if (!isObject(schema) && !Array.isArray(schema)) return {};
    const next: unknown = Reflect.get(schema, name);
    schema = name === '$ref' ? lookup[String(Reflect.get(schema, '__absolute_ref__') ?? next)] : next;
  }
  return isObject(schema) ? schema : {};
}
