// The request schemas of the form endpoints. Bodies with unknown fields are rejected. The schemas also contain
// descriptions and examples, because the OpenAPI document is generated from them.
import { z } from 'zod';
import { anyObject } from '../../service/http/any-object.ts';
import { issueMessage } from '../../service/http/issue-message.ts';
import { definitionIdPattern } from '../definitions/definition.ts';
import { type FormStatus, formStatuses, operationNames } from './catalogue.ts';
import { addressAsProblem, languages } from './form.ts';

const example = {
  id: '0197f3a2-7c1e-7b4d-9a55-3f0c8e2d6b11',
  definitionId: 'business-licence',
  created: '2026-08-20T17:00:00.000Z',
  file: 'urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a553',
};

const email = z.email('must be an email address').max(254, 'must have at most 254 characters');
// Accepts the usual ways to write telephone numbers. E.164 allows 15 digits.
const phone = z
  .string()
  .regex(/^\+?(?:[\s().-]*\d){6,15}[\s().-]*$/, 'must be a telephone number')
  .max(40);

export const channel = z
  .discriminatedUnion('channel', [
    z.strictObject({ channel: z.literal('email'), address: email }),
    z.strictObject({ channel: z.literal('sms'), address: phone }),
  ])
  .meta({ id: 'Channel', description: 'Codes go to the first email channel or, without one, to the first channel' });

const addressAs = z
  .string()
  .superRefine((text, context) => {
    const problem = addressAsProblem(text);
    if (problem !== undefined) context.addIssue(problem);
  })
  .trim()
  .min(1)
  .meta({ description: 'How notices address the applicant: at most 100 characters, without web addresses' });

const applicant = z
  .strictObject({
    addressAs: addressAs.optional(),
    channels: z.array(channel).max(10).optional(),
    language: z.enum(languages).optional().meta({ description: 'The language of notices; English by default' }),
  })
  .meta({ examples: [{ addressAs: 'Ana', channels: [{ channel: 'email', address: 'ana@example.org' }] }] });

const definitionId = z
  .string()
  .regex(definitionIdPattern, 'must be 1 to 50 letters, digits, spaces, hyphens and underscores')
  .meta({ examples: [example.definitionId] });

/**
 * Returns the schema of the body of a creation request. `data` and `files` are the schemas of {@link createDataBody}.
 */
export function createCreationBody({ shape: { data, files } }: ReturnType<typeof createDataBody>) {
  return z.strictObject({
    definitionId,
    applicant: applicant.optional().meta({
      description:
        'Required of an intake application, with at least one channel. Default: the caller, also for members that an applicant leaves out',
    }),
    data,
    files,
    submit: z
      .boolean()
      .optional()
      .meta({ description: 'Submit the form immediately. If the data is invalid, nothing is created' }),
  });
}

export const operationBody = z
  .strictObject({
    operation: z.enum(operationNames),
    reason: z
      .string()
      .trim()
      .min(1)
      .max(500)
      .optional()
      .meta({ description: 'Why the form is put on hold; shown to form-admin only, and deleted with the form' }),
  })
  .refine(({ operation, reason }) => reason === undefined || operation === 'hold', {
    path: ['reason'],
    message: 'is only for hold',
  })
  .meta({ examples: [{ operation: 'submit' }] });

/** Validation of `files` stops after this number of invalid members. */
const listedErrors = 100;

/**
 * Returns the schema of a body with form data. `prefix` is the URN prefix. The values of `files` must be file URNs with
 * this prefix, separated by semicolons.
 */
export function createDataBody(prefix: string) {
  // A URN_PREFIX contains only letters, digits, hyphens and colons, so it needs no escaping.
  const one = `${prefix}:platform:file-service:v1:/files/[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`;
  const pattern = new RegExp(`^${one}(?:;${one})*$`);
  const fileUrn = z.string().regex(pattern, 'must be the URN of a file');
  const shown = { type: 'object', additionalProperties: { type: 'string', pattern: pattern.source } } as const;
  const files = anyObject
    // `meta` comes before superRefine, because the OpenAPI document uses the metadata of the schema that superRefine
    // checks.
    .meta({ ...shown, examples: [{ 'floor-plan.pdf': example.file }] })
    .superRefine((members, context) => {
      let wrong = 0;
      // The loop avoids Object.entries, which creates an array for each member.
      for (const name in members) {
        if (!Object.hasOwn(members, name)) continue;
        const [issue] = fileUrn.safeParse(members[name], { error: issueMessage }).error?.issues ?? [];
        if (issue) context.addIssue({ code: 'custom', path: [name], message: issue.message });
        if (issue && ++wrong === listedErrors) return;
      }
    });
  return z
    .strictObject({ data: anyObject.optional(), files: files.optional() })
    .refine(({ data, files }) => data !== undefined || files !== undefined, 'must have data or files')
    .meta({
      description: 'A member that is sent replaces the stored one',
      examples: [{ data: { businessName: 'Ana’s Bakery' }, files: {} }],
    });
}

