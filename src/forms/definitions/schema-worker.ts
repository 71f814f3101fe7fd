// The worker that validates form data against data schemas. It first validates up to the first error and reports it. Then
// it collects more errors; if that takes too much time or memory, the first error is the result.
import type { ErrorObject, ValidateFunction } from 'ajv';
import { LRUCache } from 'lru-cache';
import { parseJson } from '../../service/http/json-parser.ts';
import { type JobTools, serveJobs } from '../../service/workers/limited-worker.ts';
import { compileSchema, type Findings, findingsOf } from './json-schema.ts';

/** `schema` and `data` are JSON text; `key` names the schema of one definition. */
export interface SchemaJob {
  key: string;
  schema: string;
  data: string;
}

export type SchemaResult = Findings | { unusable: string };

interface CompiledSchema {
  first: ValidateFunction;
  /** Compiled when it is needed. */
  all?: ValidateFunction;
}

/** Milliseconds for errors beyond the first. */
const collectMs = 500;

/** The size is the length of the schemas: compiled, they take about twenty times as much memory. */
const compiled = new LRUCache<string, CompiledSchema | { unusable: string }>({ max: 100, maxSize: 1_000_000 });

serveJobs<SchemaJob, SchemaResult>((job, tools) => {
  const schema = compiled.get(job.key) ?? compile(job);
  return 'unusable' in schema ? schema : validate(schema, job, tools);
});

function compile({ key, schema }: SchemaJob): CompiledSchema | { unusable: string } {
  let result: CompiledSchema | { unusable: string };
  try {
    result = { first: compileSchema(parseJson(schema), { allErrors: false }) };
  } catch (error) {
    result = { unusable: messageOf(error) };
  }
  compiled.set(key, result, { size: schema.length + 1 });
  return result;
}

function validate(schema: CompiledSchema, job: SchemaJob, tools: JobTools<SchemaResult>): SchemaResult {
  const data: unknown = parseJson(job.data);
  let first: Findings;
  try {
    if (schema.first(data)) return { errors: [], truncated: false };
    first = { ...findingsOf(schema.first.errors), truncated: true };
  } catch (error) {
    // A schema with infinite recursion, or data that is nested too deeply for it.
    return { unusable: messageOf(error) };
  }
  tools.report(first);
  return tools.within(collectMs, () => collect(schema, job, data)) ?? first;
}

/** Undefined if it fails: the first error is known. */
function collect(schema: CompiledSchema, job: SchemaJob, data: unknown): Findings | undefined {
  try {
    schema.all ??= compileSchema(parseJson(job.schema), { allErrors: true });
    schema.all(data);
    const errors: ErrorObject[] | null | undefined = schema.all.errors;
    schema.all.errors = null;
    return findingsOf(errors);
  } catch {
    return undefined;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
