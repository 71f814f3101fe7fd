// What a session of a signed-in person is, and how long it lives. It knows neither cookies nor stores, and holds no
// token: those are a token set of their own.
import type { TokenSet } from './token-set.ts';

export interface SessionUser {
  /** Subject of the tokens. */
  id: string;
  name: string;
  email?: string;
  /** Realm roles bare, client roles as `<client>:<role>`; as of the last refresh. */
  roles: string[];
  /** The identity provider behind the access service, where it says so. */
  authenticatedBy?: string;
}

export interface Session {
  /** Public: a one-way digest of what the cookie holds. Names the session in lists, logs, limits and in the store. */
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
  /** Milliseconds since 1970, as every time here. */
  created: number;
  absoluteExpiry: number;
  /** What the CSRF token is made with. */
  csrfSecret: string;
  /** The access service's session (OpenID Connect Back-Channel Logout 1.0, section 2.1). */
  sid?: string;
}

/** Milliseconds */
export interface SessionLimits {
  /** From sign-in, whatever happens. */
  maxAge: number;
  /** From the last request. */
  idle: number;
}

/** Until when the session may live if requests keep coming and no refresh succeeds. */
export function hardLimit(session: Pick<Session, 'absoluteExpiry'>, tokens: TokenSet): number {
  const ofTokens = tokens.refreshToken === undefined ? tokens.accessExpiry : tokens.refreshExpiry;
  return Math.min(session.absoluteExpiry, ofTokens ?? Number.POSITIVE_INFINITY);
}

/**
 * How long a request's mark on the session may be put off: a minute, so that the marks of busy sessions do not keep
 * emptying every replica's cache; less where sessions idle out so early that a minute would matter.
 */
export function touchInterval({ idle }: SessionLimits): number {
  return Math.min(60_000, idle / 4);
}