export const formParams = z.object({
  formId: z
    .guid('must be a UUID')
    .toLowerCase()
    .meta({ examples: [example.id] }),
});

const tenantId = z.string().optional().meta({ description: 'URN of the tenant; required of core users' });
const flag = z
  .enum(['true', 'false'])
  .default('false')
  .transform((text) => text === 'true');
const code = z.string().max(64).optional().meta({
  description: 'The code that the applicant received. Prefer X-Form-Code: access logs contain query parameters',
});

export const tenantQuery = z.object({ tenantId });
export const tenantOrAllQuery = z.object({
  tenantId: tenantId.meta({ description: 'URN of a tenant; without it, a core user sees all tenants' }),
});
export const codeQuery = z.object({ tenantId, code });
export const updateQuery = z.object({
  tenantId,
  validate: flag.meta({
    description:
      'Also validate against the definition’s dataSchema, and return the problems. The form data is saved in any case. If it cannot be validated at the moment, the only problem says so, with an empty pointer',
  }),
});

const moment = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], 'must be an ISO 8601 date or date-time')
  .transform((text) => new Date(text));

/** Accepts the names of statuses in any case. */
const status = z.string().transform((text, context) => {
  const known = formStatuses.find((one) => one.toLowerCase() === text.toLowerCase());
  if (!known) context.addIssue(`must be one of ${formStatuses.join(', ')}`);
  return known ?? 'Draft';
});

const criteria = z.strictObject({
  definitionIdEquals: definitionId.optional(),
  statusEquals: status.optional(),
  anonymousApplicantEquals: z.boolean().optional(),
  createDateAfter: moment.optional(),
  createDateBefore: moment.optional(),
  lastAccessedAfter: moment.optional(),
  lastAccessedBefore: moment.optional(),
  lockedAfter: moment.optional(),
  lockedBefore: moment.optional(),
  submittedAfter: moment.optional(),
  submittedBefore: moment.optional(),
});

const criteriaText = z
  .string()
  .default('{}')
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      context.addIssue('must be JSON');
      return z.NEVER;
    }
  })
  .pipe(criteria)
  .meta({
    description: `JSON with any of ${Object.keys(criteria.shape).join(', ')}; bounds are exclusive, statuses in any case. A date without a time means its beginning in UTC`,
    examples: ['{"statusEquals":"Locked","lockedBefore":"2026-08-01"}'],
  });

/**
 * A cursor contains the creation time and the id of the last item of the previous page. For a list that is sorted by
 * status, it also contains the item's status. Clients must not interpret its text.
 */
export const cursor = z
  .string()
  .transform((text, context) => {
    if (text === '') return undefined;
    const [, created, id, last] =
      /^(\d{1,15})\.([0-9a-f-]{36})(?:\.([A-Z][a-z]+))?$/.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? [];
    const known = formStatuses.find((one) => one === last);
    if (created && z.guid().safeParse(id).success && (last === undefined || known))
      return { text, created: new Date(Number(created)), id: id ?? '', status: known };
    context.addIssue('must be a cursor of this list');
    return z.NEVER;
  })
  .optional()
  .meta({ description: '`page.next` of the page before; empty for the first page' });

/** Returns the cursor for the page after this form. Pass `status` if the list is sorted by status. */
export function cursorOf({ created, id }: { created: Date; id: string }, status?: FormStatus): string {
  return Buffer.from([created.getTime(), id, ...(status ? [status] : [])].join('.')).toString('base64url');
}

export const listQuery = z
  .object({
    tenantId,
    mine: flag.meta({ description: 'Only the forms that the caller created as a signed-in person; needs no role' }),
    criteria: criteriaText,
    sortBy: z.enum(['created', 'status']).default('created').meta({ description: 'Forms of one status by creation' }),
    sortDirection: z.enum(['asc', 'desc']).default('desc'),
    top: z.coerce.number().int().min(1).max(100).default(25).meta({ description: 'Forms on a page, 1 to 100' }),
    after: cursor,
    includeData: flag.meta({
      description: 'With data and files, to form-admin only; such a page ends early at 8 MiB of form data',
    }),
    includeTotal: flag.meta({ description: 'Count the forms on all pages, up to 10,000' }),
  })
  .refine(({ after, sortBy }) => after === undefined || (after.status !== undefined) === (sortBy === 'status'), {
    path: ['after'],
    message: 'must be a cursor of this list',
  });
