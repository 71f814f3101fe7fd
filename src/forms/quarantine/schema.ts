// The request and response schemas of the quarantine endpoints.
import { z } from 'zod';
import type { QuarantineItem } from '../../service/quarantine/quarantine.ts';
import { cursor, tenantOrAllQuery } from '../forms/schema.ts';

const { tenantId } = tenantOrAllQuery.shape;

export const quarantineListQuery = z.object({
  tenantId,
  kind: z
    .string()
    .max(50)
    .optional()
    .meta({ description: 'The operation that failed', examples: ['form-locked'] }),
  reason: z
    .string()
    .max(50)
    .optional()
    .meta({ examples: ['service-refused'] }),
  top: z.coerce.number().int().min(1).max(100).default(25).meta({ description: 'Items on a page, 1 to 100' }),
  after: cursor,
});

export const itemParams = z.object({ itemId: z.guid('must be a UUID').toLowerCase() });

export const itemOperation = z.strictObject({ operation: z.enum(['release']) });

const timestamp = z.iso.datetime();

export const quarantineItem = z
  .strictObject({
    id: z.uuid(),
    kind: z.string().meta({ description: 'The operation that failed', examples: ['form-locked'] }),
    tenantId: z.string().nullable(),
    formId: z.uuid().nullable(),
    definitionId: z.string().nullable(),
    reason: z.string().meta({ examples: ['service-refused'] }),
    detail: z.string().meta({ description: 'Codes only', examples: ['events 422', 'SQLSTATE 22P05'] }),
    firstSeen: timestamp,
    lastTried: timestamp,
    attempts: z.int(),
    version: z.string().meta({ description: 'The product version of the last attempt' }),
    released: z.boolean().meta({ description: 'The item will be retried' }),
  })
  .meta({ id: 'QuarantineItem' });

export const quarantineList = z
  .strictObject({
    results: z.array(quarantineItem),
    page: z.strictObject({ after: z.string().nullable(), next: z.string().nullable(), size: z.int() }),
  })
  .meta({ id: 'QuarantineList' });

export const releasedItem = z.strictObject({ id: z.uuid(), released: z.boolean() }).meta({ id: 'ReleasedItem' });

export function itemView(item: QuarantineItem): z.input<typeof quarantineItem> {
  const { id, kind, tenantId: tenant, about, reason, detail, firstSeen, lastTried, attempts, version, released } = item;
  return {
    ...{ id, kind, tenantId: tenant, reason, detail, attempts, version, released },
    formId: about.formId ?? null,
    definitionId: about.definitionId ?? null,
    firstSeen: firstSeen.toISOString(),
    lastTried: lastTried.toISOString(),
  };
}
