// Starts, shows, submits, deletes and forgets a form. Forgetting removes the form's cookie from the browser. After the
// start, only a browser with the form's cookie has access. A browser gets this cookie when it starts the form, or when
// the applicant enters a code.
import type { Request } from 'express';
import { type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import type { RequestHeader } from '../../service/http/request-header.ts';
import { entityTag, referenceOf } from '../forms/form.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import { countDraft, isRefusal } from './counts.ts';
import { hideForeignForm, notForApplicants, openFormOf } from './guards.ts';
import {
  auditedByApi,
  base,
  definitionParams,
  deletedCookie,
  failures,
  formFailures,
  formParams,
  formPath,
  openedForm,
  setCookie,
  smallBody,
  startBody,
  startedForm,
  submittedForm,
} from './schema.ts';

export function startFormRoute(options: ApplyRoutesOptions): Route {
  const { guards, api, cookies, hashes } = options;
  return route({
    method: 'post',
    path: `${base}/definitions/:definition/forms`,
    audit: auditedByApi,
    summary: 'Start a draft in this browser',
    description: 'Sets the cookie with which this browser may save and submit the draft. Reading it takes a code.',
    tag: 'Intake application',
    guards: guards.forAnyone,
    params: definitionParams,
    body: startBody,
    bodyLimit: smallBody,
    headers: { 'Idempotency-Key': idempotencyKeyHeader('A UUID for each draft, the same for its retries') },
    responses: {
      201: { description: 'The draft', schema: startedForm, headers: setCookie },
      ...failures,
      409: {
        description:
          'The definition cannot be used, it accepts no applications now (`opens`, `closes`), or the tenant stores too much',
      },
      422: { description: 'The idempotency key was used with another body' },
    },
    async handle({ params, body }, request, response) {
      const { id: tenantId } = tenantOf(response);
      const key = requiredKey(request);
      const browser = cookies.browserOf(request, response);
      const applicant = {
        ...(body.name !== undefined && body.name.trim() !== '' && { addressAs: body.name }),
        channels: [{ channel: 'email', address: body.email }],
        language: body.language,
      };
      const draft = JSON.stringify({ definitionId: params.definition, applicant });
      const idempotencyKey = hashes.idempotencyKey(browser, key);
      const counted = { email: body.email, request: `${idempotencyKey}\0${draft}` };
      const { uncount, recount } = await countDraft(options, counted, response);
      const apiResponse = await api
        .call({
          method: 'POST',
          path: '/forms',
          tenantId,
          body: draft,
          headers: { 'idempotency-key': idempotencyKey },
          context: response,
        })
        .catch(async (error: unknown) => {
          if (isRefusal(error)) await uncount();
          return inTermsOfThePage(error);
        });
      await recount();
      const { id, created } = JSON.parse(apiResponse.text) as { id: string; created: string };
      response.locals.formId = id;
      // A repeated start neither extends the cookie's life, nor replaces a cookie that the browser got for a code.
      if (cookies.find(request, response, id)?.code === undefined)
        cookies.issue(request, response, { formId: id, tenantId, opened: Date.parse(created) });
      response.status(201).json({ id, created, etag: firstTag });
    },
  });
}

/**
 * The ETag of a form that has not been saved since its start. A repeated start request returns this ETag, even if the
 * form has been saved in the meantime. In that case, the next save gets 412.
 */
const firstTag = entityTag('1');

const idempotencyKeyHeader = (description: string): RequestHeader => ({
  description,
  isRequired: true,
  example: '01920d4e-7b5a-7c3e-9f5e-7c1e3f0c8e2d',
});

function requiredKey(request: Request): string {
  const key = request.get('idempotency-key') ?? '';
  if (/^[\x21-\x7e]{16,128}$/.test(key)) return key;
  throw invalidRequest([
    { pointer: '/headers/idempotency-key', detail: 'must be 16 to 128 visible characters, such as a UUID' },
  ]);
}

/**
 * Replaces the JSON pointers of the errors, which point into the form service's request body, with pointers into the
 * body that the page sent.
 */
function inTermsOfThePage(error: unknown): never {
  if (!(error instanceof Problem) || error.slug !== 'invalid-request' || !error.errors) return notForApplicants(error);
  throw invalidRequest(
    error.errors.map(({ pointer, detail }) => ({
      pointer: pointer.startsWith('/applicant/channels') ? '/email' : pointer.replace('/applicant/addressAs', '/name'),
      detail,
    })),
  );
}

export function openedFormRoute({ guards, api, cookies }: ApplyRoutesOptions): Route {
  return route({
    method: 'get',
    path: formPath,
    summary: 'Read the status of a form that this browser has opened',
    tag: 'Intake application',
    guards: guards.forForm,
    params: formParams,
    responses: { 200: { description: 'The form without its data', schema: openedForm }, ...formFailures },
    async handle({ params: { formId } }, _request, response) {
      const path = `/forms/${formId}`;
      const call = api.call({ method: 'GET', path, tenantId: tenantOf(response).id, context: response });
      const { text } = await call.catch(hideForeignForm);
      const form = JSON.parse(text) as Record<string, unknown> & { applicant?: { language?: string } };
      const { id, definitionId, status, created, lastAccessed, submitted, lockOn, deleteOn } = form;
      response.json({
        ...{ id, definitionId, status, created, lastAccessed, submitted, lockOn, deleteOn },
        reference: referenceOf(formId),
        readable: cookies.codeOf(openFormOf(response)) !== undefined,
        language: form.applicant?.language,
      });
    },
  });
}

export function submissionRoute({ guards, api, cookies, hashes }: ApplyRoutesOptions): Route {
  return route({
    method: 'post',
    path: `${formPath}/submission`,
    audit: auditedByApi,
    summary: 'Submit the form',
    tag: 'Intake application',
    guards: guards.forForm,
    params: formParams,
    headers: {
      'Idempotency-Key': idempotencyKeyHeader('A UUID for the submission, the same for its retries'),
      'If-Match': 'The ETag of the version that the page shows. Without it, the newest version is submitted',
    },
    responses: {
      200: { description: 'Submitted; the number is for the receipt', schema: submittedForm },
      400: { description: 'The form data is not complete: `errors` with pointers that begin with `/data`' },
      ...formFailures,
      409: {
        description:
          'The form is locked, it is not a draft, its definition cannot be used, or it accepts no applications now (`opens`, `closes`)',
      },
      412: { description: 'The form data was saved elsewhere since: read it, and let the applicant decide' },
    },
    async handle({ params: { formId } }, request, response) {
      const browser = cookies.browserOf(request, response);
      const call = {
        method: 'POST' as const,
        path: `/forms/${formId}`,
        tenantId: tenantOf(response).id,
        body: '{"operation":"submit"}',
        headers: {
          'idempotency-key': hashes.idempotencyKey(browser, requiredKey(request)),
          'if-match': request.get('if-match'),
        },
        context: response,
      };
      const { text } = await api.call(call).catch(hideForeignForm);
      const { id, status, submitted } = JSON.parse(text) as Record<string, unknown>;
      response.json({ id, number: referenceOf(formId), status, submitted });
    },
  });
}

export function deleteDraftRoute({ guards, api, cookies }: ApplyRoutesOptions): Route {
  return route({
    method: 'delete',
    path: formPath,
    audit: auditedByApi,
    summary: 'Delete the draft and the applicant’s information',
    tag: 'Intake application',
    guards: [...guards.forForm, guards.openReadSession],
    params: formParams,
    responses: {
      204: { description: 'The draft is deleted', headers: deletedCookie },
      ...formFailures,
      409: { description: 'The form is locked, it is not a draft, or it is on hold' },
    },
    async handle({ params: { formId } }, _request, response) {
      const headers = { 'x-form-code': cookies.codeOf(openFormOf(response)) };
      const path = `/forms/${formId}`;
      const call = api.call({ method: 'DELETE', path, tenantId: tenantOf(response).id, headers, context: response });
      await call.catch(hideForeignForm);
      cookies.clear(response, formId);
      response.status(204).end();
    },
  });
}

export function forgetFormRoute({ guards, cookies }: ApplyRoutesOptions): Route {
  return route({
    method: 'delete',
    path: `${formPath}/cookie`,
    audit: { unaudited: 'It only deletes a cookie.' },
    summary: 'Forget the form in this browser',
    description: 'For shared computers. The form itself stays as it is.',
    tag: 'Intake application',
    guards: guards.forAnyone,
    params: formParams,
    responses: { 204: { description: 'The browser has no cookie of the form', headers: deletedCookie }, ...failures },
    handle({ params: { formId } }, _request, response) {
      cookies.clear(response, formId);
      response.status(204).end();
    },
  });
}
