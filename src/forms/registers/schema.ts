// The schemas of the register API, and descriptions of responses that its routes share. Unknown members are rejected.
import { z } from 'zod';
import { anyObject } from '../../service/http/any-object.ts';
import { numberInUrl } from '../../service/http/number-in-url.ts';
import { jsonOrUndefined } from '../../service/json-value.ts';
import { entryProblems, maxEntries, namePattern, registerNamespace } from './register.ts';

/** The path of the register collection. */
export const path = '/form/v1/registers';

const retryAfter = { 'Retry-After': 'Seconds' };

export const refusals = {
  400: { description: 'The request is invalid, or the configuration service rejected it' },
  401: { description: 'No valid bearer' },
  403: { description: 'The caller has neither form-admin nor configuration-admin, or names another tenant' },
  502: {
    description:
      'The configuration service failed or denied access; `written`, if present, lists what was written before',
  },
  503: { description: 'The registers of the tenant are too large to be read this often', headers: retryAfter },
};

const reasons = 'The register is being changed, registers are read too often for their size, or the database fails';
export const busy = { description: reasons, headers: retryAfter };

export const missing = { description: 'There is no such register, or it lacks its definition or its entries' };

const example = {
  namespace: registerNamespace,
  name: 'cities',
  description: 'Cities with an office',
  entries: [
    { label: 'Banff', value: 'banff' },
    { label: 'Red Deer', value: 'red-deer' },
  ],
};

const name = z
  .string()
  .regex(namePattern, 'must be 1 to 50 letters, digits, spaces, hyphens and underscores, without a space at either end')
  .meta({ description: 'Case sensitive', examples: [example.name] });

const description = z
  .string()
  .max(10_000, 'must have at most 10000 characters')
  .meta({ examples: [example.description] });

const entriesDescription =
  'All strings or all objects; at most 10,000 and 1 MiB of JSON. No member is named `_bsontype` or begins with `META_`';

/** Used only in the OpenAPI document. `entries` below validates requests: it is faster and names the invalid item. */
const entriesShape = z
  .union([z.array(z.string()), z.array(z.record(z.string(), z.unknown()))])
  .meta({ description: entriesDescription, examples: [example.entries] });

const entries = z
  .array(z.unknown(), 'must be an array')
  .superRefine((value, context) => {
    for (const { path, detail } of entryProblems(value)) context.addIssue({ code: 'custom', path, message: detail });
  })
  .meta({
    description: entriesDescription,
    examples: [example.entries],
    override: ({ jsonSchema }: { jsonSchema: { type?: unknown; items?: unknown; anyOf?: unknown } }) => {
      delete jsonSchema.type;
      delete jsonSchema.items;
      const listOf = (type: string) => ({ type: 'array', maxItems: maxEntries, items: { type } });
      jsonSchema.anyOf = [listOf('string'), listOf('object')];
    },
  });

const namespace = z
  .literal(registerNamespace, `must be ${registerNamespace}`)
  .optional()
  .meta({ description: 'Optional; no other value is allowed' });

export const createBody = z
  .strictObject({ namespace, name, description: description.default(''), entries: entries.default([]) })
  .meta({ examples: [{ name: example.name, description: example.description, entries: example.entries }] });

export const patchBody = z
  .strictObject({ namespace, description: description.optional(), entries: entries.optional() })
  .refine((body) => body.description !== undefined || body.entries !== undefined, 'must have description or entries')
  .meta({ examples: [{ entries: example.entries }] });

export const nameParams = z.object({ name });

export const entryParams = z.object({
  name,
  key: z
    .string()
    .min(1)
    .meta({ description: 'Key of the entry: a string itself, or an object\u2019s member `keyField`' }),
});

const keyField = z
  .string()
  .min(1)
  .max(100)
  .default('value')
  .meta({ description: 'Member that is the key of an object; ignored for strings' });

/** A string or an object. `entryProblems` later checks this entry together with the others. */
export const entryBody = z.union([z.string(), anyObject]).meta({ examples: [example.entries[0]] });

const revision = numberInUrl(z.number().int().nonnegative());
export const revisionParams = z.object({ name, revision });
export const revisionBody = z.strictObject({ revision: z.number().int().nonnegative() });

const tenantId = z
  .string()
  .optional()
  .meta({
    description: 'URN of the tenant; required of core users, and of callers without a token',
    examples: ['urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6'],
  });

