// The worker that executes the schemas and templates of tenants.
import type { FieldError } from '../service/http/problem.ts';
import { serveJobs } from '../service/workers/limited-worker.ts';
import { createValidate, schemaFault } from './configuration/validation.ts';
import type { Template } from './notifications/notification-type.ts';
import {
  createNoticeRenderer,
  faultOf,
  type Notice,
  type NoticeData,
  templateFault,
} from './notifications/template.ts';
import type { CodePiece } from './written-code.ts';

/** The input of a job. `schema` and `value` are JSON texts. */
export type CodeQuestion =
  | { kind: 'validate'; schema: string; value: string }
  | { kind: 'check'; pieces: CodePiece[] }
  | { kind: 'render'; template: Template; data: NoticeData };

/**
 * The result of a job. `value` is the JSON text of a valid value with the schema's defaults. Undefined if the schema
 * added no default.
 */
export type CodeAnswer =
  | { kind: 'valid'; value: string | undefined }
  | { kind: 'invalid'; errors: FieldError[] }
  | { kind: 'rendered'; notice: Notice }
  | { kind: 'unrendered'; detail: string };

const validate = createValidate();
const render = createNoticeRenderer();
const listedErrors = 20;

serveJobs<CodeQuestion, CodeAnswer>((question) => {
  switch (question.kind) {
    case 'validate':
      return validateValue(question.schema, question.value);
    case 'check':
      return { kind: 'invalid', errors: faultsOf(question.pieces) };
    case 'render':
      return renderNotice(question.template, question.data);
  }
});

function validateValue(schema: string, value: string): CodeAnswer {
  const result = validate(JSON.parse(schema), JSON.parse(value));
  if (!result.valid) return { kind: 'invalid', errors: [{ pointer: result.pointer, detail: result.detail }] };
  const text = JSON.stringify(result.value);
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

function renderNotice(template: Template, data: NoticeData): CodeAnswer {
  try {
    return { kind: 'rendered', notice: render(template, data) };
  } catch (error) {
    return { kind: 'unrendered', detail: faultOf(error) };
  }
}
