// Validates form data in the browser by interpreting the data schema, because the content security policy of the
// pages forbids compiling it. The form service validates again at submission and is the authority.
import { dereference, format, type OutputUnit, type Schema, validate } from '@cfworker/json-schema';
import { fileUrnCheck, formatChecks } from './formats.ts';
import { isObject, type JsonObject, type Path, pathOf, valueAt } from './json.ts';
import { portableSchema } from './portable-schema.ts';

export interface Finding {
  /** Path of the value that is wrong, missing or not expected. */
  path: Path;
  keyword: string;
  /** The schema that has the keyword; an empty object if the schema cannot be found. */
  schema: JsonObject;
  /**
   * True if the finding is about the form as a whole, such as two questions of which one needs an answer. Answers on
   * other pages may be the cause.
   */
  concernsForm: boolean;
}

export type Validator = (data: unknown) => Finding[];

// Replaces the validator's own formats, because they differ from those of the form service.
for (const name of Object.keys(format)) delete format[name];
Object.assign(format, formatChecks());

/**
 * Creates a validator. The validator follows references only within the schema, and reports no findings if the schema
 * is unusable. URNs of files must begin with `urnPrefix`. If `urnPrefix` is undefined, the schema is the condition of a
 * rule in the UI schema: the URNs are not checked, and `enum: [""]` is not a placeholder.
 */
export function createValidator(given: unknown, urnPrefix?: string): Validator {
  const isFileUrn = urnPrefix === undefined ? () => true : fileUrnCheck(urnPrefix);
  const { schema: portable, draft } = portableSchema(given, urnPrefix === undefined);
  const schema: Schema | boolean = portable;
  let lookup: Record<string, Schema | boolean> | undefined;
  return (data) => {
    try {
      lookup ??= dereference(schema);
      // All validators share the library's table of formats, so each one sets its own check of file URNs before each
      // use.
      format['file-urn'] = isFileUrn;
      const { errors } = validate(data, schema, draft, lookup, false);
      const concernsForm = alternativesOfForm(errors);
      return errors.flatMap((error) =>
        findingsOf(error, data, schema, lookup ?? {}).map((finding) => ({
          ...finding,
          concernsForm: finding.path.length === 0 || concernsForm(error),
        })),
      );
    } catch {
      return [];
    }
  };
}

const validators = new WeakMap<object, Validator>();

/**
 * Checks a value against the condition schema of a rule in the UI schema, or against an `if` of the data schema. The
 * value may be missing. References may lead to the definitions of `root`.
 */
export function matches(schema: unknown, value: unknown, root?: JsonObject): boolean {
  if (!isObject(schema)) return schema !== false;
  // The validator cannot check a missing value, so it checks null instead. A schema that mentions null might accept
  // null, so a missing value never matches such a schema.
  if (value === undefined && JSON.stringify(schema).includes('null')) return false;
  const validator =
    validators.get(schema) ?? createValidator(root ? { ...definitionsOf(root), allOf: [schema] } : schema);
  validators.set(schema, validator);
  return validator(value ?? null).length === 0;
}

const definitionsOf = (root: JsonObject) =>
  Object.fromEntries(['$schema', 'definitions', '$defs'].flatMap((name) => (name in root ? [[name, root[name]]] : [])));

/** Keywords whose errors only say that an inner schema has findings. Those findings are reported separately. */
const outer = new Set([
  ...['$ref', '$recursiveRef', 'allOf', 'if', 'items', 'prefixItems', 'additionalItems', 'properties'],
  ...['patternProperties', 'additionalProperties', 'dependentSchemas', 'unevaluatedProperties', 'unevaluatedItems'],
]);

/** Returns a function that is true for errors inside the alternatives (anyOf, oneOf) of the form as a whole. */
function alternativesOfForm(errors: readonly OutputUnit[]): (error: OutputUnit) => boolean {
  const starts = errors
    .filter(({ keyword, instanceLocation }) => ['anyOf', 'oneOf'].includes(keyword) && instanceLocation === '#')
    .map(({ keywordLocation }) => `${keywordLocation}/`);
  return ({ keywordLocation }) => starts.some((start) => keywordLocation.startsWith(start));
}

function findingsOf(
  error: OutputUnit,
  data: unknown,
  root: unknown,
  lookup: Record<string, unknown>,
): Omit<Finding, 'concernsForm'>[] {
  const { keyword, instanceLocation, keywordLocation } = error;
  if (outer.has(keyword)) return [];
  const path = pathOf(instanceLocation);
  const location = pathOf(keywordLocation);
  // If an item violates the schema `false`, the list has too many items. The finding then belongs to the list.
  if (keyword === 'false' && Array.isArray(valueAt(data, path.slice(0, -1))))
    return [{ path: path.slice(0, -1), keyword: 'maxItems', schema: {} }];
  const schema = schemaAt(root, location.slice(0, -1), lookup);
  if (keyword === 'required') {
    const name = /"(.*)"\.$/su.exec(error.error)?.[1];
    return [{ path: name === undefined ? path : [...path, name], keyword, schema }];
  }
  if (keyword === 'dependencies' || keyword === 'dependentRequired') {
    // The message of the error names the present member, then the missing one. Any other message says that an inner
    // schema has findings.
    const name = /does not have "(.*)"\.$/su.exec(error.error)?.[1];
    return name === undefined ? [] : [{ path: [...path, name], keyword: 'required', schema: {} }];
  }
  return [{ path, keyword, schema }];
}

/** Returns the schema at a location, which may lead through references. */
function schemaAt(root: unknown, location: Path, lookup: Record<string, unknown>): JsonObject {
  let schema = root;
  for (const name of location) {
    if (!isObject(schema) && !Array.isArray(schema)) return {};
    const next: unknown = Reflect.get(schema, name);
    schema = name === '$ref' ? lookup[String(Reflect.get(schema, '__absolute_ref__') ?? next)] : next;
  }
  return isObject(schema) ? schema : {};
}