export const tenantQuery = z.object({ tenantId });
export const keyQuery = z.object({ tenantId, keyField });
export const importQuery = z.object({
  tenantId,
  keyField,
  mode: z.enum(['upsert', 'replace']).default('upsert').meta({
    description: '`upsert` adds and changes entries; `replace` also removes the entries that the table lacks',
  }),
  dryRun: z
    .stringbool({ truthy: ['true'], falsy: ['false'] })
    .default(false)
    .meta({ description: 'Only report the changes' }),
});
export const compareQuery = z.object({
  tenantId,
  keyField,
  to: revision.optional().meta({ description: 'Default: the latest revision' }),
});
export const csvBody = z
  .string('is required')
  .min(1)
  .meta({ examples: ['label,value\nBanff,banff\n'] });

/** Encodes the last name of a page as a cursor. The cursor stays valid while registers are created and deleted. */
export function encodeCursor(lastName: string): string {
  return Buffer.from(JSON.stringify([lastName])).toString('base64url');
}

const after = z
  .string()
  .max(200)
  .transform((text, context) => {
    if (text === '') return undefined;
    const parsed = z
      .tuple([z.string().regex(namePattern)])
      .safeParse(jsonOrUndefined(Buffer.from(text, 'base64url').toString()));
    if (parsed.success) return parsed.data[0];
    context.addIssue('must be a cursor of this list');
    return z.NEVER;
  })
  .optional()
  .meta({ description: '`page.next` of the page before; empty for the first page' });

export const listQuery = z.object({
  tenantId,
  top: z.coerce
    .number()
    .int()
    .min(1)
    .max(100)
    .default(25)
    .meta({ description: 'Maximum number of registers on a page; a page ends early at 8 MiB of entries' }),
  after,
});

export const registerResponse = z
  .object({ namespace: z.literal(registerNamespace), name, description: z.string(), entries: entriesShape })
  .meta({ id: 'Register', examples: [example] });

export const listResponse = z
  .object({
    results: z.array(registerResponse),
    page: z.object({ after: z.string().nullable(), next: z.string().nullable(), size: z.int() }),
  })
  .meta({ examples: [{ results: [example], page: { after: null, next: null, size: 1 } }] });

export const entriesResponse = entriesShape;

const count = z.int().nonnegative();

export const comparisonResponse = z.object({
  added: count,
  changed: count,
  removed: count,
  unchanged: count,
  reordered: z.boolean().meta({ description: 'True if entries that are in both are in a different order' }),
  changes: z.array(
    z.object({
      change: z.enum(['added', 'changed', 'removed']),
      key: z.string().nullable(),
      before: z.unknown().optional(),
      after: z.unknown().optional(),
    }),
  ),
  truncated: z.boolean().meta({ description: 'True if `changes` lacks some: it has at most 1,000' }),
});

export const importResponse = comparisonResponse.extend({ dryRun: z.boolean() });

export const revisionsQuery = z.object({
  tenantId,
  top: z.coerce.number().int().min(1).max(100).default(25).meta({ description: 'At most; a page may be shorter' }),
  after: z.string().max(200).default('').meta({ description: '`page.next` of the page before' }),
});

const summary = z.object({
  revision: count,
  created: z.string().nullable(),
  lastUpdated: z.string().nullable(),
  entries: count.nullable().meta({ description: 'Number of entries; null if the revision is not a list' }),
  latest: z.boolean().meta({ description: 'Changes of entries go to this revision' }),
  active: z.boolean().meta({ description: 'Forms use this revision' }),
});

export const revisionsResponse = z.object({
  results: z.array(summary),
  page: z.object({ after: z.string().nullable(), next: z.string().nullable(), size: z.int() }),
});

export const revisionResponse = z.object({ revision: count, entries: entriesShape });
export const pinnedResponse = z.object({ active: count });
export const keptResponse = z.object({ latest: count });

const reference = z.object({
  definitionId: z.string(),
  definitionName: z.string(),
  register: z.string(),
  urn: z.string(),
  pointer: z.string().meta({ description: 'JSON pointer into the uiSchema' }),
});

export const referencesResponse = z.object({
  results: z.array(reference),
  truncated: z.boolean().meta({ description: 'True if some are left out, because they are too many or too long' }),
});
