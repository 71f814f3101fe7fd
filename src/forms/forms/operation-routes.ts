// The route for the operations on a form: `POST /form/v1/forms/{formId}`. The catalogue defines the roles and statuses
// that allow each operation.
import type { Response } from 'express';
import { smallBody } from '../../service/http/body-bytes.ts';
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { ExpiryDates } from '../expiry/dates.ts';
import { type Authorized, type FormRequest, formRequestOf, keepsChanging, revisionsOf, stale } from './access.ts';
import {
  describeAction,
  type FormRole,
  type MoveOperation,
  type Operation,
  operationNames,
  operations,
  statusesForAction,
} from './catalogue.ts';
import { type Form, formView } from './form.ts';
import type { Author, Pseudonyms } from './history.ts';
import { createClaim, type IdempotencyClaim } from './idempotency.ts';
import { budgetsOf } from './notice-budget.ts';
import { requireOpenIntake } from './policy.ts';
import { formFailures, operationResponse, sentCode } from './responses.ts';
import type { FormRoutesOptions } from './routes.ts';
import { formParams, operationBody, tenantQuery } from './schema.ts';
import type { Hold } from './store.ts';

export function operateFormRoute(options: FormRoutesOptions): Route {
  const { bearer, tenant } = options;
  return route({
    method: 'post',
    path: '/form/v1/forms/:formId',
    audit: { actions: operationNames.map(auditActionOf), of: ({ body }) => auditActionOf(body.operation) },
    operationId: 'operateForm',
    summary: 'Perform an operation on a form',
    description: operationNames
      .map((name) => `\`${name}\` (${statusesForAction(name).join(', ')}): ${describeAction(name)}`)
      .join('\n\n'),
    guards: [bearer, tenant],
    params: formParams,
    query: tenantQuery,
    body: operationBody,
    bodyLimit: smallBody,
    headers: {
      'Idempotency-Key':
        'For submit: a request with the same key gets the first response for 24 hours, while the form is not a draft again',
      'If-Match': 'For submit: submit only this version of the form data. Without it, the newest version is submitted',
    },
    responses: {
      200: { description: 'Done', schema: operationResponse },
      202: { description: 'The code is on its way', schema: sentCode },
      400: {
        description:
          'The body is invalid or, for submit, the form data is: at most 20 pointers, which begin with `/data`; `truncated` if there are more',
      },
      403: { description: 'The caller may not do this with this form' },
      ...formFailures,
      409: {
        description:
          'The form has another status, the applicant has no channel, the definition cannot be used, it accepts no applications now (`opens`, `closes`), or, for to-draft, the tenant stores too much',
      },
      412: { description: 'For submit: the form data has changed since it was read' },
      429: {
        description: 'Codes were sent too often',
        headers: { 'Retry-After': 'Seconds until another may be sent' },
      },
    },
    async handle({ params, body: { operation, reason } }, _request, response) {
      const done = await handlers[operation](options, formRequestOf(response, params.formId), response, reason);
      response.status(operation === 'send-code' ? 202 : 200).json(done);
    },
  });
}

const auditActionOf = <O extends Operation>(operation: O) => `form.${operation}` as const;

/** Performs an operation. Returns the body of the response. */
type Handler = (
  options: FormRoutesOptions,
  formRequest: FormRequest,
  response: Response,
  reason: string | undefined,
) => Promise<object>;

const handlers: Record<Operation, Handler> = {
  'send-code': sendCode,
  keep,
  submit,
  unlock: (options, formRequest) => move('unlock', options, formRequest),
  archive: (options, formRequest) => move('archive', options, formRequest),
  'to-draft': (options, formRequest) => move('to-draft', options, formRequest),
  hold: (options, formRequest, _response, reason) => setHeld('hold', options, formRequest, { reason }),
  release: (options, formRequest) => setHeld('release', options, formRequest, undefined),
};

async function sendCode(
  { access, forms, verification, pseudonyms, clock, log }: FormRoutesOptions,
  formRequest: FormRequest,
) {
  const { tenantId, formId } = formRequest;
  const { form, role } = await access.authorize('send-code', formRequest);
  const { channel, expires } = await verification.send({ form });
  // The code is sent. If this request failed now, the caller would retry it, and the retry would get 429.
  await forms
    .recordSent({ tenantId, formId, now: clock(), by: authorOf(formRequest, role, pseudonyms) })
    .catch((error: unknown) => log.warn({ err: error }, 'sent code not recorded in the history'));
  return { id: form.id, sent: true, channel, expires: expires.toISOString() };
}

async function keep(options: FormRoutesOptions, formRequest: FormRequest) {
  const { access, forms, clock } = options;
  const { tenantId, formId } = formRequest;
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const { role } = await access.authorize('keep', formRequest);
    const form = await forms.keep({ tenantId, formId, now: clock() });
    if (!form) continue;
    const dates = await datesAfterChange(options, form);
    return formView(form, { administrator: role === 'admin', dates });
  }
  throw keepsChanging();
}

function submit(options: FormRoutesOptions, formRequest: FormRequest, { req }: Response): Promise<object> {
  const { tenantId, formId, caller } = formRequest;
  const { issuer, subject } = caller;
  const key = req.get('idempotency-key');
  const scope = { tenantId, issuer, subject, route: `POST /form/v1/forms/${formId}`, body: { operation: 'submit' } };
  const claim = key === undefined ? undefined : createClaim(options.secret, key, { ...scope, now: options.clock() });
  return submitOnce(options, formRequest, claim, revisionsOf(req));
}

