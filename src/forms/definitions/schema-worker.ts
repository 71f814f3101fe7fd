// The worker that inspects definitions, compiles data schemas and validates form data against them. A validation first
// stops at the first error and reports that error. Then it starts again to collect all errors. If the collection takes
// too much time or memory, only the first error remains as the result.
import type { ErrorObject, ValidateFunction } from 'ajv';
import { LRUCache } from 'lru-cache';
import type { FieldError } from '../../service/http/problem.ts';
import { parseJson } from '../../service/json-parser.ts';
import { type JobTools, serveJobs } from '../../service/workers/limited-worker.ts';
import { inspectSchemas, type SchemaNotes } from './inspection.ts';
import { compileSchema, type Findings, findingsOf } from './json-schema.ts';
import { SchemaFault } from './schema-faults.ts';
import { firstErrors } from './validation-errors.ts';

/**
 * A job that compiles a data schema and validates form data against it. `schema` and `data` are JSON text; `key`
 * identifies the schema. Without `data`, the worker only compiles the schema.
 */
export interface SchemaJob {
  key: string;
  schema: string;
  data?: string;
  urnPrefix: string;
}

/** The faults of a schema that cannot be used, with pointers relative to the schema. */
export interface Unusable {
  unusable: FieldError[];
}

export type SchemaResult = Findings | Unusable;

/** A job that inspects a form definition. `definition` is JSON text. */
export interface InspectionJob {
  definition: string;
  urnPrefix: string;
}

interface CompiledSchema {
  first: ValidateFunction;
  /** The validator that collects all errors. It is compiled on first use. */
  all?: ValidateFunction;
}

/** Time limit in milliseconds for the collection of the errors after the first. */
const collectMs = 500;

/** `maxSize` limits the total length of the schemas' JSON text. Compiled schemas take about 20 times as much memory. */
const compiled = new LRUCache<string, CompiledSchema | Unusable>({ max: 100, maxSize: 1_000_000 });

serveJobs<SchemaJob | InspectionJob, SchemaResult | SchemaNotes>((job, tools) => {
  if ('definition' in job) return inspectSchemas(parseJson(job.definition), job.urnPrefix);
  const schema = compiled.get(job.key) ?? compile(job);
  if ('unusable' in schema) return schema;
  return job.data === undefined ? { errors: [], truncated: false } : validate(schema, job, job.data, tools);
});

function compile({ key, schema, urnPrefix }: SchemaJob): CompiledSchema | Unusable {
  let result: CompiledSchema | Unusable;
  try {
    result = { first: compileSchema(parseJson(schema), { allErrors: false, urnPrefix }) };
  } catch (error) {
    const faults = error instanceof SchemaFault ? error.faults : [{ pointer: '', detail: 'cannot be read' }];
    result = { unusable: firstErrors(faults, 20).errors };
  }
  compiled.set(key, result, { size: schema.length + 1 });
  return result;
}

function validate(schema: CompiledSchema, job: SchemaJob, text: string, tools: JobTools<SchemaResult>): SchemaResult {
  const data: unknown = parseJson(text);
  let first: Findings;
  try {
    if (schema.first(data)) return { errors: [], truncated: false };
    first = { ...findingsOf(schema.first.errors), truncated: true };
  } catch {
    return {
      unusable: [{ pointer: '', detail: 'refers to itself without end, or the form data is nested too deeply' }],
    };
  }
  tools.report(first);
  return tools.within(collectMs, () => collect(schema, job, data)) ?? first;
}

/**
 * Collects all errors of the data. Returns undefined if the collection fails. The first error, which is already
 * reported, is then the result.
 */
function collect(schema: CompiledSchema, job: SchemaJob, data: unknown): Findings | undefined {
  try {
    schema.all ??= compileSchema(parseJson(job.schema), { allErrors: true, urnPrefix: job.urnPrefix });
    schema.all(data);
    const errors: ErrorObject[] | null | undefined = schema.all.errors;
    schema.all.errors = null;
    return findingsOf(errors);
  } catch {
    return undefined;
  }
}
