// The request and response schemas of the register API, and the descriptions of responses that its routes share.
// Requests with unknown members are rejected.
import { z } from 'zod';
import { entryProblems, maxEntries, namePattern, registerNamespace } from './register.ts';

/** The path of the register collection. */
export const path = '/form/v1/registers';

export const refusals = {
  400: { description: 'The request is invalid, or the configuration service rejected it' },
  401: { description: 'No valid bearer' },
  403: { description: 'The caller has neither form-admin nor configuration-admin, or names another tenant' },
  502: {
    description:
      'The configuration service failed or denied access; `written`, if present, lists what was written before',
  },
};

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

/** Appears only in the OpenAPI document. The actual validation is faster and names the invalid item. */
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
    override: ({ jsonSchema }: { jsonSchema: { items?: unknown; anyOf?: unknown; maxItems?: number } }) => {
      delete jsonSchema.items;
      jsonSchema.maxItems = maxEntries;
      jsonSchema.anyOf = [{ items: { type: 'string' } }, { items: { type: 'object' } }];
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

const tenantId = z
  .string()
  .optional()
  .meta({
    description: 'URN of the tenant; required of core users, and of callers without a token',
    examples: ['urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6'],
  });

export const tenantQuery = z.object({ tenantId });

/** Encodes the last name of a page. The cursor stays valid while registers are created and deleted. */
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
      .safeParse(parseJson(Buffer.from(text, 'base64url').toString()));
    if (parsed.success) return parsed.data[0];
    context.addIssue('must be a cursor of this list');
    return z.NEVER;
  })
  .optional()
  .meta({ description: '`page.next` of the page before; empty for the first page' });

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const listQuery = z.object({
  tenantId,
  top: z.coerce
    .number()
    .int()
    .min(1)
    .max(100)
    .default(25)
    .meta({ description: 'Most registers on a page; a page ends early at 8 MiB of entries' }),
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
