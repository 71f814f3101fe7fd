// The routes that create, list, read and delete forms.
import { randomUUIDv7 } from 'node:crypto';
import type { Caller } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { callerOf, tenantOf } from '../../service/http/request-context.ts';
import type { CodeHashes } from '../codes/code.ts';
import type { CodeStore } from '../codes/store.ts';
import type { Verification } from '../codes/verification.ts';
import type { SchemaValidator } from '../definitions/schema-validator.ts';
import type { ReadExpiryDates } from '../expiry/dates.ts';
import { codeOf, type FormAccess, type FormRequest, formRequestOf, keepsChanging } from './access.ts';
import { describeAction } from './catalogue.ts';
import type { CreationStore, NewForm } from './creation-store.ts';
import type { DataStore } from './data-store.ts';
import {
  type Applicant,
  type ApplicantInput,
  addressAsProblem,
  createdView,
  formView,
  normaliseApplicant,
  noticeChannels,
} from './form.ts';
import type { Pseudonyms } from './history.ts';
import { createClaim, type FindResponse, type IdempotencyClaim } from './idempotency.ts';
import type { FormList } from './list-store.ts';
import { type CreatingRole, decideCreate, statusesOf } from './policy.ts';
import { createdForm, failures, formFailures, form as formResponse } from './responses.ts';
import { codeQuery, createBody, type createDataBody, formParams, smallBody, tenantQuery } from './schema.ts';
import type { FormStore } from './store.ts';

/** The dependencies of the routes for forms, form data and operations. */
export interface FormRoutesOptions {
  /** Accepts tokens issued for this service. */
  bearer: Guard;
  tenant: Guard;
  forms: FormStore;
  list: FormList;
  expiryDates: ReadExpiryDates;
  creation: CreationStore;
  formData: DataStore;
  access: FormAccess;
  validator: SchemaValidator;
  findResponse: FindResponse;
  codes: Pick<CodeStore, 'hasSession'>;
  verification: Verification;
  hashes: CodeHashes;
  /** Names accounts in histories. */
  pseudonyms: Pseudonyms;
  /** Key for the HMACs of idempotency keys and bodies. */
  secret: string;
  dataBody: ReturnType<typeof createDataBody>;
  clock: Clock;
  /** Called after each commit that wrote to the outbox. */
  changed(): void;
}

const collection = '/form/v1/forms';

export function createFormRoute(options: FormRoutesOptions): Route {
  const { bearer, tenant } = options;
  return route({
    method: 'post',
    path: collection,
    summary: 'Create a draft form',
    description:
      'By an intake application, if the definition permits anonymous applicants, or by a caller with one of the definition’s applicant or clerk roles.',
    guards: [bearer, tenant],
    query: tenantQuery,
    body: createBody,
    bodyLimit: smallBody,
    headers: { 'Idempotency-Key': 'The same key and body get the same response for 24 hours' },
    answers: {
      201: { description: 'The draft', schema: createdForm, headers: { Location: 'Path of the form' } },
      400: { description: 'The body is invalid, or an intake application names no channel of the applicant' },
      403: { description: 'The caller may not create forms of this definition' },
      404: { description: 'There is no such definition' },
      409: { description: 'The definition cannot be used, or the applicant already has a form of it: `formId`' },
      422: { description: 'The idempotency key was used with another body' },
      ...failures,
    },
    async handle({ body }, request, response) {
      const [caller, tenantId] = [callerOf(response), tenantOf(response).id];
      const definition = await options.access.namedDefinition(tenantId, body.definitionId);
      const role = decideCreate(caller, definition, body.applicant !== undefined);
      await options.validator.requireUsable(tenantId, definition);
      const now = options.clock();
      const key = request.get('idempotency-key');
      const { issuer, subject } = caller;
      const scope = { tenantId, issuer, subject, route: `POST ${collection}`, body, now };
      const claim = key === undefined ? undefined : createClaim(options.secret, key, scope);
      const applicant = applicantOf(role, caller, body.applicant);
      const form: NewForm = {
        id: randomUUIDv7(),
        tenantId,
        definitionId: body.definitionId,
        created: now,
        createdBy: { id: subject, name: caller.name },
        issuer,
        anonymousApplicant: role === 'intake',
        onePerApplicant: role === 'applicant' && definition.oneFormPerApplicant,
        applicant,
        noticeHashes: noticeChannels(applicant).map((to) => options.hashes.address(tenantId, to.channel, to.address)),
      };
      const created = await create(options, form, claim);
      response.status(201).location(`${collection}/${created.id}`).json(created);
    },
  });
}

