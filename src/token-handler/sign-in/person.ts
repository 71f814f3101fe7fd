// Who has signed in, by the claims of the tokens: pure. Both are Keycloak's words where OpenID Connect has none; the ID
// token, which was verified, is believed first.
import type { SessionUser } from '../sessions/session.ts';

type Claims = Record<string, unknown>;

/** Roles are the token set's, because each refresh may change them. */
export function describePerson(idToken: Claims & { sub: string }, accessToken: Claims): SessionUser {
  const email = textOf(idToken.email) ?? textOf(accessToken.email);
  const authenticatedBy = textOf(idToken.identity_provider) ?? textOf(accessToken.identity_provider);
  return {
    id: idToken.sub,
    name: textOf(idToken.name) ?? textOf(idToken.preferred_username) ?? idToken.sub,
    ...(email !== undefined && { email }),
    roles: [],
    ...(authenticatedBy !== undefined && { authenticatedBy }),
  };
}

/** Undefined for what is no text, or an empty one. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
