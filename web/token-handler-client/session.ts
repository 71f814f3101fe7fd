// The session as the token handler describes it, and the events of a session.

/** The first element of the response to `GET /token-handler/sessions`. Times are ISO 8601, by the server's clock. */
export interface Session {
  id: string;
  tenantId: string;
  clientId: string;
  name: string;
  email: string | null;
  roles: string[];
  /** Time at which the session ends if no further request to a target extends it. */
  expiry: string;
  /** The latest time at which the session ends. */
  absoluteExpiry: string;
  /** The URL to which `signOut` navigates. */
  logoutUrl: string;
}

export type SessionEvent =
  /**
   * Somebody is signed in. Sent after the first read, after a sign-in in any tab, and when another person has signed
   * in.
   */
  | { type: 'signed-in'; session: Session }
  /** The session ends in `remaining` milliseconds unless a request to a target extends it. */
  | { type: 'expiring'; session: Session; remaining: number }
  /** The session has ended without a sign-out in this browser: it expired, or it was ended elsewhere. */
  | { type: 'expired' }
  /** Nobody is signed in. Sent after the first read, and after a tab of this site has signed out. */
  | { type: 'signed-out' }
  /** `fetch` got a 401. The session may have ended, or an upstream has refused the session's token. */
  | { type: 'unauthorized'; url: string };