function applicantOf(role: CreatingRole, caller: Caller, given: ApplicantInput | undefined): Applicant {
  if (role === 'intake' && !given?.channels?.length) {
    const pointer = given ? '/applicant/channels' : '/applicant';
    throw invalidRequest([{ pointer, detail: 'is required of an intake application, with at least one channel' }]);
  }
  const { email } = caller;
  const channels = email === undefined ? [] : [{ channel: 'email' as const, address: email }];
  const addressAs = addressAsProblem(caller.name) === undefined ? caller.name : undefined;
  return normaliseApplicant(given ?? { addressAs, channels });
}

/** Creates a form. Returns the response to this create or, if the idempotency key was used before, to the first one. */
async function create(
  { creation, findResponse, changed }: FormRoutesOptions,
  form: NewForm,
  claim: IdempotencyClaim | undefined,
): Promise<{ id: string }> {
  const response = createdView({ ...form, status: 'Draft', lastAccessed: form.created });
  // Retries if the conflicting form or idempotency record was deleted before it could be found.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    if (await creation.create(form, claim && { ...claim, response })) {
      changed();
      return response;
    }
    const first = claim && (await findResponse(claim));
    if (first) return first;
    const formId = form.onePerApplicant ? await creation.findOfCreator(form) : undefined;
    if (formId) throw new Problem('form-exists', undefined, { members: { formId } });
  }
  throw new Problem('conflict', 'The same form is being created by another request.');
}

export function readFormRoute({ bearer, tenant, access, expiryDates }: FormRoutesOptions): Route {
  return route({
    method: 'get',
    path: `${collection}/:formId`,
    summary: 'Read a form without its data',
    description: describeAction('read'),
    guards: [bearer, tenant],
    params: formParams,
    query: tenantQuery,
    answers: {
      200: { description: 'The form', schema: formResponse },
      403: { description: 'The caller may not read this form' },
      ...formFailures,
    },
    async handle({ params }, _request, response) {
      const { form, role } = await access.authorize('read', formRequestOf(response, params.formId));
      const [dates] = await expiryDates([form]);
      response.json(formView(form, { administrator: role === 'admin', dates }));
    },
  });
}

export function deleteFormRoute(options: FormRoutesOptions): Route {
  const { bearer, tenant } = options;
  return route({
    method: 'delete',
    path: `${collection}/:formId`,
    summary: 'Delete a form and the applicant’s information',
    description: `${describeAction('delete')} Deleting it again returns 204 as well.`,
    guards: [bearer, tenant],
    params: formParams,
    query: codeQuery,
    headers: { 'X-Form-Code': 'The code that the applicant received' },
    answers: {
      204: { description: 'The form is deleted' },
      400: { description: 'An intake application sent no code' },
      403: { description: 'The caller may not delete this form, or the code is wrong, expired or used' },
      404: formFailures[404],
      409: { description: 'The form is on hold, or it is not a draft' },
      429: { description: 'Too many wrong codes' },
      ...failures,
    },
    async handle({ params, query }, request, response) {
      const formRequest = formRequestOf(response, params.formId);
      await remove(options, formRequest, codeOf(request, query.code), response.locals.traceparent).catch(ignoreGone);
      response.status(204).end();
    },
  });
}

async function remove(
  { access, forms, verification, clock, changed }: FormRoutesOptions,
  formRequest: FormRequest,
  code: string | undefined,
  traceparent: string | undefined,
): Promise<void> {
  const { caller, tenantId, formId } = formRequest;
  const actor = { id: caller.subject, name: caller.name };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const { form, role } = await access.authorize('delete', formRequest);
    if (role === 'intake') {
      if (code === undefined) throw new Problem('code-required', 'Deleting a draft requires the applicant’s code.');
      await verification.verify({ form, account: caller, code, traceparent });
    }
    if (form.held) throw new Problem('form-held', 'The form is on hold; an administrator can release it.');
    const statuses = statusesOf('delete', role);
    if (await forms.remove({ tenantId, formId, actor, now: clock(), statuses })) return changed();
  }
  throw keepsChanging();
}

function ignoreGone(error: unknown): void {
  if (!(error instanceof Problem) || error.slug !== 'gone') throw error;
}
