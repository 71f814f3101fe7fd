// The catalogue of problem types (RFC 9457): everything that a client may learn about a failure. The problem responses,
// docs/errors.md and the pages at /problems/<slug> are built from this catalogue.
import { failureTypes } from './failure-types.ts';

export interface ProblemType {
  status: number;
  /** Title, which is the same for every occurrence of the problem (RFC 9457 section 3.1.3). */
  title: string;
  /** What happened. Code is written between backticks. */
  meaning: string;
  /** What the caller should do. */
  action: string;
}

/** Problem types, keyed by slug, in the order of their statuses. */
export const problemTypes = {
  'invalid-request': {
    status: 400,
    title: 'The request is not valid',
    meaning:
      'A parameter, a header or the body does not match what the operation accepts. `errors`, if present, lists the invalid fields, at most 100.',
    action: 'Correct what `errors` or `detail` names, then send the request again.',
  },
  'malformed-json': {
    status: 400,
    title: 'The body is not JSON',
    meaning: 'The body is not well-formed JSON in UTF-8.',
    action: 'Send a JSON body. Retrying the same bytes fails again.',
  },
  'invalid-path': {
    status: 400,
    title: 'The path of the target request is not allowed',
    meaning:
      'The path below `/targets/{targetId}` contains dot segments, encoded separators or characters that are not valid in a path. The request was not forwarded.',
    action: 'Send the normalised path of the upstream resource.',
  },
  'code-required': {
    status: 400,
    title: 'A code is required',
    meaning: 'An intake application called an operation that needs the applicant’s code, and sent none.',
    action: 'Ask the applicant for the code and send it in `X-Form-Code`. The operation `send-code` sends a new one.',
  },
  unauthenticated: {
    status: 401,
    title: 'Authentication is required',
    meaning: 'The bearer token or session is missing, invalid or expired. `WWW-Authenticate` says what is wrong.',
    action: 'Get a new access token, or sign in again, then retry.',
  },
  'code-entry-required': {
    status: 401,
    title: 'A code must be entered in this browser',
    meaning:
      'The applicant’s pages have not opened this form in this browser, or the code was entered too long ago. Unknown forms get the same response.',
    action:
      'Ask the applicant for a code: `POST /apply/api/tenants/{realm}/forms/{formId}/codes` sends one, and `POST …/code-checks` checks it and sets the cookie that opens the form.',
  },
  forbidden: {
    status: 403,
    title: 'The caller may not do this',
    meaning:
      'The caller is authenticated but lacks a role, belongs to another tenant, may not act on this resource, or sent no valid CSRF token.',
    action: 'Check the roles and the tenant of the caller. A session must send the CSRF header.',
  },
  'upstream-not-allowed': {
    status: 403,
    title: 'The host of the upstream is not allowed',
    meaning: 'The target’s upstream resolves to a host or address to which the token handler may not forward requests.',
    action: 'An operator must allow the host, or an administrator must correct the target.',
  },
  'invalid-code': {
    status: 403,
    title: 'The code is wrong, expired or used',
    meaning: 'The applicant’s code does not open this form: it is wrong, has expired or was already used.',
    action:
      'Ask the applicant to check the code, or send a new one with `send-code`. The number of wrong codes is limited.',
  },
  'not-found': {
    status: 404,
    title: 'The resource does not exist',
    meaning: 'The path or the resource does not exist, or the resource belongs to another tenant.',
    action: 'Check the path, the identifier and the tenant.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'The resource does not support this method',
    meaning: 'The path exists, but not with this method. `Allow` lists the supported methods.',
    action: 'Use a method that `Allow` lists.',
  },
  'request-timeout': {
    status: 408,
    title: 'The request arrived too slowly',
    meaning: 'The request’s header did not arrive in time, or its body was sent more slowly than the minimum rate.',
    action: 'Send the request again over a faster connection.',
  },
  conflict: {
    status: 409,
    title: 'The request conflicts with the state of the resource',
    meaning: 'The resource is in a state that does not permit this operation, or concurrent requests kept changing it.',
    action: 'Read the resource again, then decide whether to retry. `formStatus`, if present, is the form’s status.',
  },
  'definition-invalid': {
    status: 409,
    title: 'The form definition cannot be used',
    meaning:
      'The form definition is not valid, or its `dataSchema` is suspended because validation used too many resources. `errors`, if present, has pointers into the definition.',
    action:
      'A `configuration-admin` must correct the definition. `POST /form/v1/definitions/check` lists its problems. A suspended schema can be used again after `suspendedUntil`.',
  },
  'form-exists': {
    status: 409,
    title: 'The applicant already has a form of this definition',
    meaning: 'The definition permits one form per applicant, and the caller already has one. `formId` identifies it.',
    action: 'Continue with the form that `formId` identifies.',
  },
  'form-held': {
    status: 409,
    title: 'The form is on hold',
    meaning: 'An administrator has put the form on hold, so it cannot be deleted.',
    action: 'Ask an administrator (`form-admin`) to end the hold (operation `release`).',
  },
  'form-locked': {
    status: 409,
    title: 'The form is locked',
    meaning: 'The draft was not opened for too long and was locked.',
    action: 'Ask an administrator (`form-admin`) to unlock the form. After `retention.deleteAfter`, it is deleted.',
  },
  'form-not-draft': {
    status: 409,
    title: 'The form is not a draft',
    meaning: 'The operation is possible only while the form is a draft. `formStatus` is the form’s status.',
    action: 'Read the form. If it was submitted, an administrator or assessor can return it to draft.',
  },
  'intake-closed': {
    status: 409,
    title: 'The form definition accepts no applications now',
    meaning:
      'Forms of this definition can be created and submitted only in certain windows. `opens` and `closes` are the dates of the next window. If there is no next window, they are the dates of the last one. An open end is null.',
    action: 'Wait until the window opens. Drafts are kept until they expire, but can be submitted only in a window.',
  },
  'no-channel': {
    status: 409,
    title: 'The applicant has no channel to send to',
    meaning:
      'The applicant has no email address or telephone number to which the platform can send a code, or the mail server refuses the address.',
    action: 'Correct the address if it is mistyped. Otherwise create a form whose applicant has another channel.',
  },
  'too-many-files': {
    status: 409,
    title: 'The form accepts no more files',
    meaning: 'The uploaded files, including those that the form no longer names, have reached a limit of the form.',
    action: 'Use the files that were uploaded, and ask the office how to hand in further ones.',
  },
  'storage-full': {
    status: 409,
    title: 'The tenant’s storage for forms is full',
    meaning:
      'The tenant’s forms, and what deletions leave behind, fill its share of the database. Nothing was changed.',
    action: 'A `form-admin` must delete forms, or the operator must raise `TENANT_STORAGE_LIMIT`. Then retry.',
  },
  'registration-required': {
    status: 409,
    title: 'The client has to be registered',
    meaning:
      'The client of the token handler is not registered at the identity provider, the provider no longer knows it, or its management token was lost or never issued.',
    action:
      'An administrator must register the client. Nobody can sign in with a client that is not registered or that the provider no longer knows; if only its management token is missing, sign-ins still work.',
  },
  gone: {
    status: 410,
    title: 'The resource was deleted',
    meaning: 'The resource existed and was deleted. Deletions of forms are remembered for 30 days.',
    action: 'Remove references to the resource. It cannot be restored.',
  },
  stale: {
    status: 412,
    title: 'The resource has changed since it was read',
    meaning: 'The current revision of the resource is not one that `If-Match` names.',
    action: 'Read the resource, apply the change to the current version, and send it with the new `ETag`.',
  },
  'body-too-large': {
    status: 413,
    title: 'The body is too large',
    meaning: 'The body exceeds the size limit of the operation.',
    action: 'Send a smaller body. `detail` names the limit.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'The body has an unsupported type',
    meaning: 'The Content-Type, charset or Content-Encoding of the body is not supported.',
    action: 'Send the media type that `detail` names, in UTF-8, uncompressed or encoded with gzip, deflate or br.',
  },
  'idempotency-mismatch': {
    status: 422,
    title: 'The idempotency key was used for another request',
    meaning: 'The `Idempotency-Key` was used within the last 24 hours with a different body.',
    action: 'Use a new key for each request, and the same key only to retry the same request.',
  },
  'too-many-requests': {
    status: 429,
    title: 'Too many requests',
    meaning: 'The caller, address, session or form has reached a rate limit or a limit of concurrent streams.',
    action: 'Wait as many seconds as `Retry-After` says, if it is present, then retry. Send fewer requests.',
  },
  'headers-too-large': {
    status: 431,
    title: 'The headers of the request are too large',
    meaning: 'The request line and the headers exceed 16 KiB, or there are too many headers.',
    action: 'Send fewer or smaller headers. In a browser, delete the cookies of this site.',
  },
  // The types with a status of 500 or more.
  ...failureTypes,
} as const satisfies Record<string, ProblemType>;

export type ProblemSlug = keyof typeof problemTypes;

/** Returns the problem type with this slug, or undefined if no type has it. */
export function findProblemType(slug: string): ProblemType | undefined {
  return Object.hasOwn(problemTypes, slug) ? problemTypes[slug as ProblemSlug] : undefined;
}
