// Reads and saves the data of a form that this browser has opened.
import type { Request, Response } from 'express';
import { type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { entityTag, untransformed } from '../forms/form.ts';
import { formDataResponse } from '../forms/responses.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import { codeEntryRequired, hideForeignForm, insteadOf, openFormOf } from './guards.ts';
import { auditedByApi, formFailures, formParams, formPath, saveBody, savedForm } from './schema.ts';

const path = `${formPath}/data`;
const etag = { ETag: 'Identifies this version of the form data; for If-Match' };

export function openedDataRoute({ guards, api, cookies }: ApplyRoutesOptions): Route {
  return route({
    method: 'get',
    // This GET has an effect: the form service updates the form's `lastAccessed`.
    getHasEffects: true,
    path,
    audit: auditedByApi,
    summary: 'Read the form data, after a code was entered in this browser',
    tag: 'Intake application',
    guards: [...guards.forForm, guards.openReadSession],
    params: formParams,
    responses: { 200: { description: 'The form data', schema: formDataResponse, headers: etag }, ...formFailures },
    async handle({ params: { formId } }, _request, response) {
      const headers = { 'x-form-code': cookies.codeOf(openFormOf(response)) };
      const call = { method: 'GET', path: `/forms/${formId}/data`, headers, context: response } as const;
      const apiResponse = await api
        .call({ ...call, tenantId: tenantOf(response).id })
        .catch(sessionEnded)
        .catch(hideForeignForm);
      sendTag(response, apiResponse.etag);
      response.type('application/json').send(apiResponse.text);
    },
  });
}

/**
 * Asks for a new code if the form service rejects the code in the cookie. The form service may end a read session
 * before the cookie's 30 minutes are over.
 */
const sessionEnded = insteadOf(['invalid-code'], codeEntryRequired);

export function saveDataRoute(options: ApplyRoutesOptions): Route {
  const { guards } = options;
  return route({
    method: 'put',
    path,
    audit: auditedByApi,
    summary: 'Save the form data',
    tag: 'Intake application',
    guards: guards.forForm,
    params: formParams,
    body: saveBody,
    headers: {
      'If-Match': {
        description: 'The ETag of the version that the page shows',
        isRequired: true,
        example: entityTag('1'),
      },
      'Save-Id': 'A UUID for each save, the same for its retries: a retry of a save that was done gets its response',
    },
    responses: {
      200: { description: 'Saved', schema: savedForm, headers: etag },
      ...formFailures,
      409: { description: 'The form is locked, it is not a draft, or the tenant stores too much' },
      412: { description: 'The form data was saved elsewhere since: read it, and let the applicant decide' },
    },
    // Only the texts are passed on, so that the parsed body does not stay in memory during the call. They are forwarded
    // unparsed, because parsing and serialising could change numbers.
    handle: ({ params: { formId }, bodyText }, request, response) =>
      save(options, formId, `{"data":${bodyText('data')},"files":${bodyText('files')}}`, request, response),
  });
}

async function save(
  { api, cookies, hashes, store, clock, log }: ApplyRoutesOptions,
  formId: string,
  body: string,
  request: Request,
  response: Response,
): Promise<void> {
  const { id: tenantId } = tenantOf(response);
  const saveHashes = saveHashesOf(request, (id) => hashes.save(cookies.browserOf(request, response), id));
  const headers = { 'if-match': requiredTag(request) };
  const call = { method: 'PUT', path: `/forms/${formId}/data`, tenantId, body, headers, context: response } as const;
  const tag = await api.call(call).then(
    async (apiResponse) => {
      if (saveHashes && apiResponse.etag) {
        const save = { formId, saveHashes, etag: apiResponse.etag, now: clock() };
        // The data is saved. If this request failed now, the page would retry it, and the retry would get 412.
        await store
          .keepSave(tenantId, save)
          .catch((error: unknown) => log.warn({ err: error }, 'save not recorded for retries'));
      }
      return apiResponse.etag;
    },
    async (error: unknown) => {
      const isStale = error instanceof Problem && error.slug === 'stale';
      const done = isStale && saveHashes ? await store.findSave(tenantId, formId, saveHashes) : undefined;
      return done ?? hideForeignForm(error);
    },
  );
  sendTag(response, tag);
  response.json({ saved: clock().toISOString() });
}

function sendTag(response: Response, tag: string | undefined): void {
  if (tag) response.set({ ETag: tag, 'Cache-Control': untransformed });
}

function requiredTag(request: Request): string {
  const given = request.get('if-match')?.trim() ?? '';
  if (/^(?:W\/)?"\d{1,18}"$/.test(given)) return given;
  throw invalidRequest([{ pointer: '/headers/if-match', detail: 'must be the ETag of the form data' }]);
}

function saveHashesOf(request: Request, hashesOf: (id: string) => Buffer[]): Buffer[] | undefined {
  const id = request.get('save-id');
  if (id === undefined) return undefined;
  if (/^[\w-]{16,64}$/.test(id)) return hashesOf(id);
  throw invalidRequest([
    { pointer: '/headers/save-id', detail: 'must be 16 to 64 letters, digits, hyphens or underscores, such as a UUID' },
  ]);
}
