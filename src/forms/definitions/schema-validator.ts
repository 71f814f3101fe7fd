// Checks data schemas, and validates form data against them, in workers with limits that tenants share fairly. If a
// schema takes too much time or memory, the validation of the form fails. After failures for three forms, the schema is
// suspended, and the problem says until when.
import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Clock, later } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { programModule } from '../../service/program-files.ts';
import { LimitedWorkers } from '../../service/workers/limited-workers.ts';
import type { JobReply } from '../../service/workers/worker-process.ts';
import { type FormDefinition, unusable } from './definition.ts';
import type { SchemaNotes } from './inspection.ts';
import type { Findings } from './json-schema.ts';
import { createSchemaMetrics } from './schema-metrics.ts';
import type { InspectionJob, SchemaJob, SchemaResult, Unusable } from './schema-worker.ts';

export type SchemaValidator = ReturnType<typeof createSchemaValidator>;

export interface SchemaValidatorOptions {
  metrics: Metrics;
  log: Logger;
  clock: Clock;
  /** Prefix of the URNs of files. */
  urnPrefix: string;
  /** Time limit in milliseconds for one validation, including the compilation of the schema. */
  jobMs?: number;
  waitMs?: number;
}

const noFindings: Findings = { errors: [], truncated: false };

export function createSchemaValidator({ metrics, log, clock, urnPrefix, ...times }: SchemaValidatorOptions) {
  const suspensions = createSuspensions(clock);
  const suspended = createSchemaMetrics(metrics);
  const workers = new LimitedWorkers<SchemaJob | InspectionJob, SchemaResult | SchemaNotes>({
    script: programModule('src/forms/definitions/schema-worker.ts'),
    name: 'schema',
    metrics,
    busy: 'Too many forms of this tenant are being validated. Try again.',
    ...times,
  });

  function requireActive(definition: FormDefinition, key: string): void {
    const suspension = suspensions.find(key);
    if (suspension) throw suspendedProblem(definition, suspension, clock());
  }

  /** Counts a job that exceeded its limits. Returns the problem to throw. */
  function exceeded({ tenantId, formId }: FormOfSchema, definition: FormDefinition, key: string): Problem {
    const suspension = suspensions.exceeded(key, formId);
    if (suspension) {
      suspended.inc();
      log.warn({ tenant: tenantId, definition: definition.id, until: suspension.until }, 'data schema suspended');
    }
    return tooExpensive(definition);
  }

  /** Validates the form data in a worker. Without data, the worker only compiles the schema. */
  async function run(form: FormOfSchema, definition: FormDefinition, data?: GivenData): Promise<SchemaResult> {
    const { schemaText: schema } = definition;
    // Reads the data although no schema restricts it: `data` also tells its caller which revision is validated.
    if (schema === 'true' || schema === '{}') return textOf(data).then(() => noFindings);
    const key = keyOf(form.tenantId, definition);
    requireActive(definition, key);
    const reply = (await workers.run({ tenant: form.tenantId, member: definition.id }, async (): Promise<SchemaJob> => {
      requireActive(definition, key);
      return { key, schema, urnPrefix, ...(await textOf(data)) };
    })) as JobReply<SchemaResult>;
    // A partial result means that the job found the first error, and exceeded the limits only in the search for further
    // errors. Such a job does not count towards a suspension of the schema.
    const result = 'done' in reply ? reply.done : 'exceeded' in reply ? reply.partial : failed;
    if (result === undefined) throw exceeded(form, definition, key);
    suspensions.succeeded(key);
    return result;
  }

  const compiled = new LRUCache<string, Promise<SchemaResult>>({ max: 5_000 });
  const validate = async (form: FormOfSchema, definition: FormDefinition, data: GivenData): Promise<Findings> =>
    requireFindings(definition, await run(form, definition, data));

  return {
    /**
     * Returns the invalid fields of a form's data, at most 20. Throws Problem `definition-invalid` if the schema is
     * invalid or suspended. Throws `busy` if too many validations are waiting, or if this validation has waited too
     * long.
     */
    validate,

    /** Throws Problem `invalid-request` if there are invalid fields. Also throws the errors of `validate`. */
    requireValid: async (form: FormOfSchema, definition: FormDefinition, data: GivenData): Promise<void> =>
      refuseProblems(await validate(form, definition, data)),

    /**
     * Throws the same errors as `validate` if the data schema cannot be used, so that no applicant fills in a form that
     * cannot be submitted. Every creation of a form calls this function, so it caches the result, and concurrent calls
     * share one check. If a check exceeds its limits, cannot run or has a long result, the next call repeats it.
     */
    async requireUsable(tenantId: string, definition: FormDefinition): Promise<void> {
      const key = keyOf(tenantId, definition);
      let result = compiled.get(key);
      if (!result) {
        result = run({ tenantId, formId: randomUUID() }, definition);
        compiled.set(key, result);
        const forget = () => compiled.delete(key);
        result.then((found) => isLong(found) && forget(), forget);
      }
      requireFindings(definition, await result);
    },

    /** Lists the errors in the schemas of a definition, which may be any JSON. Throws Problem `busy`. */
    async inspect(tenantId: string, definition: unknown): Promise<SchemaNotes> {
      const prepare = (): InspectionJob => ({ definition: JSON.stringify(definition), urnPrefix });
      const reply = await workers.run({ tenant: tenantId, member: 'inspection' }, prepare);
      return 'done' in reply ? (reply.done as SchemaNotes) : uninspected(reply);
    },
    close: () => workers.close(),
  };
}

