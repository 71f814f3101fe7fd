// Schemas of the requests and responses of the client endpoints. Unknown fields in request bodies are rejected.
import { z } from 'zod';
import {
  allowedRedirectUris,
  mostRedirectUris,
  type RedirectUriRules,
  redirectUriLimits,
  redirectUriSchema,
} from '../../service/clients/redirect-uri.ts';
import { leftoverReasons } from './leftover-clients.ts';
import { managements } from './registration.ts';

export const clientParams = z.object({
  clientId: z
    .string()
    .meta({ description: 'Id of a client of the tenant, or of a core client', examples: ['permits-web'] }),
});

const tenantId = z.string().optional().meta({ description: 'Tenant URN, required of core users' });

export const tenantQuery = z.object({ tenantId });
export const listQuery = z.object({
  tenantId,
  core: z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .transform((text) => text === 'true')
    .meta({ description: 'Core clients only' }),
});

const identityProviderText = (longest: number) =>
  z
    .string()
    .min(1, 'must not be empty')
    .max(longest, `must have at most ${longest} characters`)
    // The characters of client ids and client secrets (RFC 6749, appendices A.1 and A.2).
    .regex(/^[\x20-\x7e]*$/, 'must contain printable ASCII characters only');

/** The request registers a new client with an initial access token, or stores the credentials of an existing client. */
function registerBody(redirectUri: z.ZodType<string, string>) {
  return z
    .strictObject({
      registrationToken: z
        .string()
        .min(1, 'must not be empty')
        .max(8_192, 'must have at most 8192 characters')
        // The token is sent in a header. The pattern accepts a few more characters than RFC 6750 section 2.1 allows.
        .regex(/^[\x21-\x7e]*$/, 'must be a token')
        .optional()
        .meta({ description: "An initial access token of the tenant's realm; not stored" }),
      authCallbackUrl: redirectUri
        .optional()
        .meta({ description: 'Another redirect URI to register; not stored in the configuration' }),
      clientId: identityProviderText(500)
        .optional()
        .meta({ description: 'Instead of registrationToken: id of a client that exists at the identity provider' }),
      clientSecret: identityProviderText(2_000)
        .optional()
        .meta({ description: 'Secret of that client; stored encrypted. The client is never changed or deleted' }),
    })
    .transform(({ registrationToken, authCallbackUrl, clientId, clientSecret }, context) => {
      const isProvided = clientId !== undefined || clientSecret !== undefined;
      const refuse = (field: string, message: string) => {
        context.addIssue({ code: 'custom', path: [field], message });
        return z.NEVER;
      };
      if (!isProvided && registrationToken === undefined) return refuse('registrationToken', 'is required');
      if (!isProvided && registrationToken !== undefined) return { registrationToken, authCallbackUrl };
      const mixed = { registrationToken, authCallbackUrl };
      for (const [field, value] of Object.entries(mixed))
        if (value !== undefined) refuse(field, 'must not be sent with clientId and clientSecret');
      if (clientId === undefined) return refuse('clientId', 'is required');
      if (clientSecret === undefined) return refuse('clientSecret', 'is required');
      return { clientId, clientSecret };
    });
}

export function createBodies({ redirectUriRules }: { redirectUriRules: RedirectUriRules }) {
  const redirectUri = redirectUriSchema(redirectUriRules);
  return {
    register: registerBody(redirectUri),
    update: z.strictObject({
      redirectUris: z
        .array(redirectUri)
        .max(mostRedirectUris, `must have at most ${mostRedirectUris} items`)
        .refine((uris) => allowedRedirectUris(uris) === uris.length, `must be ${redirectUriLimits}`)
        .meta({ description: 'The redirect URIs that replace the current ones' }),
    }),
  };
}

export const leftoversResponse = z.array(
  z
    .object({
      clientName: z.string().meta({ description: 'Name of the client at the identity provider, to search for' }),
      clientId: z
        .string()
        .nullable()
        .meta({ description: 'Id of the client at the identity provider; null if the response with it was lost' }),
      realm: z.string(),
      reason: z.enum(leftoverReasons).meta({
        description:
          'response-lost: the registration got no response, so the client may not exist; token-lost, token-refused, no-token: a replaced client that the token handler could not delete; deletion-pending: a replaced client that it will delete',
      }),
      created: z.iso.datetime().meta({ description: 'When the registration began or was replaced' }),
    })
    .meta({ id: 'Leftover' }),
);

export const clientResponse = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    redirectUris: z.array(z.string()).meta({ description: 'As configured' }),
    targets: z.array(z.object({ id: z.string(), upstream: z.string() })),
    keycloakLogout: z.boolean(),
    core: z.boolean(),
    registered: z.boolean(),
    registration: z
      .object({
        clientId: z.string().meta({ description: 'Id of the client at the identity provider' }),
        registeredAt: z.iso.datetime(),
        redirectUris: z.array(z.string()).meta({ description: 'As registered' }),
        management: z.enum(managements).meta({
          description:
            'kept: can be updated; lost: must be registered again before an update; unsupported: the identity provider gave no means to change it; provided: an administrator created the client, and it is never changed or deleted',
        }),
      })
      .nullable(),
  })
  .meta({ id: 'Client' });

export const listResponse = z.array(clientResponse);
