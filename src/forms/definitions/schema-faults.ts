// Explains why a data schema cannot be compiled, in plain words and with a pointer to each cause.
import { Ajv, type ErrorObject } from 'ajv';
import { type FieldError, jsonPointer } from '../../service/http/problem.ts';
import { compilePattern } from '../../service/workers/linear-pattern.ts';
import { type SchemaObject, visitSchemas } from './schema-tree.ts';
import { isSharedSchema } from './shared-schemas.ts';
import { describeError } from './validation-errors.ts';

/** Thrown for a schema that cannot be compiled. Pointers are relative to the schema. */
export class SchemaFault extends Error {
  readonly faults: FieldError[];

  constructor(faults: FieldError[]) {
    super('The data schema cannot be compiled.');
    this.name = 'SchemaFault';
    this.faults = faults;
  }
}

/**
 * Converts the errors that the meta-schema finds in a data schema. Errors at one pointer have the same cause; only the
 * first is kept, because it describes the cause best.
 */
export function keywordFaults(errors: readonly ErrorObject[] | null | undefined): FieldError[] {
  const faults = new Map<string, FieldError>();
  for (const error of errors ?? []) {
    const { pointer, detail } = describeError(error);
    const isPattern = error.keyword === 'format' && error.params.format === 'regex';
    if (!faults.has(pointer))
      faults.set(pointer, { pointer, detail: isPattern ? 'is not a valid regular expression' : detail });
  }
  return [...faults.values()];
}

/** Converts the error that Ajv threw when it compiled a schema that the meta-schema accepts. */
export function compileFaults(schema: SchemaObject, error: unknown): FieldError[] {
  const faults =
    error instanceof Ajv.MissingRefError
      ? referenceFaults(schema, error.missingRef)
      : error instanceof SyntaxError
        ? patternsOf(schema).flatMap(({ pointer, engine }) =>
            engine === undefined ? [{ pointer, detail: 'is not a valid regular expression' }] : [],
          )
        : [];
  if (faults.length > 0) return faults;
  const detail = error instanceof RangeError ? 'is nested too deeply' : 'contradicts itself, such as by a repeated $id';
  return [{ pointer: '', detail }];
}

const noSharedPart = 'names a part that the shared schema does not have';
/** RFC 3986 section 5.1.1: the `$id` of a schema is the base of its relative references. */
const resolvedElsewhere = 'is resolved against the $id of the schema; write the full address of the shared schema';

function referenceFaults(schema: SchemaObject, missing: string): FieldError[] {
  const ids = new Set<unknown>();
  visitSchemas(schema, ({ $id }) => void ids.add($id));
  const faults: FieldError[] = [];
  visitSchemas(schema, ({ $ref }, { path }) => {
    if (typeof $ref !== 'string') return;
    const pointer = jsonPointer([...path, '$ref']);
    const isOwn = $ref.startsWith('#') || ids.has($ref.split('#')[0]);
    const isMissing = missing === $ref || ($ref !== '' && missing.endsWith($ref));
    if (isSharedSchema($ref)) {
      if (isMissing) faults.push({ pointer, detail: missing === $ref ? noSharedPart : resolvedElsewhere });
    } else if (!isOwn)
      faults.push({ pointer, detail: 'refers to another document; only shared schemas are available' });
    else if (isMissing) faults.push({ pointer, detail: 'refers to a part of the schema that does not exist' });
  });
  return faults;
}

export interface SchemaPattern {
  pointer: string;
  /** The engine that can run the pattern. Undefined if the pattern is not a regular expression. */
  engine: 're2' | 'native' | undefined;
}

/** Returns the patterns of the schema and of its subschemas. */
export function patternsOf(schema: SchemaObject): SchemaPattern[] {
  const patterns: SchemaPattern[] = [];
  const add = (path: readonly string[], source: string) =>
    patterns.push({ pointer: jsonPointer(path), engine: engineOf(source) });
  visitSchemas(schema, ({ pattern, patternProperties }, { path }) => {
    if (typeof pattern === 'string') add([...path, 'pattern'], pattern);
    for (const source of Object.keys(patternProperties ?? {})) add([...path, 'patternProperties', source], source);
  });
  return patterns;
}

function engineOf(source: string): SchemaPattern['engine'] {
  try {
    return compilePattern(source, false).engine;
  } catch {
    return undefined;
  }
}
