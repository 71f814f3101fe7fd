// Schemas of the routes that list and end sessions.
import { z } from 'zod';

const time = z.iso.datetime();

export const sessionList = z.array(
  z.object({
    tenantId: z.string(),
    tenant: z
      .object({ name: z.string(), realm: z.string() })
      .nullable()
      .optional()
      .describe('The tenant of the cookie’s session; null while the tenant service cannot be reached'),
    clientId: z.string(),
    id: z.string().describe('Public handle of the session; not the id in the cookie'),
    person: z
      .string()
      .optional()
      .describe('Only for the cookie’s session: the same in all sessions of the person, and different for others'),
    name: z.string(),
    email: z.string().nullable(),
    roles: z.array(z.string()),
    expiry: time.describe(
      'When the session ends if no further request comes: idleExpiry, absoluteExpiry or the end of the refresh token, whichever is first',
    ),
    idleExpiry: time.describe('Each request to a target postpones this time; reading this list does not'),
    absoluteExpiry: time.describe('The session ends then at the latest, regardless of requests'),
    authenticatedBy: z.string().nullable(),
    created: time,
    core: z.boolean().describe('Whether the client is a core client'),
    logoutUrl: z
      .string()
      .nullable()
      .describe('URL that the browser opens to log out. Null for a session other than that of the cookie'),
  }),
);

export const sessionListQuery = z.strictObject({
  top: z.coerce.number().int().min(1).max(100).default(100).describe('For administrators: sessions in a page'),
  after: z
    .string()
    .max(100)
    .optional()
    .describe(
      'For administrators: id of the last session of the page before, which may have ended within the last hour',
    ),
  tenantId: z.string().optional().describe('For administrators of core: the tenant'),
});

export const sessionParams = z.strictObject({
  sessionId: z.string().regex(/^[\w-]{1,100}$/, 'must be the id of a session'),
});

export const sessionQuery = z.strictObject({ tenantId: z.string().optional() });

export const deletion = z.object({ deleted: z.boolean() });
