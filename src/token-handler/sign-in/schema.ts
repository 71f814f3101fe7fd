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

const once = 'must be given once';

/** Response parameters of other flows: implicit and hybrid (OpenID Connect Core, section 3), and JARM. */
const otherFlows = ['access_token', 'token', 'id_token', 'response'];

/**
 * Parameters of RFC 6749 sections 4.1.2 and 4.1.2.1 and RFC 9207 section 2: either a code or an error. Others are
 * ignored, as section 4.1.2 requires, unless they belong to another flow.
 */
export const callbackQuery = z
  .looseObject({
    state: z.string(once).min(1).max(200),
    code: z.string(once).min(1).optional(),
    error: z.string(once).min(1).optional(),
    iss: z.string(once).min(1).optional(),
  })
  .superRefine((query, { addIssue }) => {
    const reject = (name: string, message: string) => addIssue({ code: 'custom', path: [name], message });
    for (const name of otherFlows) if (name in query) reject(name, 'does not belong to this sign-in');
    if (query.code === undefined && query.error === undefined) reject('code', 'is required');
    if (query.code !== undefined && query.error !== undefined) reject('error', 'must not be given beside a code');
  });

export const logoutQuery = z.object({ returnTo });
