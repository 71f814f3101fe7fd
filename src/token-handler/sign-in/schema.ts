// Schemas of the sign-in and logout endpoints.
import { z } from 'zod';
import { clientIdPattern } from '../../service/clients/client-rules.ts';
import { isLocalPath } from './sign-in.ts';

export const clientParams = z.strictObject({
  clientId: z.string().regex(clientIdPattern, 'must be 1 to 50 letters, digits, spaces, hyphens and underscores'),
});

const returnTo = z
  .string()
  .refine(isLocalPath, 'must be a path on the same origin')
  .optional()
  .describe('Where to land: a path on the same origin');

/** Unknown parameters are ignored, because analytics tools add some to links. */
export const authQuery = z.object({
  tenant: z.string().optional().describe('Name of the tenant, in any case or in kebab-case, or its URN'),
  callbackUrl: z.string().max(2_000).optional().describe("Address of the callback on the frontend's site"),
  returnTo,
});

/** Parameters of RFC 6749 sections 4.1.2 and 4.1.2.1 and RFC 9207 section 2. openid-client checks their meaning. */
export const callbackQuery = z.object({
  state: z.string('must be given once').min(1).max(200),
  code: z.string('must be given once').optional(),
  error: z.string('must be given once').optional(),
  iss: z.string('must be given once').optional(),
});

export const logoutQuery = z.object({ returnTo });
