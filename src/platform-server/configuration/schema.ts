// The schemas of the configuration service's requests and responses. Unknown members are ignored, because older clients
// send some.
import { z } from 'zod';
import { anyObject } from '../../service/http/any-object.ts';
import type { ResponseDescription } from '../../service/http/http-app.ts';
import { numberInUrl } from '../../service/http/number-in-url.ts';
import { cursor, jsonParameter, top } from '../page.ts';
import type { Criteria } from './configuration.ts';

const namePattern = /^[a-zA-Z0-9-_ ]{1,50}$/;
const namePart = z.string().regex(namePattern, 'must be 1 to 50 letters, digits, spaces, hyphens and underscores');

export const namespaceParams = z.object({ namespace: namePart });
export const nameParams = z.object({ namespace: namePart, name: namePart });
export const revisionParams = nameParams.extend({ revision: numberInUrl(z.number().int().min(0).max(2_147_483_647)) });

const flagParameter = z
  .string()
  .transform((text) => text === 'true')
  .default(false);

/**
 * If the parameter `core` is present, with any value, the route reads core configuration. The guards read the
 * parameters `tenant` and `tenantId`.
 */
export const readQuery = z.object({ core: z.string().optional() });
export const activeQuery = z.object({ orLatest: flagParameter });

const moment = z.iso.datetime({ offset: true }).transform((text) => new Date(text));

/** Maximum number of fields in the criteria. Each of them is compared with each value. */
const mostFields = 20;

/**
 * Each additional member of the criteria requires a field of the configuration to have the member's value. The name of
 * the member is the dotted path to the field.
 */
const criteriaSchema = z
  .object({
    nameContains: z.string().max(50).optional(),
    createDateAfter: moment.optional(),
    createDateBefore: moment.optional(),
    useOr: z.boolean().default(false),
  })
  .catchall(z.json())
  .transform(
    ({ nameContains, createDateAfter, createDateBefore, useOr, ...fields }): Criteria => ({
      ...(nameContains !== undefined && { nameContains }),
      ...(createDateAfter && { createDateAfter }),
      ...(createDateBefore && { createDateBefore }),
      useOr,
      fields,
    }),
  )
  .refine(({ fields }) => Object.keys(fields).length <= mostFields, `must compare at most ${mostFields} fields`);

export const listQuery = z.object({
  top: top(10, 1_000),
  after: cursor(z.string().max(50)),
  includeActive: flagParameter,
  criteria: jsonParameter(criteriaSchema),
});

export const revisionsQuery = z.object({
  top: top(10, 5_000),
  after: cursor(z.number().int().min(0).max(2_147_483_647)),
  criteria: jsonParameter(criteriaSchema),
});

export const patchBody = z.discriminatedUnion('operation', [
  z.object({ operation: z.literal('UPDATE'), update: anyObject }),
  z.object({
    operation: z.literal('REPLACE'),
    configuration: z.unknown().refine((value) => Boolean(value), 'must be a value'),
  }),
  z.object({ operation: z.literal('DELETE'), property: z.string().min(1) }),
]);

const revisionNumber = z.number().int().min(0).max(2_147_483_647);

/** The audit event of each operation in `postBody`. */
export const operationActions = {
  'CREATE-REVISION': 'configuration.create-revision',
  'SET-ACTIVE-REVISION': 'configuration.activate-revision',
} as const;

export const postBody = z.discriminatedUnion('operation', [
  z.object({ operation: z.literal('CREATE-REVISION') }),
  z
    .object({
      operation: z.literal('SET-ACTIVE-REVISION'),
      revision: revisionNumber.optional(),
      // The older name of `revision`.
      setActiveRevision: revisionNumber.optional(),
    })
    .transform(({ operation, revision, setActiveRevision }, context) => {
      const chosen = revision ?? setActiveRevision;
      if (chosen === undefined) context.addIssue({ code: 'custom', path: ['revision'], message: 'is required' });
      return { operation, revision: chosen ?? 0 };
    }),
]);

export const revisionResponse = z.object({
  revision: z.int(),
  created: z.iso.datetime(),
  lastUpdated: z.iso.datetime(),
  configuration: z.unknown(),
});

export const latestResponse = z.object({
  urn: z.string(),
  namespace: z.string(),
  name: z.string(),
  latest: revisionResponse,
});

export const entryResponse = latestResponse.extend({
  latest: revisionResponse.nullable(),
  active: revisionResponse.nullable(),
});
export const activeSetResponse = z.object({ namespace: z.string(), name: z.string(), active: z.int() });
export const deletedResponse = z.object({ deleted: z.boolean() });

const pageResponse = z.object({
  after: z.string().nullable(),
  next: z.string().nullable(),
  size: z.int(),
  total: z.int(),
});
export const listResponse = z.object({
  results: z.array(latestResponse.extend({ active: revisionResponse.nullish() })),
  page: pageResponse,
});
export const revisionsResponse = z.object({ results: z.array(revisionResponse), page: pageResponse });

export const refusals: Record<number, ResponseDescription> = {
  400: { description: 'The parameters or the body are invalid' },
  401: { description: 'No valid bearer' },
  403: { description: 'The caller lacks the role' },
  503: {
    description: 'Too many or too large requests of the tenant are running',
    headers: { 'Retry-After': 'Seconds' },
  },
};
