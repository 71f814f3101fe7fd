// Compiles and applies the JSON Schemas of form definitions. `$schema` selects the draft, from draft 4 to 2020-12.
// References can point into the schema itself and to shared schemas; no schema is fetched. Tenants write the schemas,
// so this code must run only in a worker process with limits on time and memory.
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { FieldError } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import { schemaPatterns } from '../../service/workers/linear-pattern.ts';
import { formFormats } from './formats.ts';
import { portableSchema } from './portable-schema.ts';
import { compileFaults, keywordFaults, SchemaFault } from './schema-faults.ts';
import type { SchemaObject } from './schema-tree.ts';
import { addSharedSchemas } from './shared-schemas.ts';
import { describeError, firstErrors } from './validation-errors.ts';

/** Maximum number of listed errors. `truncated` is true if there are more errors, or may be more. */
const listedErrors = 20;

export interface Findings {
  errors: FieldError[];
  truncated: boolean;
}

export interface CompileOptions {
  /**
   * True to collect all errors instead of stopping at the first. The list of errors may exceed the worker's memory
   * limit.
   */
  allErrors: boolean;
  /** Prefix of the URNs of files. */
  urnPrefix: string;
}

const options: Options = {
  strict: false,
  // Without this option, Ajv logs each unknown format.
  logger: false,
  validateFormats: true,
  // Without this option, the rounding error of a division would make Ajv report that 19.99 is not a multiple of 0.01.
  multipleOfPrecision: 9,
  // The function compileSchema validates each schema itself, so that it can explain what is wrong.
  validateSchema: false,
  // Allows older pattern syntax, such as `\_`, because many schemas use it.
  code: { regExp: schemaPatterns(false) },
};

const drafts: [pattern: RegExp, create: (options: Options) => Ajv][] = [
  [/^https?:\/\/json-schema\.org\/draft-0[467]\/schema#?$/, (chosen) => new Ajv(chosen)],
  [/^https:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, (chosen) => new Ajv2019(chosen)],
  [/^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, (chosen) => new Ajv2020(chosen)],
];

/** Throws SchemaFault if the schema cannot be compiled. */
export function compileSchema(schema: unknown, given: CompileOptions): ValidateFunction {
  if (typeof schema === 'boolean') return new Ajv(options).compile(schema);
  if (!isObject(schema)) throw new SchemaFault([{ pointer: '', detail: 'must be an object or a boolean' }]);
  const ajv = createAjv(schema, given);
  const portable = portableSchema(schema);
  // The validator of an asynchronous schema returns a promise, which the caller would mistake for success.
  if (portable.$async !== undefined) throw new SchemaFault([{ pointer: '/$async', detail: 'is not supported' }]);
  if (!ajv.validateSchema(portable)) throw new SchemaFault(keywordFaults(ajv.errors));
  try {
    return ajv.compile(portable);
  } catch (error) {
    throw new SchemaFault(compileFaults(portable, error));
  }
}

/**
 * Creates an Ajv instance for one schema, so that the `$id`s of different schemas do not conflict. Throws SchemaFault
 * if the draft that `$schema` names is not supported.
 */
export function createAjv(schema: SchemaObject, { allErrors, urnPrefix }: CompileOptions): Ajv {
  const { $schema: dialect = 'http://json-schema.org/draft-07/schema#' } = schema;
  const create = drafts.find(([pattern]) => typeof dialect === 'string' && pattern.test(dialect))?.[1];
  if (!create)
    throw new SchemaFault([
      { pointer: '/$schema', detail: 'must be draft 4, 6, 7, 2019-09 or 2020-12 of JSON Schema' },
    ]);
  const ajv = create({ ...options, allErrors });
  formats.default(ajv);
  for (const [name, format] of Object.entries(formFormats(urnPrefix))) ajv.addFormat(name, format);
  addSharedSchemas(ajv);
  return ajv;
}

/** Returns the invalid fields. Their pointers begin with `/data`. */
export function findingsOf(errors: readonly ErrorObject[] | null | undefined): Findings {
  return firstErrors(distinctErrors(errors ?? []), listedErrors);
}

function* distinctErrors(errors: readonly ErrorObject[]): Generator<FieldError> {
  const seen = new Set<string>();
  for (const error of errors) {
    // The error of `if` itself is skipped, because the errors of its `then` or `else` branch are listed.
    if (error.keyword === 'if') continue;
    const { pointer, detail } = describeError(error);
    const key = `${pointer}\0${detail}`;
    if (seen.has(key)) continue;
    seen.add(key);
    yield { pointer: `/data${pointer}`, detail };
  }
}
