// Inspects the schemas of a form definition and lists their errors. Tenants write the schemas, so this code must run
// only in a worker process with limits on time and memory.
import { type FieldError, jsonPointer } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import { compileSchema, createAjv } from './json-schema.ts';
import { patternsOf, SchemaFault } from './schema-faults.ts';
import { type SchemaObject, visitSchemas } from './schema-tree.ts';
import { inspectUiSchema, type NamedRegister } from './ui-schema.ts';
import { firstErrors } from './validation-errors.ts';

/** The problems of a definition. Pointers are relative to the definition. */
export interface SchemaNotes {
  /** Errors that prevent the creation and submission of forms with this definition. */
  errors: FieldError[];
  /** Problems that do not prevent the use of the definition, but cause an error for applicants later. */
  warnings: FieldError[];
  /** True if `errors` or `warnings` lacks some. */
  truncated: boolean;
  registers: NamedRegister[];
}

/**
 * Maximum length of each list: errors, warnings and registers. A longer list would not help the reader, and would take
 * memory.
 */
const most = 100;

export function inspectSchemas(definition: unknown, urnPrefix: string): SchemaNotes {
  const { dataSchema = {}, uiSchema } = isObject(definition) ? definition : {};
  const { faults, hints } = inspectDataSchema(dataSchema, urnPrefix);
  const { problems, registers } = inspectUiSchema(uiSchema, dataSchema);
  const errors = firstErrors(faults, most);
  const warnings = firstErrors([...hints.map(belowDataSchema), ...problems], most);
  return {
    errors: errors.errors.map(belowDataSchema),
    warnings: warnings.errors,
    truncated: errors.truncated || warnings.truncated,
    registers: registers.slice(0, most),
  };
}

function belowDataSchema({ pointer, detail }: FieldError): FieldError {
  return { pointer: `/dataSchema${pointer}`, detail };
}

function inspectDataSchema(schema: unknown, urnPrefix: string): { faults: FieldError[]; hints: FieldError[] } {
  const options = { allErrors: true, urnPrefix };
  try {
    compileSchema(schema, options);
    return { faults: [], hints: isObject(schema) ? hintsOf(schema, createAjv(schema, options).formats) : [] };
  } catch (error) {
    if (error instanceof SchemaFault) return { faults: error.faults, hints: [] };
    throw error;
  }
}

function hintsOf(schema: SchemaObject, formats: object): FieldError[] {
  const hints: FieldError[] = patternsOf(schema).flatMap(({ pointer, engine }) =>
    engine === 'native'
      ? [{ pointer, detail: 'may take very long: it has look-around, back references or repeats too often' }]
      : [],
  );
  visitSchemas(schema, (inner, { path }) => {
    const { format, required, properties, additionalProperties, patternProperties } = inner;
    if (typeof format === 'string' && !Object.hasOwn(formats, format))
      hints.push({ pointer: jsonPointer([...path, 'format']), detail: 'is not a known format, and is ignored' });
    if (additionalProperties !== false || patternProperties !== undefined || !Array.isArray(required)) return;
    for (const [index, name] of required.entries())
      if (!isObject(properties) || !Object.hasOwn(properties, String(name)))
        hints.push({ pointer: jsonPointer([...path, 'required', index]), detail: 'is required and not allowed' });
  });
  return hints;
}
