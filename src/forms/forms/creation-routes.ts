// The route that creates forms. A request may contain form data, and may submit the form immediately. A request that is
// refused creates nothing.
import { randomUUIDv7 } from 'node:crypto';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import type { Caller } from '../../service/auth/identity.ts';
import { type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { callerOf, tenantOf } from '../../service/http/request-context.ts';
import { noteAudit } from '../../service/operations/request-audit.ts';
import type { FormDefinition } from '../definitions/definition.ts';
import type { NewForm } from './creation-store.ts';
import {
  type Applicant,
  type ApplicantInput,
  addressAsProblem,
  type Channel,
  createdView,
  normaliseApplicant,
} from './form.ts';
import { createClaim, type IdempotencyClaim } from './idempotency.ts';
import { isBudgeted, noticeHashes } from './notice-budget.ts';
import { type CreatingRole, decideCreate, requireOpenIntake } from './policy.ts';
import { createdForm, failures } from './responses.ts';
import type { FormRoutesOptions } from './routes.ts';
import { channel as channelSchema, createCreationBody, tenantQuery } from './schema.ts';

const collection = '/form/v1/forms';

export function createFormRoute(options: FormRoutesOptions): Route {
  const { bearer, tenant } = options;
  return route({
    method: 'post',
    path: collection,
    audit: {
      actions: ['form.create', 'form.submit'],
      of: ({ body }) => (body.submit ? 'form.submit' : 'form.create'),
      otherwise: 'form.create',
    },
    summary: 'Create a draft form, or submit one immediately',
    description:
      'By an intake application, if the definition permits anonymous applicants, or by a caller with one of the definition’s applicant or clerk roles. With `submit`, the form data is validated and submitted as by the operation `submit`; if that is refused, nothing is created.',
    guards: [bearer, tenant, options.largeCreates],
    query: tenantQuery,
    body: createCreationBody(options.dataBody),
    headers: { 'Idempotency-Key': 'The same key and body get the same response for 24 hours' },
    responses: {
      201: { description: 'The form', schema: createdForm, headers: { Location: 'Path of the form' } },
      400: {
        description:
          'The body is invalid, an intake application names no channel of the applicant or, with `submit`, the form data is invalid',
      },
      403: { description: 'The caller may not create forms of this definition' },
      404: { description: 'There is no such definition' },
      409: {
        description:
          'The definition cannot be used, the applicant already has a form of it (`formId`), codes cannot be sent to any channel of an applicant without an account, the definition accepts no applications now (`opens`, `closes`), or the tenant stores too much',
      },
      422: { description: 'The idempotency key was used with another body' },
      429: {
        description: 'The caller created too many forms, or sent too many large bodies',
        headers: { 'Retry-After': 'Seconds' },
      },
      ...failures,
    },
    handle: (input, request, response) =>
      // Only `prepare` gets `input`, which contains the body. The body is therefore not kept in memory while the
      // request waits for a validation or the database.
      createOnce(
        options,
        idempotencyClaimOf(options, input, request, response),
        prepare(options, input, response),
      ).then((created) => {
        response.locals.formId = created.id;
        noteAudit(response, { objectId: created.id });
        response.status(201).location(`${collection}/${created.id}`).json(created);
      }),
  });
}

/** A form that has passed all checks except those of `countCreatable`. */
interface Prepared {
  form: NewForm;
  caller: Caller;
  definition: FormDefinition;
}

type CreationBody = z.output<ReturnType<typeof createCreationBody>>;
type CreationInput = { body: CreationBody; bodyText(name: string): string | undefined };

function idempotencyClaimOf(
  { secret, clock }: FormRoutesOptions,
  { body }: CreationInput,
  request: Request,
  response: Response,
): IdempotencyClaim | undefined {
  const key = request.get('idempotency-key');
  if (key === undefined) return undefined;
  const { issuer, subject } = callerOf(response);
  const route = `POST ${collection}`;
  return createClaim(secret, key, { tenantId: tenantOf(response).id, issuer, subject, route, body, now: clock() });
}

async function prepare(
  options: FormRoutesOptions,
  { body, bodyText }: CreationInput,
  response: Response,
): Promise<Prepared> {
  const [caller, tenantId] = [callerOf(response), tenantOf(response).id];
  const definition = await options.access.namedDefinition(tenantId, body.definitionId);
  const role = decideCreate(caller, definition, body.applicant !== undefined);
  await options.validator.requireUsable(tenantId, definition);
  const applicant = applicantOf(role, caller, body.applicant);
  const id = randomUUIDv7();
  const form: NewForm = {
    id,
    tenantId,
    definitionId: body.definitionId,
    status: body.submit ? 'Submitted' : 'Draft',
    data: bodyText('data'),
    files: bodyText('files'),
    created: options.clock(),
    createdBy: { id: caller.subject, name: caller.name },
    issuer: caller.issuer,
    anonymousApplicant: role === 'intake',
    forAnother: role === 'clerk',
    onePerApplicant: role === 'applicant' && definition.oneFormPerApplicant,
    applicant,
    noticeHashes: noticeHashes(options.hashes, { tenantId, applicant }),
    isBudgeted: isBudgeted(caller, role, { applicant, forAnother: role === 'clerk' }),
    addressHashes: options.addresses.hashes.all(tenantId, applicant.channels),
    by: { role, account: options.pseudonyms(id, caller.issuer, caller.subject) },
  };
  return { form, caller, definition };
}

/**
 * Creates the form. A repeated request gets the first response again, even if the form could no longer be created, for
 * example because its definition was changed or removed. Only created forms count towards the caller's limit.
 */
async function createOnce(
  options: FormRoutesOptions,
  claim: IdempotencyClaim | undefined,
  preparing: Promise<Prepared>,
): Promise<{ id: string }> {
  let form: NewForm;
  let uncount: () => void;
  try {
    const prepared = await preparing;
    form = prepared.form;
    uncount = await countCreatable(options, prepared);
  } catch (error) {
    const first = claim && (await options.findResponse(claim));
    if (first) return first;
    throw error;
  }
  const response = await create(options, form, claim).catch((error: unknown) => {
    uncount();
    throw error;
  });
  if (response.id !== form.id) uncount();
  return response;
}

/** Checks that the form can be created, and counts it. Returns a function that takes the count back. */
async function countCreatable(options: FormRoutesOptions, prepared: Prepared): Promise<() => void> {
  const { form, caller, definition } = prepared;
  await options.storage.requireRoom(form.tenantId);
  requireOpenIntake(caller, definition, form.created);
  // Without a code, an applicant without an account could never read the draft.
  if (form.anonymousApplicant) options.verification.requireChannel(form.applicant);
  const formOfSchema = { tenantId: form.tenantId, formId: form.id };
  if (form.status === 'Submitted') await options.validator.requireValid(formOfSchema, definition, form.data ?? '{}');
  return options.countCreate(caller);
}

function applicantOf(role: CreatingRole, caller: Caller, given: ApplicantInput | undefined): Applicant {
  if (role === 'intake' && !given?.channels?.length) {
    const pointer = given ? '/applicant/channels' : '/applicant';
    throw invalidRequest([{ pointer, detail: 'is required of an intake application, with at least one channel' }]);
  }
  // A clerk who describes an applicant describes somebody else.
  if (given && role !== 'applicant') return normaliseApplicant(given);
  const addressAs = addressAsProblem(caller.name) === undefined ? caller.name : undefined;
  return normaliseApplicant({ addressAs, channels: channelsOf(caller), ...given });
}

/** Returns the email address of the caller's token as a channel, unless notices could not be sent to it. */
function channelsOf({ email }: Caller): Channel[] {
  if (email === undefined) return [];
  const channel = { channel: 'email' as const, address: email };
  // Unlike the address in a request, that of an account may be internationalised (RFC 6531).
  return channelSchema.safeParse(channel).success || isInternational(email) ? [channel] : [];
}

const isInternational = (address: string) =>
  address.length <= 254 && /[^\0-\x7f]/.test(address) && /^[^\s@"]+@[^\s@]+\.[^\s@.]+$/.test(address);

/** Creates a form. Returns the response to this request or, for a used idempotency key, to the first request. */
async function create(
  { creation, findResponse, storage, changed }: FormRoutesOptions,
  form: NewForm,
  claim: IdempotencyClaim | undefined,
): Promise<{ id: string }> {
  const response = createdView({ ...form, lastAccessed: form.created });
  // Retries if the conflicting form or idempotency record was deleted before this request could read it.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    if (await creation.create(form, claim && { ...claim, response })) {
      storage.created(form.tenantId, (form.data?.length ?? 0) + (form.files?.length ?? 0));
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
