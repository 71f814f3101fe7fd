// Defines sessions and token sets: what they contain, when they expire, and when a refresh is due. Pure functions only.
import { hash } from 'node:crypto';
import * as jose from 'jose';
import { isObject } from '../../service/json-value.ts';

export interface SessionUser {
  /** The person's subject (`sub`) in the tokens. */
  id: string;
  name: string;
  email?: string;
  /** The roles at the last refresh: names of realm roles, and client roles in the form `<client>:<role>`. */
  roles: string[];
  /** The external identity provider that authenticated the person, if the tokens name it. */
  authenticatedBy?: string;
}

export interface Session {
  /** Identifies the session in lists, logs, limits and the store. Not secret: a digest of the id in the cookie. */
  handle: string;
  /** URN of the tenant. */
  tenantId: string;
  tenantName: string;
  realm: string;
  clientId: string;
  /** True if the client comes from the core configuration. */
  core: boolean;
  /** Id of the OAuth client to which the tokens were issued. Only that client can refresh the tokens. */
  oidcClientId: string;
  /** `issuer` of the registration at the sign-in. Absent in sessions of older versions. */
  issuer?: string | null;
  user: SessionUser;
  /** Origin of the callbackUrl: the site on which the person signed in. */
  site: string;
  callbackUrl: string;
  /** Milliseconds since 1970, like every time in this file. */
  created: number;
  absoluteExpiry: number;
  /** Key for the HMAC that serves as the CSRF token. */
  csrfSecret: string;
  /** True if the client asked for it at the sign-in. Absent in sessions of older versions. */
  keycloakLogout?: boolean;
  /** Session id at the identity provider (OpenID Connect Back-Channel Logout 1.0, section 2.1). */
  sid?: string;
}

export interface TokenSet {
  accessToken: string;
  /** Time at which the access token was received. */
  accessIssued: number;
  accessExpiry: number;
  /** Absent if no refresh token was issued, or if the last token may have been used and must not be sent again. */
  refreshToken?: string;
  /** Absent if the refresh token does not expire. */
  refreshExpiry?: number;
  idToken?: string;
  /** The nonce of the first ID token. The nonces of refreshed ID tokens are compared with it. */
  nonce?: string;
  /** The roles that the access token contains. */
  roles: string[];
}

/** The unencrypted fields of a session in the store. */
export interface SessionState {
  /** Version of the token set. Each change to the token set increases the version. */
  version: number;
  /** Time at which the session ends even if requests continue. A refresh may postpone this time. */
  limit: number;
  /** Time of the last recorded request. */
  touched: number;
  /** Id of the only attempt that may send the refresh token. This attempt is running, or its replica has died. */
  intent?: string;
}

/** Limits on the lifetime and number of sessions. Durations are in milliseconds. */
export interface SessionLimits {
  /** Longest time from the sign-in to the end of the session, regardless of requests. */
  maxAge: number;
  /** Time from the last request to the end of the session. */
  idle: number;
  /** Milliseconds since 1970. Sessions that began before this time have ended. */
  validFrom?: number | undefined;
  /** Maximum number of a tenant's sessions. Idle ones count for `maxAge` after their sign-in. By default, no limit. */
  mostOfTenant?: number | undefined;
}

/** The session of a request. It was live when the store or the cache was read. */
export interface LiveSession {
  readonly session: Session;
  /**
   * Returns a valid access token. If the old token has expired, refreshes it first. Throws Problem `unauthenticated` if
   * the session has ended, and `unavailable` if a refresh is currently impossible.
   */
  accessToken(): Promise<string>;
  /**
   * Calls `listener` once, when the session has ended: by logout, revocation, expiry or a rejected refresh, on any
   * replica. The returned function removes the listener.
   */
  onEnd(listener: () => void): () => void;
}

/** A session with its tokens, as read from the store. Immutable. */
export interface FoundSession extends LiveSession {
  readonly tokens: TokenSet;
  readonly state: SessionState;
}

/** The members of a token response that Formgate uses (RFC 6749 section 5.1). Keycloak adds `refresh_expires_in`. */
export interface TokenResponse {
  access_token: string;
  /** Lifetime of the access token in seconds. */
  expires_in?: number | undefined;
  refresh_token?: string | undefined;
  /** Lifetime of the refresh token in seconds. 0 if the refresh token does not expire. */
  refresh_expires_in?: unknown;
  id_token?: string | undefined;
}

/**
 * How an attempt to refresh ended:
 * - `refused`: the identity provider no longer accepts the refresh token
 * - `unused`: the identity provider has certainly not processed the request. `retryAfter` is the wait that the identity
 *   provider asked for, in milliseconds
 * - `client-refused`: the refresh token was not used, because the identity provider rejected the client's credentials
 * - `foreign`: the response contains tokens of another person or client. `check` is the name of the check that failed
 * - `unknown`: the refresh token may have been used, or the client was registered again and cannot use the token.
 *   `isTooLarge` is true if the refresh token was used, but the new tokens are too large for a session
 */
export type RefreshOutcome =
  | { kind: 'refreshed'; response: TokenResponse }
  | { kind: 'unused'; retryAfter?: number }
  | { kind: 'foreign'; check: string }
  | { kind: 'unknown'; isTooLarge?: true }
  | { kind: 'refused' | 'client-refused' };

