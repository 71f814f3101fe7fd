// Reads and saves form data. For an intake application, a save and a read in an open session each take one statement,
// whose conditions contain the policy (decision 0019). If the statement finds no row, further queries determine the
// reason.
import type { Response } from 'express';
import { type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import type { Findings } from '../definitions/json-schema.ts';
import {
  type Authorized,
  codeOf,
  type FormRequest,
  formRequestOf,
  keepsChanging,
  mayUpdateData,
  revisionsOf,
  stale,
} from './access.ts';
import { describeAction } from './catalogue.ts';
import type { FormDataText, Save } from './data-store.ts';
import { entityTag, untransformed } from './form.ts';
import { intakeRole, statusesOf } from './policy.ts';
import { formDataResponse, formFailures, savedDataResponse } from './responses.ts';
import type { FormRoutesOptions } from './routes.ts';
import { codeQuery, formParams, updateQuery } from './schema.ts';

const path = '/form/v1/forms/:formId/data';
const etag = { ETag: 'Identifies this version of the form data; for If-Match' };

export function readDataRoute(options: FormRoutesOptions): Route {
  const { bearer, tenant } = options;
  return route({
    method: 'get',
    // A read sets `lastAccessed`. If the caller sends a code without an open read session, the read also counts as an
    // attempt and uses up the code.
    getHasEffects: true,
    path,
    audit: 'form.read-data',
    summary: 'Read the data of a form',
    description: `${describeAction('read-data')} Letter case, spaces and hyphens of the code do not matter. A verified code opens a read session: for 30 minutes the same code works again from the same service account.`,
    guards: [bearer, tenant],
    params: formParams,
    query: codeQuery,
    headers: { 'X-Form-Code': 'The code that the applicant received; preferred to the query parameter' },
    responses: {
      200: { description: 'The form data', schema: formDataResponse, headers: etag },
      400: { description: 'An intake application sent no code' },
      403: { description: 'The caller may not read this form data, or the code is wrong, expired or used' },
      ...formFailures,
      409: { description: 'The form is locked, or its definition cannot be used' },
      429: { description: 'Too many wrong codes', headers: { 'Retry-After': 'Seconds until a code works again' } },
    },
    async handle({ params, query }, request, response) {
      const formRequest = formRequestOf(response, params.formId);
      const code = codeOf(request, query.code);
      sendFormData(response, await read(options, formRequest, code));
    },
  });
}

async function read(
  options: FormRoutesOptions,
  formRequest: FormRequest,
  code: string | undefined,
): Promise<FormDataText> {
  const { formData, access, hashes, verification, clock } = options;
  const { caller, tenantId, formId } = formRequest;
  const { issuer, subject } = caller;
  const inSession = () =>
    code === undefined || !caller.roles.has(intakeRole)
      ? undefined
      : formData.readInSession({
          tenantId,
          formId,
          issuer,
          subject,
          now: clock(),
          codeHash: hashes.code(formId, code),
        });
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const found = await inSession();
    if (found) return found;
    const { form, role } = await access.authorize('read-data', formRequest);
    if (role === 'intake') {
      if (code === undefined)
        throw new Problem('code-required', 'Reading the form data requires the applicant’s code.');
      await verification.verify({ form, account: caller, code });
    } else {
      const open = await formData.read({ tenantId, formId, now: clock() }, statusesOf('read-data', role));
      if (open) return open;
    }
  }
  throw keepsChanging();
}

export function updateDataRoute(options: FormRoutesOptions): Route {
  const { bearer, tenant, access, storage } = options;
  return route({
    method: 'put',
    path,
    audit: 'form.save',
    summary: 'Save the data of a draft',
    description: `${describeAction('update-data')} Members that are sent replace the stored ones; others stay. An intake application without an open read session must send both members.`,
    guards: [bearer, tenant, mayUpdateData(access), storage.roomForSave],
    params: formParams,
    query: updateQuery,
    body: options.dataBody,
    headers: { 'If-Match': 'Save only over this version of the form data. Without it, the last save wins' },
    responses: {
      200: { description: 'The form data as saved', schema: savedDataResponse, headers: etag },
      400: { description: 'The body is invalid, or a member is missing' },
      403: { description: 'The caller may not change this form' },
      ...formFailures,
      409: {
        description: 'The form is locked or not a draft, its definition cannot be used, or the tenant stores too much',
      },
      412: {
        description:
          'The form data has changed since it was read, perhaps by an earlier request of the caller whose response was lost',
      },
    },
    handle({ params, query, bodyText }, request, response) {
      const sent = { data: bodyText('data'), files: bodyText('files'), revisions: revisionsOf(request) };
      return saveFormData(options, formRequestOf(response, params.formId), sent, query.validate, response);
    },
  });
}

