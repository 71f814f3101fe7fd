// The response schemas of the form endpoints, for the OpenAPI document. Only tests use them to validate responses.
import { z } from 'zod';
import { formRoles, formStatuses, operations } from './catalogue.ts';
import { languages } from './form.ts';
import { historyEvents, systemRole } from './history.ts';

const example = '2026-08-20T17:00:00.000Z';
const timestamp = z.iso.datetime().meta({ examples: [example] });
const status = z.enum(formStatuses).meta({ id: 'FormStatus' });
const problems = z.array(z.strictObject({ pointer: z.string(), detail: z.string() }));

export const createdForm = z
  .strictObject({
    id: z.uuid(),
    definitionId: z.string(),
    status,
    created: timestamp,
    createdBy: z.strictObject({ id: z.string(), name: z.string() }),
    lastAccessed: timestamp,
  })
  .meta({ id: 'CreatedForm' });

export const form = z
  .strictObject({
    ...createdForm.shape,
    locked: timestamp.nullable(),
    lockOn: timestamp.nullable().meta({ description: 'When the expiry locks the draft, unless somebody opens it' }),
    deleteOn: timestamp.nullable().meta({ description: 'When the expiry deletes the form, if nothing changes' }),
    submitted: timestamp.nullable(),
    held: z.boolean().meta({ description: 'On hold: neither locked nor deleted' }),
    hold: z
      .strictObject({ reason: z.string().nullable(), by: z.strictObject({ id: z.string(), name: z.string() }) })
      .nullable()
      .optional()
      .meta({ description: 'To form-admin only' }),
    anonymousApplicant: z.boolean(),
    applicant: z.strictObject({
      addressAs: z.string().optional(),
      language: z.enum(languages).optional(),
      channels: z
        .array(z.strictObject({ channel: z.string(), address: z.string() }))
        .optional()
        .meta({
          description: 'To form-admin only, addresses masked',
          examples: [[{ channel: 'email', address: 'a***@example.org' }]],
        }),
    }),
  })
  .meta({ id: 'Form' });

const formData = {
  data: z.record(z.string(), z.unknown()),
  files: z.record(z.string(), z.string()).meta({ description: 'File URNs by name' }),
};

export const formDataResponse = z.strictObject(formData).meta({ id: 'FormData' });

export const savedDataResponse = z
  .strictObject({
    ...formData,
    problems: problems.optional().meta({
      description:
        'With validate=true: at most 20 problems for which a submit would be rejected; pointers begin with `/data`',
    }),
    truncated: z.literal(true).optional().meta({ description: 'There may be more problems' }),
  })
  .meta({ id: 'SavedFormData' });

export const formList = z
  .strictObject({
    results: z.array(
      z.strictObject({ ...form.shape, data: formData.data.optional(), files: formData.files.optional() }),
    ),
    page: z.strictObject({
      after: z.string().nullable().meta({ description: 'The cursor of this page' }),
      next: z.string().nullable().meta({ description: 'The cursor of the next page; null on the last page' }),
      size: z.int(),
      total: z
        .int()
        .optional()
        .meta({ description: 'With includeTotal=true: the number of forms on all pages, counted up to 10,000' }),
      totalIsMinimum: z.literal(true).optional().meta({ description: 'There are more than `total`' }),
      searchIncomplete: z.literal(true).optional().meta({
        description: 'With X-Applicant-Address: existing forms are still being indexed, so forms may be missing',
      }),
    }),
  })
  .meta({ id: 'FormList' });

export const formHistory = z
  .strictObject({
    results: z.array(
      z.strictObject({
        event: z.enum(historyEvents),
        time: timestamp,
        by: z.strictObject({
          role: z
            .enum([...Object.keys(formRoles), systemRole])
            .nullable()
            .meta({ description: 'The role that allowed it, or `system`; null if it was before histories were kept' }),
          account: z
            .string()
            .nullable()
            .meta({
              description: 'Pseudonym of the account, in this form only; null for `system`',
              examples: ['3f9ac0d21e77'],
            }),
          isCaller: z.boolean().meta({ description: 'The account is that of the caller' }),
        }),
      }),
    ),
    truncated: z
      .boolean()
      .meta({ description: 'Entries may have been dropped: a form keeps its first 20 and its last 80' }),
  })
  .meta({ id: 'FormHistory' });

export const operationResponse = z.union([
  z
    .strictObject({ id: z.uuid(), status: z.literal(operations.submit.move.to), submitted: timestamp })
    .meta({ description: 'submit' }),
  form.meta({ description: 'Any other operation' }),
]);

export const sentCode = z
  .strictObject({
    id: z.uuid(),
    sent: z.literal(true),
    channel: z.enum(['email', 'sms']),
    expires: timestamp.meta({ description: 'When the code stops working' }),
  })
  .meta({ id: 'SentCode' });

/** Failures that every form route can return. */
export const failures = {
  502: { description: 'A service of the platform failed' },
  503: {
    description: 'Too many requests are running, or the database or a service of the platform cannot be reached',
    headers: { 'Retry-After': 'Seconds' },
  },
};

/** Failures that every route of a single form can return. */
export const formFailures = {
  404: { description: 'There is no such form in the tenant' },
  409: { description: 'The form definition cannot be used' },
  410: { description: 'The form was deleted' },
  ...failures,
};
