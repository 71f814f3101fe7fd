// Schemas of the sign-in and logout endpoints.
import { z } from 'zod';
import { clientIdSchema } from '../../service/clients/client-rules.ts';
import { isLocalPath } from './sign-in.ts';

export const clientParams = z.strictObject({ clientId: clientIdSchema });

const returnTo = z
  .string()
  .refine(isLocalPath, 'must be a path on the same origin')
  .optional()
  .describe('Where to land: a path on the same origin');

/** Parameters that the token handler passes on to the identity provider (OpenID Connect Core 1.0, section 3.1.2.1). */
const askedFields = {
  prompt: z
    .enum(['none', 'login', 'select_account'])
    .optional()
    .describe(
      'none: shows no page; if the person would have to do something, the browser lands with `error` in its query. login: asks for the credentials again. select_account: asks which account to use. Replaces the prompt of the client',
    ),
  max_age: z
    .string()
    .regex(/^\d{1,8}$/, 'must be a number of seconds with at most 8 digits')
    .optional()
    .describe('Most seconds since the person last entered credentials; if more, the identity provider asks for them'),
  acr_values: z
    .string()
    .regex(spaced('[\\x21-\\x7e]{1,200}'), 'must be names without special characters, separated by spaces')
    .max(300)
    .optional()
    .describe('Preferred authentication context classes, such as a level of assurance; a wish, which is not verified'),
  ui_locales: z
    .string()
    .regex(spaced('[A-Za-z0-9-]{1,35}'), 'must be language tags, separated by spaces')
    .max(100)
    .optional()
    .describe('Preferred languages of the identity provider\u2019s pages, such as `fr-CA en`'),
  login_hint: z
    .string()
    .regex(/^\P{Cc}+$/u, 'must not be empty or have control characters')
    .max(254)
    .optional()
    .describe('User name or email address that the sign-in form suggests'),
};

/** Unknown parameters are ignored, because analytics tools add parameters to links. */
export const authQuery = z.object({
  tenant: documentedAsRequired(
    'Name of the tenant, in any case or in kebab-case, or its URN. May be omitted if a proxy sets the tenant header, which takes precedence',
    500,
  ),
  callbackUrl: documentedAsRequired(
    "Address of the callback on the frontend's site, ending in `/clients/{clientId}/callback`. May be omitted for clients with the deprecated `authCallbackUrl`",
    2_000,
  ),
  returnTo,
  ...askedFields,
});

const once = 'must be given once';

/** Parameters of authorization responses in other flows: implicit, hybrid (OpenID Connect Core, section 3), JARM. */
const otherFlows = ['access_token', 'token', 'id_token', 'response'];

/**
 * The query of the callback: the parameters of RFC 6749 sections 4.1.2 and 4.1.2.1 and of RFC 9207 section 2. The query
 * must contain either a code or an error. Rejects parameters of another flow. Ignores all other parameters, as RFC 6749
 * section 4.1.2 requires.
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
/**
 * Documents a query parameter as required, because OpenAPI cannot express the two exceptions: the tenant header can
 * replace `tenant`, and the client's deprecated `authCallbackUrl` can replace `callbackUrl`.
 */
function documentedAsRequired(description: string, most: number) {
  return z
    .string()
    .max(most)
    .optional()
    .meta({ description, param: { required: true } });
}

/** Returns a pattern for one or more words that are separated by single spaces. `word` is the pattern of a word. */
function spaced(word: string): RegExp {
  return new RegExp(`^${word}(?: ${word})*$`);
}

export const logoutQuery = z.object({ returnTo });

/** The responses of the routes for sign-in and its callback. */
export const signInResponses = {
  302: { description: 'Redirects the browser', headers: { Location: 'Address' } },
  400: { description: 'The request is not valid, or this browser did not start the sign-in' },
  401: { description: 'The identity provider has ended the sign-in in the meantime' },
  404: { description: 'Unknown tenant or client' },
  409: { description: 'The client is not registered (registration-required)' },
  429: { description: 'Too many requests from this address', headers: { 'Retry-After': 'Seconds' } },
  502: { description: 'The identity provider or the configuration service failed' },
  503: { description: 'The session store or the database cannot be reached' },
  504: { description: 'The identity provider or the configuration service did not respond in time' },
};
