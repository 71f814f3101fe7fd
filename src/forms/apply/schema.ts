// The schemas of the intake application's requests and responses.
import { z } from 'zod';
import { anyObject } from '../../service/http/any-object.ts';
import { normalCode } from '../codes/code.ts';
import { languages } from '../forms/form.ts';

export const base = '/apply/api/tenants/:tenant';
export const formPath = `${base}/forms/:formId`;

/** Size limit in bytes for request bodies that contain no form data. */
export const smallBody = 8_192;

/** The audit entry of routes that call the form service: the form service writes their audit events. */
export const auditedByApi = { unaudited: 'Its call to the form service is audited.' };

const tenant = z
  .string()
  .min(1)
  .max(50)
  .meta({ description: 'The realm of the tenant', examples: ['demo'] });
// In lower case, because hashes and cookies contain the id as text.
const formId = z.guid('must be a UUID').toLowerCase();
// URL parsers remove dot segments (RFC 3986 section 5.2.4), so the call of the form API would go elsewhere.
const name = z
  .string()
  .min(1)
  .max(50)
  .refine((value) => value !== '.' && value !== '..', 'must be a name');

export const definitionParams = z.object({ tenant, definition: name });
export const registerParams = z.object({ tenant, name });
export const formParams = z.object({ tenant, formId });
export const noticeParams = z.object({ formId });

export const startBody = z
  .strictObject({
    email: z.string().min(1).max(254).meta({ description: 'Codes and mails go to this address' }),
    name: z
      .string()
      .max(100, 'must have at most 100 characters')
      .optional()
      .meta({ description: 'How mails address the applicant' }),
    language: z.enum(languages).meta({ description: 'Language of the mails' }),
  })
  .meta({ examples: [{ email: 'ana@example.org', name: 'Ana', language: 'en' }] });

export const codeBody = z
  .strictObject({
    code: z
      .string()
      .max(64)
      // Zod leaves the examples of a schema out of the document if one of its members is transformed.
      .meta({ examples: ['K2TPX4'] })
      .transform(normalCode),
  })
  .refine(({ code }) => code !== '', { path: ['code'], message: 'is required' });

/** Checks only that `data` and `files` are objects. The form service checks the rest. */
export const saveBody = z
  .strictObject({ data: anyObject, files: anyObject })
  .meta({ examples: [{ data: { businessName: 'Bakery' }, files: {} }] });

export const definitionResponse = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string().optional(),
    anonymousApply: z.literal(true),
    tenantName: z.string(),
    dataSchema: z.unknown(),
    uiSchema: z.unknown(),
    files: z.boolean().meta({ description: 'True if files can be uploaded' }),
    fileLimit: z.int().meta({ description: 'Maximum size of a file in bytes' }),
    urnPrefix: z.string().meta({ description: 'The prefix of the URNs of uploaded files', examples: ['urn:example'] }),
    languages: z.array(z.enum(languages)),
    language: z.string().optional().meta({ description: 'The language of the texts, if the definition says it' }),
  })
  .meta({ id: 'ApplyDefinition' });

export const entriesResponse = z.object({ entries: z.array(z.unknown()) }).meta({ id: 'ApplyEntries' });

export const startedForm = z
  .object({
    id: z.uuid(),
    created: z.string(),
    etag: z.string().meta({ description: 'For If-Match of the first save' }),
  })
  .meta({ id: 'StartedForm' });

export const openedForm = z
  .object({
    id: z.uuid(),
    definitionId: z.string(),
    status: z.string(),
    created: z.string(),
    lastAccessed: z.string(),
    submitted: z.string().nullable(),
    lockOn: z.string().nullable(),
    deleteOn: z.string().nullable(),
    reference: z.string().meta({ description: 'A short number for people' }),
    readable: z.boolean().meta({ description: 'True while this browser may read the form data' }),
    language: z.enum(languages).optional(),
  })
  .meta({ id: 'OpenedForm' });

export const savedForm = z
  .object({ saved: z.iso.datetime().meta({ description: 'When the form data was saved' }) })
  .meta({ id: 'ApplySavedForm' });

export const submittedForm = z
  .object({ id: z.uuid(), number: z.string(), status: z.string(), submitted: z.string() })
  .meta({ id: 'SubmittedForm' });

/** Response headers of the routes that open a form in the browser. */
export const setCookie = { 'Set-Cookie': 'The cookie of the form' };
/** Response headers of the routes after which the browser no longer has the form open. */
export const deletedCookie = { 'Set-Cookie': 'Deletes the cookie of the form' };

/** The failures that every route can return. */
export const failures = {
  403: { description: 'The request comes from another origin, or lacks the header X-Formgate-Apply' },
  404: { description: 'There is no such tenant or resource' },
  429: { description: 'Too many requests from this address', headers: { 'Retry-After': 'Seconds' } },
  502: { description: 'A service of the platform failed' },
  503: { description: 'The service is busy or unavailable', headers: { 'Retry-After': 'Seconds' } },
  504: { description: 'A service of the platform did not respond in time' },
};

/** The failures that routes of a form can return. */
export const formFailures = {
  ...failures,
  401: { description: 'This browser has not opened the form: enter a code' },
  409: { description: 'The form is locked, or it is not a draft' },
  410: { description: 'The form was deleted' },
};
