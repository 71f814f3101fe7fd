// The session as the token handler describes it, whose it is, and the events of a session.
import type { ClientOptions } from './options.ts';

/** The first element of the response to `GET /token-handler/sessions`. Times are ISO 8601, by the server's clock. */
export interface Session {
  id: string;
  tenantId: string;
  clientId: string;
  /** Null if the tenant service does not respond. */
  tenant: { name: string; realm: string } | null;
  /** The same in all sessions of the person, and different for each person. Missing if the token handler is older. */
  person?: string;
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

/**
 * Returns a function that returns null for the session of another client or tenant. An administrator of another tenant
 * can make a link that signs the person in to that tenant, which would then get what the person types. If the tenant's
 * name is unknown because the tenant service does not respond, a session that was foreign before stays foreign.
 */
export function createOwnership({ clientId, tenant }: Pick<ClientOptions, 'clientId' | 'tenant'>) {
  let foreign: string | undefined;
  return (session: Session): Session | null => {
    const wanted = nameKey(tenant ?? session.tenantId);
    const name = session.tenant?.name ?? (session.id === foreign ? '' : wanted);
    if (session.clientId === clientId && [session.tenantId, name].map(nameKey).includes(wanted)) return session;
    foreign = session.id;
    return null;
  };
}

/** Names of tenants may be in any case, and may have hyphens instead of spaces. */
function nameKey(name: string): string {
  return name.toLowerCase().replaceAll('-', ' ');
}

/** What a tab tells the other tabs of the site. */
export interface Message {
  session: Session | null;
  /** The server's clock minus the browser's, in milliseconds. */
  offset: number;
  /** Why there is no session; meaningless if there is one. */
  type: 'expired' | 'signed-out';
}