/** The session's tokens before a refresh. The new tokens are compared with them (OIDC Core 1.0, section 12.2). */
export interface OriginalTokens {
  /** The person's subject (`sub`) in the session. */
  subject: string;
  tokens: Pick<TokenSet, 'accessToken' | 'idToken' | 'nonce'>;
}

/** Returns the key of a session's record. The braces keep all keys of a session in one slot of a Redis Cluster. */
export const recordKey = (handle: string) => `{sess:${handle}}`;
/** Returns the encryption context of a session's record. */
export const recordContext = (handle: string) => `record of session ${handle}`;

/** Returns the time at which the session ends if requests continue but no refresh succeeds. */
export function hardLimit(session: Pick<Session, 'absoluteExpiry'>, tokens: TokenSet): number {
  const ofTokens = tokens.refreshToken === undefined ? tokens.accessExpiry : tokens.refreshExpiry;
  return Math.min(session.absoluteExpiry, ofTokens ?? Number.POSITIVE_INFINITY);
}

/** Returns the time at which a session ends if no further request arrives. `idle` is in milliseconds. */
export function expiryOf({ limit, touched }: Pick<SessionState, 'limit' | 'touched'>, idle: number): number {
  return Math.min(limit, touched + idle);
}

/** Assumed lifetime of an access token in milliseconds, if the response has no `expires_in`. */
const assumedLifetime = 60_000;

/**
 * Builds a token set from a token response. `previous` is the token set before the refresh. If the response has no new
 * refresh token or ID token, the token of `previous` is kept.
 */
export function tokenSetOf(response: TokenResponse, now: number, previous?: TokenSet): TokenSet {
  const refreshToken = response.refresh_token ?? previous?.refreshToken;
  const refreshExpiry = refreshToken === undefined ? undefined : refreshExpiryOf(response, now, previous);
  const idToken = response.id_token ?? previous?.idToken;
  const nonce = previous ? nonceOf(previous) : nonceOf({ idToken });
  return {
    accessToken: response.access_token,
    accessIssued: now,
    accessExpiry: now + (response.expires_in === undefined ? assumedLifetime : response.expires_in * 1000),
    ...(refreshToken !== undefined && { refreshToken }),
    ...(refreshExpiry !== undefined && { refreshExpiry }),
    ...(idToken !== undefined && { idToken }),
    ...(nonce !== undefined && { nonce }),
    roles: rolesOf(claimsOf(response.access_token)),
  };
}

/** Returns the nonce of the sign-in. Older versions of the token handler stored it only within the ID token. */
export function nonceOf({ nonce, idToken }: { nonce?: string; idToken?: string | undefined }): string | undefined {
  const claimed = nonce ?? claimsOf(idToken ?? '').nonce;
  return typeof claimed === 'string' ? claimed : undefined;
}

function refreshExpiryOf(response: TokenResponse, now: number, previous?: TokenSet): number | undefined {
  const seconds = response.refresh_expires_in;
  if (typeof seconds === 'number') return seconds > 0 ? now + seconds * 1000 : undefined;
  // If the response has neither a new refresh token nor an expiry, the old expiry remains.
  const isSame = response.refresh_token === undefined || response.refresh_token === previous?.refreshToken;
  return isSame ? previous?.refreshExpiry : undefined;
}

/**
 * Returns the token set without its refresh token. A session with this token set ends when the access token expires, at
 * the latest.
 */
export function withoutRefreshToken(set: TokenSet): TokenSet {
  const { refreshToken: _token, refreshExpiry: _expiry, ...rest } = set;
  return rest;
}

/**
 * True if less than a minute or a quarter of the access token's lifetime is left, whichever is less, times a factor
 * between 0.5 and 1. Each session has its own factor, so that not all are refreshed at the same time.
 */
export function isRefreshDue({ accessIssued, accessExpiry }: TokenSet, handle: string, now: number): boolean {
  const longest = Math.min(60_000, (accessExpiry - accessIssued) / 4);
  const left = accessExpiry - now;
  // Most calls return here, so they need not compute the digest of the handle.
  if (left >= longest) return false;
  return left < longest / 2 || left < longest * (1 - fractionOf(handle) / 2);
}

/** Returns a number from 0 to 1. The same string always gets the same number. */
function fractionOf(text: string): number {
  return hash('sha256', text, 'buffer').readUInt32BE() / 2 ** 32;
}

/** True if the access token remains valid long enough to be sent to an upstream. */
export function isUsable({ accessIssued, accessExpiry }: TokenSet, now: number): boolean {
  return accessExpiry - now > Math.min(1_000, (accessExpiry - accessIssued) / 10);
}

/**
 * Returns the claims of a JWT, or no claims for an opaque token. Does not verify the signature, because the token came
 * directly from the identity provider.
 */
export function claimsOf(token: string): Record<string, unknown> {
  try {
    return jose.decodeJwt(token);
  } catch {
    return {};
  }
}

/** Returns the names of the realm roles, and the client roles in the form `<client>:<role>`. */
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
