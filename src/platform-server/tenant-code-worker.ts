// The worker that executes the schemas and templates of tenants.
import type { FieldError } from '../service/http/problem.ts';
import { parseJson } from '../service/json-parser.ts';
import { hasMoreValues, mostJsonValues, tooManyValues } from '../service/json-size.ts';
import { serveJobs } from '../service/workers/limited-worker.ts';
import { tooLong } from './configuration/configuration.ts';
import { createValidate, schemaFault } from './configuration/validation.ts';
import type { Template } from './notifications/notification-type.ts';
import {
  createNoticeRenderer,
  faultOf,
  type Notice,
  type NoticeData,
  type StoredNoticeData,
  templateFault,
} from './notifications/template.ts';
import type { CodePiece } from './written-code.ts';

/**
 * The input of a job. `schema` and `value` are JSON texts. `longest` is the maximum length in characters of the value
 * with the schema's defaults. Undefined if the caller does not need the defaults.
 */
export type CodeQuestion =
  | { kind: 'validate'; schema: string; value: string; longest: number | undefined }
  | { kind: 'check'; pieces: CodePiece[] }
  | { kind: 'render'; template: Template; data: StoredNoticeData };

/**
 * The result of a job. `value` is the JSON text of a valid value with the schema's defaults. Undefined if the schema
 * added no default, or if the caller does not need the defaults.
 */
export type CodeResult =
  | { kind: 'valid'; value: string | undefined }
  | { kind: 'invalid'; errors: FieldError[] }
  | { kind: 'rendered'; notice: Notice }
  | { kind: 'unrendered'; detail: string };

const validate = createValidate();
const render = createNoticeRenderer();
const listedErrors = 20;

serveJobs<CodeQuestion, CodeResult>((question) => {
  switch (question.kind) {
    case 'validate':
      return validateValue(question);
    case 'check':
      return { kind: 'invalid', errors: faultsOf(question.pieces) };
    case 'render':
      return renderNotice(question.template, parsed(question.data));
  }
});

/**
 * A few bytes of a value can get megabytes of defaults. A value that is too large with its defaults is refused here, so
 * that the main process never holds it.
 */
function validateValue({ schema, value, longest }: Extract<CodeQuestion, { kind: 'validate' }>): CodeResult {
  const result = validate(parseJson(schema), parseJson(value));
  if (!result.valid) return { kind: 'invalid', errors: [{ pointer: result.pointer, detail: result.detail }] };
  if (longest === undefined) return { kind: 'valid', value: undefined };
  const text = JSON.stringify(result.value);
  if (text.length > longest) return { kind: 'invalid', errors: [tooLong(longest)] };
  if (text !== value && hasMoreValues(text, mostJsonValues))
    return { kind: 'invalid', errors: [{ pointer: '', detail: tooManyValues }] };
  return { kind: 'valid', value: text === value ? undefined : text };
}

function faultsOf(pieces: CodePiece[]): FieldError[] {
  const errors: FieldError[] = [];
  for (const { kind, pointer, source } of pieces) {
    const detail = kind === 'schema' ? schemaFault(source) : templateFault(source);
    if (detail !== undefined) errors.push({ pointer, detail });
    if (errors.length === listedErrors) break;
  }
  return errors;
}

function parsed({ event, ...data }: StoredNoticeData): NoticeData {
  return { ...data, event: { ...event, context: parseJson(event.context), payload: parseJson(event.payload) } };
}

function renderNotice(template: Template, data: NoticeData): CodeResult {
  try {
    return { kind: 'rendered', notice: render(template, data) };
  } catch (error) {
    return { kind: 'unrendered', detail: faultOf(error) };
  }
}
