// Who has signed in, according to the claims of the tokens: pure. The verified ID token has precedence. Claims that OpenID
// Connect does not define are Keycloak's.
import type { SessionUser } from '../sessions/session.ts';

type Claims = Record<string, unknown>;

/** Without roles: each refresh may change them, so they are in the token set. */
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

/** Undefined for an empty text and for any other value. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
