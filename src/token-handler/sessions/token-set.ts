// The tokens of a session, and when they expire or are due for refresh. Pure.
import { isObject } from '../../service/json-value.ts';

export interface TokenSet {
  accessToken: string;
  /** When the access token was received. Milliseconds since 1970, as every time here. */
  accessIssued: number;
  accessExpiry: number;
  /** Absent if none was issued, or if the last one may have been used and must not be sent again. */
  refreshToken?: string;
  /** Absent if the refresh token has no expiry. */
  refreshExpiry?: number;
  idToken?: string;
  /** Roles in the access token. */
  roles: string[];
}

/** The members of a token response (RFC 6749 section 5.1, and Keycloak's) that are used here. */
export interface TokenAnswer {
  access_token: string;
  /** Seconds */
  expires_in?: number | undefined;
  refresh_token?: string | undefined;
  /** Seconds; 0 for a token without expiry. */
  refresh_expires_in?: unknown;
  id_token?: string | undefined;
}

/** Lifetime of an access token whose issuer does not state one. */
const assumedLifetime = 60_000;

/** `previous`: the refreshed set, whose refresh and ID token are kept if the response has no new ones. */
export function tokenSetOf(answer: TokenAnswer, now: number, previous?: TokenSet): TokenSet {
  const refreshToken = answer.refresh_token ?? previous?.refreshToken;
  const refreshExpiry = refreshToken === undefined ? undefined : refreshExpiryOf(answer, now, previous);
  const idToken = answer.id_token ?? previous?.idToken;
  return {
    accessToken: answer.access_token,
    accessIssued: now,
    accessExpiry: now + (answer.expires_in === undefined ? assumedLifetime : answer.expires_in * 1000),
    ...(refreshToken !== undefined && { refreshToken }),
    ...(refreshExpiry !== undefined && { refreshExpiry }),
    ...(idToken !== undefined && { idToken }),
    roles: rolesOf(claimsOf(answer.access_token)),
  };
}

function refreshExpiryOf(answer: TokenAnswer, now: number, previous?: TokenSet): number | undefined {
  const seconds = answer.refresh_expires_in;
  if (typeof seconds === 'number') return seconds > 0 ? now + seconds * 1000 : undefined;
  // The same refresh token without a new expiry keeps its expiry.
  const isSame = answer.refresh_token === undefined || answer.refresh_token === previous?.refreshToken;
  return isSame ? previous?.refreshExpiry : undefined;
}

/** The set without its refresh token: it expires with its access token. */
export function withoutRefreshToken(set: TokenSet): TokenSet {
  const { refreshToken: _token, refreshExpiry: _expiry, ...rest } = set;
  return rest;
}

/** Whether the access token has less than a minute, or less than a quarter of its lifetime, left. */
export function isRefreshDue(set: TokenSet, now: number): boolean {
  const lifetime = set.accessExpiry - set.accessIssued;
  return set.accessExpiry - now < Math.min(60_000, lifetime / 4);
}

/** Claims of a JWT that the identity provider sent directly, so unverified; empty for an opaque token. */
export function claimsOf(token: string): Record<string, unknown> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return isObject(claims) ? claims : {};
  } catch {
    return {};
  }
}

/** Realm roles by name, client roles as `<client>:<role>`. */
function rolesOf(claims: Record<string, unknown>): string[] {
  const roles = namesIn(claims.realm_access);
  const clients = isObject(claims.resource_access) ? Object.entries(claims.resource_access) : [];
  for (const [client, access] of clients) for (const role of namesIn(access)) roles.push(`${client}:${role}`);
  return roles;
}

function namesIn(access: unknown): string[] {
  const roles = isObject(access) ? access.roles : undefined;
  return Array.isArray(roles) ? roles.filter((role) => typeof role === 'string') : [];
}
