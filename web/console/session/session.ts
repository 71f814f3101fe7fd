// The session that the token handler keeps for this browser, and requests within it.
import type { Session as CommonSession } from '../../token-handler-client/session.ts';
import { TokenHandlerClient } from '../../token-handler-client/token-handler-client.ts';

const clientId = 'formgate-console';

/** A session with additional members that only the console needs. */
export interface Session extends CommonSession {
  created: string;
  core: boolean;
}

let created: TokenHandlerClient | undefined;

/**
 * Returns the client of the token handler, which follows the session in all tabs. The tenant is a part of the page's
 * address, so each sign-in names the tenant.
 */
export function tokenHandler(): TokenHandlerClient {
  created ??= new TokenHandlerClient({ clientId });
  return created;
}

/**
 * Returns the session of the console. Ignores the session of another frontend on this host. Signing in to the console
 * replaces such a session.
 */
export function consoleSession(): Session | undefined {
  return (tokenHandler().session as Session | null | undefined) ?? undefined;
}

/** Returns the address at which the browser signs in. `returnTo` is the path and query of the page to return to. */
export function signInUrl(tenant: string, returnTo: string): string {
  return `${tokenHandler().signInUrl({ returnTo })}&tenant=${encodeURIComponent(tenant)}`;
}

/** Extends the session by a request to a target. Any such request extends it, regardless of the response. */
export async function extendSession(): Promise<void> {
  await tokenHandler()
    .fetch('/token-handler/targets/form-service/form/v1/definitions')
    .catch(() => undefined);
  await tokenHandler().read();
}
