// Compiles and applies the JSON Schemas of form definitions. `$schema` selects the draft, from draft 4 to 2020-12. A
// reference can point only into the schema itself or to a shared schema; nothing is fetched. Tenants write the schemas,
// so this code must run only in a limited worker.
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
import { describeError } from './validation-errors.ts';

/** Maximum number of listed errors. `truncated` is true if there are or may be more. */
const listedErrors = 20;

export interface Findings {
  errors: FieldError[];
  truncated: boolean;
}

export interface CompileOptions {
  /** Collects all errors instead of stopping at the first. The list may exceed the memory limit. */
  allErrors: boolean;
  /** Prefix of the URNs of files. */
  urnPrefix: string;
}

const options: Options = {
  strict: false,
  // Ajv would log unknown formats.
  logger: false,
  validateFormats: true,
  // 19.99 is a multiple of 0.01, although a division of doubles has a remainder.
  multipleOfPrecision: 9,
  // compileSchema validates each schema, so that it can explain what is wrong.
  validateSchema: false,
  // Allows the older pattern syntax, such as `\_`, because many schemas use it.
  code: { regExp: schemaPatterns(false) },
};

const drafts: [pattern: RegExp, create: (options: Options) => Ajv][] = [
  [/^https?:\/\/json-schema\.org\/draft-0[467]\/schema#?$/, (chosen) => new Ajv(chosen)],
  [/^https:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, (chosen) => new Ajv2019(chosen)],
  [/^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, (chosen) => new Ajv2020(chosen)],
];

/** Throws SchemaFault. */
export function compileSchema(schema: unknown, given: CompileOptions): ValidateFunction {
  if (typeof schema === 'boolean') return new Ajv(options).compile(schema);
  if (!isObject(schema)) throw new SchemaFault([{ pointer: '', detail: 'must be an object or a boolean' }]);
  const ajv = createAjv(schema, given);
  const portable = portableSchema(schema);
  // The validator of an asynchronous schema returns a promise, which would be mistaken for success.
  if (portable.$async !== undefined) throw new SchemaFault([{ pointer: '/$async', detail: 'is not supported' }]);
  if (!ajv.validateSchema(portable)) throw new SchemaFault(keywordFaults(ajv.errors));
  try {
    return ajv.compile(portable);
  } catch (error) {
    throw new SchemaFault(compileFaults(portable, error));
  }
}

/**
 * Creates an Ajv for one schema, so that the `$id`s of different schemas do not conflict. Throws SchemaFault if the
 * dialect is not supported.
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

/** Returns the invalid fields below `/data`. */
export function findingsOf(errors: readonly ErrorObject[] | null | undefined): Findings {
  const found = new Map<string, FieldError>();
  for (const error of errors ?? []) {
    // The error of `if` itself is skipped, because the errors of the branch that it chose are listed.
    if (error.keyword === 'if') continue;
    const { pointer, detail } = describeError(error);
    found.set(`${pointer}\0${detail}`, { pointer: `/data${pointer}`, detail });
    if (found.size > listedErrors) break;
  }
  return { errors: [...found.values()].slice(0, listedErrors), truncated: found.size > listedErrors };
}