/** JSON text of the form data, or a function that reads it when a worker is free. Undefined if the form is gone. */
type GivenData = string | (() => Promise<string | undefined>);

async function textOf(given: GivenData | undefined): Promise<{ data?: string }> {
  const data = typeof given === 'function' ? await given() : given;
  return data === undefined ? {} : { data };
}

/** The form whose data is validated. A schema is suspended only if it exceeds its limits for several forms. */
interface FormOfSchema {
  tenantId: string;
  formId: string;
}

const failed: Unusable = { unusable: [{ pointer: '', detail: 'cannot be processed' }] };

/** Returns a key that identifies the schema by its content, because a revision can be edited in place. */
function keyOf(tenantId: string, { id, schemaKey }: FormDefinition): string {
  return `${tenantId}\0${id}\0${schemaKey}`;
}

/** Maximum length of the errors of a cached result, in characters. */
const longestCached = 10_000;

function isLong(result: SchemaResult): boolean {
  const errors = 'unusable' in result ? result.unusable : result.errors;
  return errors.reduce((length, { pointer, detail }) => length + pointer.length + detail.length, 0) > longestCached;
}

function requireFindings(definition: FormDefinition, result: SchemaResult): Findings {
  if (!('unusable' in result)) return result;
  const errors = result.unusable.map(({ pointer, detail }) => ({ pointer: `/dataSchema${pointer}`, detail }));
  throw unusable(definition.id, 'Its data schema is not valid.', { errors });
}

function uninspected(reply: JobReply<unknown>): SchemaNotes {
  const detail = 'failed' in reply ? 'is nested too deeply' : 'takes too much time or memory';
  return { errors: [{ pointer: '/dataSchema', detail }], warnings: [], truncated: false, registers: [] };
}

function tooExpensive({ id }: FormDefinition): Problem {
  const detail = 'takes too much time or memory';
  return unusable(id, `Its data schema ${detail}.`, { errors: [{ pointer: '/dataSchema', detail }] });
}

function refuseProblems({ errors, truncated }: Findings): void {
  if (errors.length === 0) return;
  const members = truncated ? { truncated } : {};
  throw new Problem('invalid-request', 'The form data does not match the form definition.', { errors, members });
}

function suspendedProblem({ id }: FormDefinition, { since, until }: Suspension, now: Date): Problem {
  const detail =
    `The data schema of the form definition “${id}” is suspended since ${since.toISOString()}: ` +
    `it took too much time or memory for three forms. It is used again after ${until.toISOString()}, or when it changes.`;
  const seconds = Math.max(1, Math.ceil((until.getTime() - now.getTime()) / 1_000));
  return new Problem('definition-invalid', detail, {
    headers: { 'Retry-After': String(seconds) },
    members: { suspendedSince: since.toISOString(), suspendedUntil: until.toISOString() },
  });
}

interface Suspension {
  since: Date;
  until: Date;
}

interface Entry {
  forms: Set<string>;
  lengthMs: number;
  suspension?: Suspension;
}

const allowedForms = 3;
const firstMs = 60_000;
const longestMs = 3_600_000;

/**
 * Suspends a schema after it exceeded its limits for three different forms. The first suspension lasts 60 s. Each
 * further suspension lasts twice as long as the one before, up to an hour. A success clears the schema's record. Each
 * process keeps only the records of its own validations, for a limited number of schemas.
 */
function createSuspensions(clock: Clock) {
  const records = new LRUCache<string, Entry>({ max: 10_000 });
  return {
    /** Returns the schema's current suspension; undefined if the schema is not suspended. */
    find(key: string): Suspension | undefined {
      const suspension = records.get(key)?.suspension;
      return suspension && suspension.until > clock() ? suspension : undefined;
    },
    /** Counts a validation that exceeded its limits. Returns the suspension if this validation caused one. */
    exceeded(key: string, formId: string): Suspension | undefined {
      const record = records.get(key) ?? { forms: new Set(), lengthMs: firstMs };
      record.forms.add(formId);
      records.set(key, record);
      if (record.forms.size < allowedForms) return undefined;
      const since = clock();
      record.suspension = { since, until: later(since, record.lengthMs) };
      record.lengthMs = Math.min(longestMs, record.lengthMs * 2);
      return record.suspension;
    },
    succeeded: (key: string) => records.delete(key),
  };
}
