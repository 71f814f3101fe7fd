// Derives, from the callbackUrl, the paths at which the browser reaches a client's endpoints. Pure functions only.

/**
 * Returns the ending of the client's callbackUrl, without the slash before it. Only a callbackUrl that was derived from
 * the client's deprecated setting `authCallbackUrl` can have another ending.
 */
export function callbackEnding(clientId: string): string {
  return `clients/${encodeURIComponent(clientId)}/callback`;
}

/**
 * Returns the path below which the browser reaches the client's endpoints, such as `/token-handler/clients/web`. The
 * path is taken from `callbackUrl`, because a reverse proxy may serve the token handler at other paths. Returns
 * undefined if `callbackUrl` does not have the usual ending.
 */
export function clientPath({ callbackUrl, clientId }: { callbackUrl: string; clientId: string }): string | undefined {
  const { pathname } = new URL(callbackUrl);
  return pathname.endsWith(`/${callbackEnding(clientId)}`) ? pathname.slice(0, pathname.lastIndexOf('/')) : undefined;
}

/** Returns the URL of the logout link for the session that this sign-in opened. */
export function logoutUrl(signIn: { callbackUrl: string; clientId: string }): string {
  const path = clientPath(signIn) ?? `/token-handler/clients/${encodeURIComponent(signIn.clientId)}`;
  return `${new URL(signIn.callbackUrl).origin}${path}/logout`;
}
