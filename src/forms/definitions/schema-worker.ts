// The worker that validates form data against data schemas. It validates up to the first error and reports that error.
// Then it collects further errors; if that takes too much time or memory, the result is the first error only.
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
  /** Compiled on first use. */
  all?: ValidateFunction;
}

/** Milliseconds for collecting errors after the first. */
const collectMs = 500;

/** `maxSize` limits the length of the schemas' JSON text. Compiled, they take about 20 times as much memory. */
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
    // The schema recurses without end, or the data is nested too deeply.
    return { unusable: messageOf(error) };
  }
  tools.report(first);
  return tools.within(collectMs, () => collect(schema, job, data)) ?? first;
}

/** Returns undefined if it fails; the first error has already been reported. */
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
