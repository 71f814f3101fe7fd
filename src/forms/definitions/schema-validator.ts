// Validates form data against a definition's data schema, in workers with limits that tenants share fairly. If a schema
// takes too much time or memory, validation of that form fails. After three such forms, the schema is suspended, and
// the problem says until when.
import { LRUCache } from 'lru-cache';
import prom from 'prom-client';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { LimitedWorkers } from '../../service/workers/limited-workers.ts';
import { type FormDefinition, unusable } from './definition.ts';
import type { Findings } from './json-schema.ts';
import type { SchemaJob, SchemaResult } from './schema-worker.ts';

export type SchemaValidator = ReturnType<typeof createSchemaValidator>;

export interface SchemaValidatorOptions {
  metrics: Metrics;
  log: Logger;
  clock: Clock;
  /** Milliseconds for one validation, compilation included. */
  jobMs?: number;
  waitMs?: number;
  /** Milliseconds after which an idle worker ends. */
  idleMs?: number;
}

const noFindings: Findings = { errors: [], truncated: false };

export function createSchemaValidator({ metrics, log, clock, ...times }: SchemaValidatorOptions) {
  const suspensions = createSuspensions(clock);
  const suspended = new prom.Counter({
    name: 'formgate_schema_suspensions_total',
    help: 'Suspensions of data schemas that exceeded the limits of time or memory for three forms',
    registers: [metrics.registry],
  });
  const workers = new LimitedWorkers<SchemaJob, SchemaResult>({
    script: new URL('./schema-worker.ts', import.meta.url),
    name: 'schema',
    metrics,
    busy: 'Too many forms of this tenant are being validated. Try again.',
    ...times,
  });

  function requireActive(definition: FormDefinition, key: string): void {
    const suspension = suspensions.find(key);
    if (suspension) throw suspendedProblem(definition, suspension, clock());
  }

  return {
    /**
     * Returns the invalid fields of a form's data, at most 20. `data` is JSON text. Throws Problem `definition-invalid`
     * if the schema is invalid or suspended, and `busy` if too many validations are waiting or this one waited too
     * long.
     */
    async validate(
      form: { tenantId: string; formId: string },
      definition: FormDefinition,
      data: string,
    ): Promise<Findings> {
      const { tenantId, formId } = form;
      if (definition.schemaText === 'true' || definition.schemaText === '{}') return noFindings;
      const key = `${tenantId}\0${definition.id}\0${definition.schemaKey}`;
      const claim = { tenant: tenantId, member: definition.id };
      requireActive(definition, key);
      const job = { key, schema: definition.schemaText, data };
      const reply = await workers.run(claim, job, () => requireActive(definition, key));
      // A partial result means that only the search for further errors exceeded the limits. That does not count against
      // the schema.
      const result = 'done' in reply ? reply.done : 'exceeded' in reply ? reply.partial : { unusable: reply.failed };
      if (result !== undefined) {
        suspensions.succeeded(key);
        if ('unusable' in result) throw unusable(definition.id, result.unusable);
        return result;
      }
      const suspension = suspensions.exceeded(key, formId);
      if (suspension) {
        suspended.inc();
        log.warn({ tenant: tenantId, definition: definition.id, until: suspension.until }, 'data schema suspended');
      }
      throw unusable(definition.id, 'Its data schema takes too much time or memory.');
    },
    close: () => workers.close(),
  };
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
 * Suspends a schema after it exceeded its limits for three different forms. The first suspension lasts 60 s; each
 * further excess doubles that, up to an hour. A success clears the schema's record. Each process keeps records of its
 * own validations, for a bounded number of schemas.
 */
function createSuspensions(clock: Clock) {
  const records = new LRUCache<string, Entry>({ max: 10_000 });
  return {
    /** Returns undefined if the schema is not suspended. */
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
      record.suspension = { since, until: new Date(since.getTime() + record.lengthMs) };
      record.lengthMs = Math.min(longestMs, record.lengthMs * 2);
      return record.suspension;
    },
    succeeded: (key: string) => records.delete(key),
  };
}
