// Shapes of the session endpoints.
import { z } from 'zod';

const time = z.iso.datetime();

export const sessionListAnswer = z.array(
  z.object({
    tenantId: z.string(),
    clientId: z.string(),
    id: z.string().describe('Public handle of the session; not what the cookie holds'),
    name: z.string(),
    email: z.string().nullable(),
    roles: z.array(z.string()),
    expiry: time.describe('When the session ends if no further request comes'),
    authenticatedBy: z.string().nullable(),
    created: time,
    core: z.boolean().describe('Whether the client is one of core'),
  }),
);

export const sessionListQuery = z.strictObject({
  top: z.coerce.number().int().min(1).max(100).default(100).describe('For administrators: sessions in an answer'),
  after: z.string().max(100).optional().describe('For administrators: id of the last session of the answer before'),
  tenantId: z.string().optional().describe('Which tenant, for administrators of core'),
});

export const sessionParams = z.strictObject({
  sessionId: z.string().regex(/^[\w-]{1,100}$/, 'must be the id of a session'),
});

export const sessionQuery = z.strictObject({ tenantId: z.string().optional() });

export const deletedAnswer = z.object({ deleted: z.boolean() });
