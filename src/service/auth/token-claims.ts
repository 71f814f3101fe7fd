// The claims of access tokens: Keycloak's, RFC 9068's and those that show that a token is of another kind.
import { z } from 'zod';
import { storable, storableText } from '../storable-text.ts';
import { roleClaims } from './token-roles.ts';

/** Nothing depends on a name, but it is stored with each form that the person creates. */
const nameClaim = z
  .string()
  .transform((name) => storable(name, 200))
  .optional();
/** An identifier that is stored with forms. */
const storedClaim = storableText(255);
/** The claims of an access token. Rejects the claims of tokens of other kinds. */
export const claimsSchema = z.object({
  // OpenID Connect Core 1.0, section 2, limits the length of `sub`.
  sub: storedClaim.min(1),
  exp: z.number(),
  // Keycloak writes the kind of token into this claim: Bearer, ID, Refresh, Offline, Logout, DPoP and others. Only
  // access tokens (Bearer) are accepted.
  typ: z.literal('Bearer').optional(),
  // ID tokens (OpenID Connect Core 3.1.3.6 and 3.3.2.11) and logout tokens (Back-Channel Logout 2.4) have these claims.
  // A token with one of them is rejected.
  at_hash: z.undefined().optional(),
  c_hash: z.undefined().optional(),
  events: z.undefined().optional(),
  azp: storedClaim.optional(),
  name: nameClaim,
  preferred_username: nameClaim,
  // An address that cannot be stored is not the address of the person.
  email: storedClaim.optional().catch(undefined),
  email_verified: z.unknown().optional(),
  sid: z.unknown().optional(),
  session_state: z.unknown().optional(),
  aud: z.union([z.string().transform((one) => [one]), z.array(z.string())]).default([]),
  ...roleClaims,
});

type Claims = z.output<typeof claimsSchema>;

/** Returns what the claims say about the person or the account. */
export function personOf(claims: Claims) {
  return {
    subject: claims.sub,
    name: claims.name ?? claims.preferred_username ?? claims.sub,
    ...(claims.email !== undefined && { email: claims.email }),
    ...(claims.email !== undefined && claims.email_verified === true && { isEmailVerified: true }),
    ...(isServiceAccount(claims) && { isServiceAccount: true }),
    clientId: claims.azp ?? '',
  };
}

/**
 * True for a token from the client credentials grant. Its subject is the client (RFC 9068 section 2.2) or, in Keycloak,
 * a user that is named after the client. A person may choose such a name, but a person's token names a session.
 */
function isServiceAccount(claims: Claims): boolean {
  const { sub, azp, sid, session_state: state, preferred_username: username } = claims;
  if (azp === undefined || sid !== undefined || state !== undefined) return false;
  return sub === azp || username?.toLowerCase() === `service-account-${azp}`.toLowerCase();
}
