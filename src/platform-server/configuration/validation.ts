// Checks a value against a definition's JSON Schema (draft 7) and writes the schema's defaults into it. A schema that
// cannot be used lets anything pass, as the contract has it; schemas are never fetched from elsewhere.
import { createHash } from 'node:crypto';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { LRUCache } from 'lru-cache';

export interface Valid {
  valid: true;
  /** A copy of the value with defaults written in. */
  value: unknown;
}

export interface Invalid {
  valid: false;
  pointer: string;
  detail: string;
}

export type Validate = (schema: unknown, value: unknown) => Valid | Invalid;

/** Compiled schemas are kept by content, so that one changed definition cannot meet another's validator. */
export function createValidate(): Validate {
  const compiled = new LRUCache<string, { check: ValidateFunction | undefined }>({ max: 500 });
  return (schema, value) => {
    const key = createHash('sha256').update(JSON.stringify(schema)).digest('base64');
    let entry = compiled.get(key);
    if (!entry) {
      entry = { check: compile(schema) };
      compiled.set(key, entry);
    }
    const copy: unknown = structuredClone(value);
    if (!entry.check || entry.check(copy)) return { valid: true, value: copy };
    return describe(entry.check.errors?.[0]);
  };
}

/** Undefined when the schema is not usable. */
function compile(schema: unknown): ValidateFunction | undefined {
  if (typeof schema !== 'boolean' && (typeof schema !== 'object' || schema === null)) return undefined;
  try {
    // One instance for each schema: `$id`s of different tenants must not meet.
    const ajv = new Ajv({ strict: false, useDefaults: true, logger: false });
    addFormats.default(ajv);
    for (const [name, pattern] of Object.entries(formats)) ajv.addFormat(name, pattern);
    return ajv.compile(schema);
  } catch {
    return undefined;
  }
}

// Formats that the platform adds to JSON Schema's own.
const formats: Record<string, RegExp> = {
  'file-urn': /^(?:urn:[A-Za-z0-9][A-Za-z0-9-]*(?::[^\s:;]+){4}(?:;|$))*$/,
  phone: /^\+?[0-9 ().-]{7,20}$/,
  'phone-number': /^\+?[0-9 ().-]{7,20}$/,
  'postal-code': /^[A-Za-z]\d[A-Za-z] ?\d[A-Za-z]\d$/,
};

function describe(error: ErrorObject | undefined): Invalid {
  return { valid: false, pointer: error?.instancePath ?? '', detail: error?.message ?? 'is not valid' };
}
