// The session of a signed-in person and its tokens: what they contain, when they expire, and when a refresh is due. Pure:
// it knows neither cookies nor stores.
import { isObject } from '../../service/json-value.ts';

export interface SessionUser {
  /** Subject of the tokens. */
  id: string;
  name: string;
  email?: string;
  /** Realm roles by name, client roles as `<client>:<role>`; as of the last refresh. */
  roles: string[];
  /** The upstream identity provider, if the tokens name it. */
  authenticatedBy?: string;
}

export interface Session {
  /** Public: a one-way digest of the id in the cookie. Identifies the session in lists, logs, limits and the store. */
  handle: string;
  /** URN */
  tenantId: string;
  tenantName: string;
  realm: string;
  clientId: string;
  /** Whether the client comes from the core configuration. */
  core: boolean;
  /** The OAuth client that the tokens were issued to. A registration that replaces it cannot refresh them. */
  oidcClientId: string;
  user: SessionUser;
  /** Origin of the callbackUrl: the site that the person signed in from. */
  site: string;
  callbackUrl: string;
  /** Milliseconds since 1970, like every time here. */
  created: number;
  absoluteExpiry: number;
  /** Key of the CSRF token. */
  csrfSecret: string;
  /** The identity provider's session (OpenID Connect Back-Channel Logout 1.0, section 2.1). */
  sid?: string;
}

export interface TokenSet {
  accessToken: string;
  /** When the access token was received. */
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

/** What the store knows about a session besides its encrypted texts. */
export interface SessionState {
  /** Counts the changes of the token set. */
  version: number;
  /** When the session ends even if requests keep coming. */
  limit: number;
  /** Time of the last recorded request. */
  touched: number;
  /** Id of the one attempt that may present the refresh token: it is running, or its replica died. */
  intent?: string;
}

/** Milliseconds */
export interface SessionLimits {
  /** From sign-in, regardless of requests. */
  maxAge: number;
  /** From the last request. */
  idle: number;
}

/** The session of a request, alive when it was read. */
export interface LiveSession {
  readonly session: Session;
  /**
   * A valid access token; refreshed first if it has expired. Throws Problem `unauthenticated` if the session has ended,
   * `unavailable` if neither the token nor a new one is available at the moment.
   */
  accessToken(): Promise<string>;
  /**
   * Calls `listener` once, when the session has ended: by logout, revocation, expiry or a rejected refresh, on any
   * replica. The returned function stops listening.
   */
  onEnd(listener: () => void): () => void;
}

/** A session with its tokens, as it was read; immutable. */
export interface FoundSession extends LiveSession {
  readonly tokens: TokenSet;
  readonly state: SessionState;
}

/** The members of a token response that are used here (RFC 6749 section 5.1; `refresh_expires_in` is Keycloak's). */
export interface TokenResponse {
  access_token: string;
  /** Seconds */
  expires_in?: number | undefined;
  refresh_token?: string | undefined;
  /** Seconds; 0 for a token without expiry. */
  refresh_expires_in?: unknown;
  id_token?: string | undefined;
}

/**
 * - `refused`: the identity provider no longer accepts the refresh token
 * - `unused`: the token was certainly not used: the request was never sent, or failed with a complete response
 * - `client-refused`: not used either; the identity provider no longer accepts the client's credentials
 * - `unknown`: the token may have been used
 */
export type RefreshOutcome =
  | { kind: 'refreshed'; response: TokenResponse }
  | { kind: 'refused' | 'unused' | 'client-refused' | 'unknown' };

/** The key of a session's record in the store. The braces keep all keys of a session in one slot of a Redis Cluster. */
export const recordKey = (handle: string) => `{sess:${handle}}`;
/** What a record is encrypted for. */
export const recordContext = (handle: string) => `record of session ${handle}`;

/** When the session ends if requests keep coming and no refresh succeeds. */
export function hardLimit(session: Pick<Session, 'absoluteExpiry'>, tokens: TokenSet): number {
  const ofTokens = tokens.refreshToken === undefined ? tokens.accessExpiry : tokens.refreshExpiry;
  return Math.min(session.absoluteExpiry, ofTokens ?? Number.POSITIVE_INFINITY);
}

/** When a session ends if no further request comes. `idle`: milliseconds. */
export function expiryOf({ limit, touched }: Pick<SessionState, 'limit' | 'touched'>, idle: number): number {
  return Math.min(limit, touched + idle);
}

/** Lifetime of an access token whose issuer does not state one. */
const assumedLifetime = 60_000;

/** `previous`: the refreshed set, whose refresh and ID token are kept if the response has no new ones. */
export function tokenSetOf(response: TokenResponse, now: number, previous?: TokenSet): TokenSet {
  const refreshToken = response.refresh_token ?? previous?.refreshToken;
  const refreshExpiry = refreshToken === undefined ? undefined : refreshExpiryOf(response, now, previous);
  const idToken = response.id_token ?? previous?.idToken;
  return {
    accessToken: response.access_token,
    accessIssued: now,
    accessExpiry: now + (response.expires_in === undefined ? assumedLifetime : response.expires_in * 1000),
    ...(refreshToken !== undefined && { refreshToken }),
    ...(refreshExpiry !== undefined && { refreshExpiry }),
    ...(idToken !== undefined && { idToken }),
    roles: rolesOf(claimsOf(response.access_token)),
  };
}

function refreshExpiryOf(response: TokenResponse, now: number, previous?: TokenSet): number | undefined {
  const seconds = response.refresh_expires_in;
  if (typeof seconds === 'number') return seconds > 0 ? now + seconds * 1000 : undefined;
  // The same refresh token without a new expiry keeps its expiry.
  const isSame = response.refresh_token === undefined || response.refresh_token === previous?.refreshToken;
  return isSame ? previous?.refreshExpiry : undefined;
}

/** The set without its refresh token: it expires with its access token. */
export function withoutRefreshToken(set: TokenSet): TokenSet {
  const { refreshToken: _token, refreshExpiry: _expiry, ...rest } = set;
  return rest;
}

/** Whether the access token has less than a minute, or less than a quarter of its lifetime, left. */
export function isRefreshDue({ accessIssued, accessExpiry }: TokenSet, now: number): boolean {
  return accessExpiry - now < Math.min(60_000, (accessExpiry - accessIssued) / 4);
}

/** Whether the access token is valid for long enough to be sent. */
export function isUsable({ accessIssued, accessExpiry }: TokenSet, now: number): boolean {
  return accessExpiry - now > Math.min(1_000, (accessExpiry - accessIssued) / 10);
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