type Sent = Pick<Save, 'data' | 'files' | 'revisions'>;

async function saveFormData(
  options: FormRoutesOptions,
  formRequest: FormRequest,
  sent: Sent,
  validates: boolean,
  response: Response,
): Promise<void> {
  const { authorized } = response.locals;
  const findings = validates ? await findProblems(options, formRequest, sent.data, authorized) : undefined;
  const saved = await save(options, formRequest, sent, authorized);
  options.storage.saved(formRequest.tenantId, (sent.data?.length ?? 0) + (sent.files?.length ?? 0));
  sendFormData(response, saved, findings);
}

async function save(
  { formData, access, codes, clock }: FormRoutesOptions,
  formRequest: FormRequest,
  sent: Sent,
  authorized: Authorized | undefined,
): Promise<FormDataText> {
  const { caller, tenantId, formId } = formRequest;
  const { data, files, revisions } = sent;
  const isWhole = data !== undefined && files !== undefined;
  const common = { tenantId, formId, ...sent };
  const asIntake = (): Save => ({
    ...common,
    now: clock(),
    anonymousOnly: true,
    session: isWhole ? undefined : caller,
  });
  const saved = caller.roles.has(intakeRole) ? await formData.save(asIntake()) : undefined;
  if (saved) return saved;
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const known = attempt === 0 ? authorized : undefined;
    const { form, role } = known ?? (await access.authorize('update-data', formRequest));
    // `known` is the form that the guard read before the request body. Its revision may be outdated, so it is not
    // compared here. The statement compares the revision in any case.
    if (!known && revisions && !revisions.includes(form.revision)) throw stale();
    if (role === 'intake' && !isWhole && !(await codes.hasSession({ tenantId, formId, account: caller, now: clock() })))
      throw missingMember(data === undefined ? '/data' : '/files');
    const done = await formData.save(
      role === 'intake' ? asIntake() : { ...common, now: clock(), anonymousOnly: false, session: undefined },
    );
    if (done) return done;
  }
  throw keepsChanging();
}

/**
 * Returns the problems that a submit of the data would report. If the data cannot be validated at the moment, for
 * example because the schema is suspended, this is the only problem, and the data is saved anyway. Throws the
 * problems of `authorize`.
 */
async function findProblems(
  { access, forms, validator }: FormRoutesOptions,
  formRequest: FormRequest,
  data: string | undefined,
  authorized: Authorized | undefined,
): Promise<Findings> {
  const { form } = authorized ?? (await access.authorize('update-data', formRequest));
  const text = data ?? (await forms.peek(formRequest))?.data;
  try {
    const definition = await access.definitionOf(form);
    return await validator.validate(formRequest, definition, text ?? '{}');
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { errors: [{ pointer: '', detail: error.message }], truncated: false };
  }
}

/** Sends the form data as the text that the database returned, without parsing it. */
function sendFormData(response: Response, { body, revision }: FormDataText, findings?: Findings): void {
  const text = findings ? `${body.slice(0, -1)}${problemMembers(findings)}}` : body;
  response.setHeader('ETag', entityTag(revision));
  response.setHeader('Cache-Control', untransformed);
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.end(text);
}

function problemMembers({ errors, truncated }: Findings): string {
  return `,"problems":${JSON.stringify(errors)}${truncated ? ',"truncated":true' : ''}`;
}

/**
 * The Problem for a missing member `data` or `files`. Without an open read session, a caller must send both members,
 * because the response may contain only what the caller sent.
 */
function missingMember(pointer: string): Problem {
  const detail = 'is required of an intake application that has no open read session';
  return invalidRequest([{ pointer, detail }]);
}