/**
 * Submits the revision that was validated. If form data is saved after the validation, validates the new revision.
 * Throws Problem `stale` if that is not one of `revisions`; undefined allows any.
 */
async function submitOnce(
  options: FormRoutesOptions,
  formRequest: FormRequest,
  claim: IdempotencyClaim | undefined,
  revisions: readonly string[] | undefined,
): Promise<object> {
  const { access, forms, validator, findResponse, clock } = options;
  const { caller, tenantId, formId } = formRequest;
  for (let attempt = 0; attempt < 5; attempt += 1) {
    let authorized: Authorized;
    try {
      authorized = await access.authorize('submit', formRequest);
    } catch (error) {
      // An earlier request with this idempotency key may have submitted the form.
      const first = claim && isNotDraft(error) ? await findResponse(claim) : undefined;
      if (first) return first;
      throw error;
    }
    const definition = await access.definitionOf(authorized.form);
    requireOpenIntake(caller, definition, clock(), authorized.form);
    let revision: string | undefined;
    // Up to 400 submits wait for a worker. They would fill the memory if each of them held its form data.
    await validator.requireValid(formRequest, definition, async () => {
      const found = await forms.peek(formRequest);
      if (found && revisions && !revisions.includes(found.revision)) throw stale();
      revision = found?.revision;
      return found?.data;
    });
    if (revision === undefined) continue;
    const now = clock();
    const response = { id: formId, status: operations.submit.move.to, submitted: now.toISOString() };
    const actor = { id: caller.subject, name: caller.name };
    const by = authorOf(formRequest, authorized.role, options.pseudonyms);
    const change = { tenantId, formId, actor, now, by, operation: 'submit' as const, revision };
    const budgets = budgetsOf(options.hashes, caller, authorized);
    if (!(await forms.move({ ...change, budgets, record: claim && { ...claim, response } }))) continue;
    options.changed();
    return response;
  }
  throw keepsChanging();
}

function isNotDraft(error: unknown): boolean {
  return error instanceof Problem && error.slug === 'form-not-draft';
}

async function move(operation: Exclude<MoveOperation, 'submit'>, options: FormRoutesOptions, formRequest: FormRequest) {
  const { access, forms, pseudonyms, storage, clock, changed } = options;
  const { caller, tenantId, formId } = formRequest;
  const { role } = await access.authorize(operation, formRequest);
  if (operation === 'to-draft') await requireFewRows(options, formRequest);
  const actor = { id: caller.subject, name: caller.name };
  const by = authorOf(formRequest, role, pseudonyms);
  const moved = await forms.move({ tenantId, formId, actor, now: clock(), by, operation });
  if (!moved) {
    const { status } = (await access.authorize(operation, formRequest)).form;
    const detail = `The form is ${status}; ${operation} requires a form that is ${operations[operation].move.from}.`;
    throw new Problem('conflict', detail, { members: { formStatus: status } });
  }
  if (operation === 'to-draft') storage.leftRows(tenantId);
  changed();
  const dates = await datesAfterChange(options, moved);
  return formView(moved, { administrator: role === 'admin', dates });
}

/**
 * Throws Problem if the form or its tenant has left too many rows behind. Otherwise, a form that is submitted and
 * returned again and again would leave any number of them, and each claim of the outbox would read those to deliver.
 */
async function requireFewRows({ forms, storage }: FormRoutesOptions, formRequest: FormRequest): Promise<void> {
  await storage.requireReserve(formRequest.tenantId);
  if (!(await forms.hasBacklog(formRequest))) return;
  const detail = 'A thousand events of this form are waiting to be delivered. Try again later.';
  throw new Problem('busy', detail, { headers: { 'Retry-After': '60' } });
}

async function setHeld(
  operation: 'hold' | 'release',
  options: FormRoutesOptions,
  formRequest: FormRequest,
  hold: Hold | undefined,
) {
  const { access, forms, pseudonyms, clock } = options;
  const { tenantId, formId, caller } = formRequest;
  const { role } = await access.authorize(operation, formRequest);
  const actor = { id: caller.subject, name: caller.name };
  const by = authorOf(formRequest, role, pseudonyms);
  const form = await forms.setHeld({ tenantId, formId, actor, now: clock(), by, hold });
  if (!form) throw new Problem('gone', 'The form was deleted.');
  const dates = await datesAfterChange(options, form);
  return formView(form, { administrator: true, dates });
}

/**
 * Returns the expiry dates of a form that was just changed. The change is committed, so a failure must not fail the
 * request: the dates are then left out.
 */
async function datesAfterChange({ expiryDates, log }: FormRoutesOptions, form: Form): Promise<ExpiryDates | undefined> {
  try {
    const [dates] = await expiryDates([form]);
    return dates;
  } catch (error) {
    log.warn({ err: error }, 'expiry dates not read after a change');
    return undefined;
  }
}

function authorOf({ formId, caller }: FormRequest, role: FormRole, pseudonyms: Pseudonyms): Author {
  return { role, account: pseudonyms(formId, caller.issuer, caller.subject) };
}
