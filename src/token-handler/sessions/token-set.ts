// The tokens of a session and what their times mean. It neither fetches nor stores them.
import { isObject } from '../../service/json-value.ts';

export interface TokenSet {
  accessToken: string;
  /** When the access token was had. Milliseconds since 1970, as every time here. */
  accessIssued: number;
  accessExpiry: number;
  /** Absent when none was issued, or when the last one may have been used up and must not be presented again. */
  refreshToken?: string;
  /** Absent when the refresh token has no limit of its own. */
  refreshExpiry?: number;
  idToken?: string;
  /** Roles that the access token gives. */
  roles: string[];
}

/** The members of a token endpoint's answer (RFC 6749 section 5.1, and Keycloak's) that are used here. */
export interface TokenAnswer {
  access_token: string;
  /** Seconds */
  expires_in?: number | undefined;
  refresh_token?: string | undefined;
  /** Seconds; 0 for a token without a limit of its own. */
  refresh_expires_in?: unknown;
  id_token?: string | undefined;
}

/** What an access token lasts whose issuer does not say. */
const assumedLifetime = 60_000;

/** `previous`: the set that was refreshed, whose refresh and ID token stay where the answer brings no new ones. */
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
  // The same token, and not a word about it: its end stays.
  const isSame = answer.refresh_token === undefined || answer.refresh_token === previous?.refreshToken;
  return isSame ? previous?.refreshExpiry : undefined;
}

/** The set without its refresh token: it ends when its access token does. */
export function withoutRefreshToken(set: TokenSet): TokenSet {
  const { refreshToken: _token, refreshExpiry: _expiry, ...rest } = set;
  return rest;
}

/** When less than a minute, or than a quarter of its lifetime, is left of the access token. */
export function isRefreshDue(set: TokenSet, now: number): boolean {
  const lifetime = set.accessExpiry - set.accessIssued;
  return set.accessExpiry - now < Math.min(60_000, lifetime / 4);
}

/** Claims of a JWT that came from the access service itself; nothing of a token that is no JWT. */
export function claimsOf(token: string): Record<string, unknown> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return isObject(claims) ? claims : {};
  } catch {
    return {};
  }
}

/** Realm roles bare, client roles as `<client>:<role>`. */
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
