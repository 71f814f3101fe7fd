// Validates a value against the JSON Schema (draft 7) of a definition, and adds the schema's defaults. As the contract
// requires, an invalid schema accepts every value. Remote schemas are never fetched. This code runs only in a worker
// process with limits on time and memory, because tenants write the schemas.
import { createHash } from 'node:crypto';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { LRUCache } from 'lru-cache';
import { parseJson } from '../../service/json-parser.ts';
import { schemaPatterns } from '../../service/workers/linear-pattern.ts';

export interface Valid {
  valid: true;
  /** A copy of the value with the schema's defaults. */
  value: unknown;
}

export interface Invalid {
  valid: false;
  pointer: string;
  detail: string;
}

export type Validation = Valid | Invalid;

/**
 * Returns a function that validates a value. The function caches compiled schemas by their content, so that a changed
 * definition never uses the validator of its old schema.
 */
export function createValidate(): (schema: unknown, value: unknown) => Validation {
  const compiled = new LRUCache<string, { check: ValidateFunction | undefined }>({ max: 500, maxSize: 2_000_000 });
  return (schema, value) => {
    const text = JSON.stringify(schema);
    const key = createHash('sha256').update(text).digest('base64');
    let entry = compiled.get(key);
    if (!entry) {
      entry = { check: compileIfUsable(schema) };
      compiled.set(key, entry, { size: text.length });
    }
    const copy: unknown = structuredClone(value);
    if (!entry.check || entry.check(copy)) return { valid: true, value: copy };
    return describe(entry.check.errors?.[0]);
  };
}

function compileIfUsable(schema: unknown): ValidateFunction | undefined {
  if (typeof schema !== 'boolean' && (typeof schema !== 'object' || schema === null)) return undefined;
  try {
    return compile(schema);
  } catch {
    return undefined;
  }
}

/** Maximum length of a schema's JSON text in characters. */
const longestSchema = 1_000_000;
const ownDialect = /^http:\/\/json-schema\.org\/draft-07\/schema#?$/;

/**
 * Returns the reason why a schema must not be stored, or undefined if it may be stored. A schema in another dialect, or
 * with a reference to another document, has no effect. It may still be stored, because the older platform has such
 * schemas.
 */
export function schemaFault(text: string): string | undefined {
  if (text.length > longestSchema) return `is longer than ${longestSchema} characters`;
  const schema = parseJson(text);
  if (typeof schema !== 'object' || schema === null) return undefined;
  if ('$schema' in schema && !ownDialect.test(String(schema.$schema))) return undefined;
  try {
    compile(schema);
    return undefined;
  } catch (error) {
    if (error instanceof Ajv.MissingRefError && error.missingSchema !== '') return undefined;
    return `does not compile: ${error instanceof Error ? error.message : 'the schema is invalid'}`;
  }
}

/** Compiles each schema with a new Ajv instance, so that equal `$id`s of different tenants do not conflict. */
function compile(schema: boolean | object): ValidateFunction {
  const code = { regExp: schemaPatterns(true) };
  const ajv = new Ajv({ strict: false, useDefaults: true, logger: false, code });
  addFormats.default(ajv);
  for (const [name, pattern] of Object.entries(formats)) ajv.addFormat(name, pattern);
  return ajv.compile(schema);
}

// Additional formats of the platform. The formats of JSON Schema are added separately.
const formats: Record<string, RegExp> = {
  'file-urn': /^(?:urn:[A-Za-z0-9][A-Za-z0-9-]*(?::[^\s:;]+){4}(?:;|$))*$/,
  phone: /^\+?[0-9 ().-]{7,20}$/,
  'phone-number': /^\+?[0-9 ().-]{7,20}$/,
  'postal-code': /^[A-Za-z]\d[A-Za-z] ?\d[A-Za-z]\d$/,
};

function describe(error: ErrorObject | undefined): Invalid {
  return { valid: false, pointer: error?.instancePath ?? '', detail: error?.message ?? 'is not valid' };
}
