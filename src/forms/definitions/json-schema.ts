// Compiles and applies the JSON Schemas of form definitions. `$schema` selects the draft, from draft 6 to 2020-12.
// Remote references are not fetched; they are errors. Tenants write the schemas, so this code must run only in a
// limited worker.
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { type FieldError, jsonPointer } from '../../service/http/problem.ts';
import { schemaPatterns } from '../../service/workers/linear-pattern.ts';

/** Maximum number of listed errors. `truncated` is true if there are or may be more. */
const listedErrors = 20;

export interface Findings {
  errors: FieldError[];
  truncated: boolean;
}

const options: Options = {
  strict: false,
  // Ajv would log unknown formats.
  logger: false,
  validateFormats: true,
  // Allows the older pattern syntax, such as `\_`, because many schemas use it.
  code: { regExp: schemaPatterns(false) },
};

const drafts: [pattern: RegExp, create: (options: Options) => Ajv][] = [
  [/^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/, (chosen) => new Ajv(chosen)],
  [/^https:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, (chosen) => new Ajv2019(chosen)],
  [/^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, (chosen) => new Ajv2020(chosen)],
];

/**
 * Returns a function that stops at the first error, or collects all errors if `allErrors` is set. The list of all
 * errors may exceed the memory limit. Throws an Error that explains what is wrong with the schema. Each schema has its
 * own Ajv, so that the `$id`s of different schemas do not conflict.
 */
export function compileSchema(schema: unknown, { allErrors }: { allErrors: boolean }): ValidateFunction {
  if (typeof schema === 'boolean') return new Ajv(options).compile(schema);
  if (typeof schema !== 'object' || schema === null) throw new Error('A schema is an object or a boolean.');
  const named = '$schema' in schema ? schema.$schema : undefined;
  const dialect = typeof named === 'string' ? named : 'http://json-schema.org/draft-07/schema#';
  const create = drafts.find(([pattern]) => pattern.test(dialect))?.[1];
  if (!create) throw new Error('Its $schema must be draft 7, 2019-09 or 2020-12.');
  const ajv = create({ ...options, allErrors });
  formats.default(ajv);
  return ajv.compile(schema);
}

/** Returns the invalid fields below `/data`. For a missing or unexpected member, the pointer names that member. */
export function findingsOf(errors: readonly ErrorObject[] | null | undefined): Findings {
  const found = new Map<string, FieldError>();
  for (const error of errors ?? []) {
    const one = { pointer: `/data${error.instancePath}${memberOf(error)}`, detail: detailOf(error) };
    found.set(`${one.pointer}\0${one.detail}`, one);
    if (found.size > listedErrors) break;
  }
  return { errors: [...found.values()].slice(0, listedErrors), truncated: found.size > listedErrors };
}

function memberOf({ params }: ErrorObject): string {
  const name = params.missingProperty ?? params.additionalProperty ?? params.unevaluatedProperty ?? params.propertyName;
  return typeof name === 'string' ? jsonPointer([name]) : '';
}

function detailOf({ keyword, message, params }: ErrorObject): string {
  switch (keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return 'is not expected';
    case 'enum':
      return `${message ?? 'is not allowed'}: ${allowed(params.allowedValues)}`;
    default:
      return message ?? 'is not valid';
  }
}

function allowed(values: unknown): string {
  const text = Array.isArray(values) ? values.map((value) => JSON.stringify(value)).join(', ') : '';
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
