// Executes the schemas, patterns and templates of tenants in worker processes with limits of time and memory, and
// shares the workers fairly between tenants. The code of tenants never runs in the main process.
import type { FieldError } from '../service/http/problem.ts';
import { parseJson } from '../service/json-parser.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import { programModule } from '../service/program-files.ts';
import { LimitedWorkers } from '../service/workers/limited-workers.ts';
import type { JobReply } from '../service/workers/worker-process.ts';
import type { Invalid, Validation } from './configuration/validation.ts';
import type { Template } from './notifications/notification-type.ts';
import { RenderFailure } from './notifications/render-failure.ts';
import type { Notice, StoredNoticeData } from './notifications/template.ts';
import type { CodeQuestion, CodeResult } from './tenant-code-worker.ts';
import type { CodePiece } from './written-code.ts';

/**
 * Each method throws Problem `busy` if too many jobs wait, or if its own job waits too long, and `unavailable` if
 * `close` interrupts it. `tenant` is the owner of the code.
 */
export interface TenantCode {
  /**
   * Validates a value. `schema` is JSON text. If the schema exceeds the limit of time or memory, the value counts as
   * invalid.
   */
  validate(tenant: string, schema: string, value: unknown): Promise<{ valid: true } | Invalid>;
  /**
   * Validates a value as `validate` does, and adds the schema's defaults. A value whose JSON text would be longer than
   * `longest` characters with the defaults is invalid.
   */
  complete(tenant: string, schema: unknown, value: unknown, longest: number): Promise<Validation>;
  /** Returns the errors in schemas and templates that are about to be stored. */
  check(tenant: string, pieces: CodePiece[]): Promise<FieldError[]>;
  /** Renders a notice. Throws RenderFailure if the template is invalid, or exceeds the limit of time or memory. */
  render(tenant: string, template: Template, data: StoredNoticeData): Promise<Notice>;
  close(): Promise<void>;
}

/**
 * Number of pieces of code that one job checks. The number keeps a large document from exceeding the limits of a job.
 */
const piecesOfJob = 50;
/** Maximum number of new pieces of code in one edit. */
const mostPieces = 2_000;

const tooMuch = { time: 'takes too much time', memory: 'takes too much memory' };

export function createTenantCode({ metrics }: { metrics: Metrics }): TenantCode {
  const workers = new LimitedWorkers<CodeQuestion, CodeResult>({
    script: programModule('src/platform-server/tenant-code-worker.ts'),
    name: 'tenant-code',
    busy: 'Too many schemas and templates of this tenant are being executed. Try again.',
    waitMs: 5_000,
    // More than the default, because a value can be as large as BODY_LIMIT.
    memoryMb: 96,
    metrics,
  });
  const run = (tenant: string, question: CodeQuestion) =>
    workers.run({ tenant, member: question.kind }, () => question).then(outcomeOf);

  async function checkPart(tenant: string, pieces: CodePiece[]): Promise<FieldError[]> {
    const outcome = await run(tenant, { kind: 'check', pieces });
    if ('failure' in outcome)
      return [{ pointer: pieces.length === 1 ? (pieces[0]?.pointer ?? '') : '', detail: outcome.detail }];
    return outcome.kind === 'invalid' ? outcome.errors : [];
  }

  return {
    validate: (tenant, schema, value) => validate(run, tenant, { schema, value, longest: undefined }),
    complete: (tenant, schema, value, longest) =>
      validate(run, tenant, { schema: JSON.stringify(schema), value, longest }),
    async check(tenant, pieces) {
      // Definitions often contain the same schema, so each text is checked only once, at its first position.
      const distinct = [
        ...new Map(pieces.toReversed().map((piece) => [`${piece.kind}\0${piece.source}`, piece])).values(),
      ];
      distinct.reverse();
      if (distinct.length > mostPieces)
        return [{ pointer: '', detail: `has more than ${mostPieces} new schemas and templates` }];
      const errors: FieldError[] = [];
      for (let start = 0; start < distinct.length && errors.length === 0; start += piecesOfJob)
        errors.push(...(await checkPart(tenant, distinct.slice(start, start + piecesOfJob))));
      return errors;
    },
    async render(tenant, template, data) {
      const outcome = await run(tenant, { kind: 'render', template, data });
      if ('failure' in outcome) throw new RenderFailure(outcome.failure, outcome.detail);
      if (outcome.kind === 'rendered') return outcome.notice;
      throw new RenderFailure('template', outcome.kind === 'unrendered' ? outcome.detail : 'fails when it renders');
    },
    close: () => workers.close(),
  };
}

type Run = (tenant: string, question: CodeQuestion) => Promise<CodeResult | Failed>;

async function validate(
  run: Run,
  tenant: string,
  { schema, value, longest }: { schema: string; value: unknown; longest: number | undefined },
): Promise<Validation> {
  const question = { schema, value: JSON.stringify(value), longest };
  const outcome = await run(tenant, { kind: 'validate', ...question });
  if ('failure' in outcome)
    return { valid: false, pointer: '', detail: `cannot be validated: its schema ${outcome.detail}` };
  if (outcome.kind === 'valid')
    return { valid: true, value: outcome.value === undefined ? value : parseJson(outcome.value) };
  const [first] = outcome.kind === 'invalid' ? outcome.errors : [];
  return { valid: false, pointer: first?.pointer ?? '', detail: first?.detail ?? 'is not valid' };
}

interface Failed {
  failure: 'template' | 'time' | 'memory';
  detail: string;
}

function outcomeOf(reply: JobReply<CodeResult>): CodeResult | Failed {
  if ('done' in reply) return reply.done;
  if ('failed' in reply) return { failure: 'template', detail: 'recurses without end' };
  return { failure: reply.exceeded, detail: tooMuch[reply.exceeded] };
}
