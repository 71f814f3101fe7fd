// The options that a frontend gives to the client and to a sign-in.

export interface ClientOptions {
  clientId: string;
  /**
   * Name of the tenant. Sessions of other tenants count as signed out. Leave it out if the proxy sets the tenant
   * header, or if the frontend serves several tenants.
   */
  tenant?: string;
  /** Path of the token handler on this site. Default: `/token-handler`. */
  prefix?: string;
  /** Milliseconds between two reads of the session. One tab reads the session for all tabs. Default: 60,000. */
  poll?: number;
  /** Milliseconds between the event `expiring` and the end of the session. Default: 120,000. */
  warn?: number;
  /** Returns the person's unsent input as a JSON value. Called just before a sign-in leaves the page. */
  keep?: () => unknown;
}

/** Parameters of the address that starts a sign-in. With `prompt: 'none'`, the identity provider shows no page. */
export interface SignIn {
  /** A path on this site. Default: the current address. */
  returnTo?: string;
  /** Name of the tenant. Default: the tenant in the client's options. */
  tenant?: string;
  prompt?: 'none' | 'login' | 'select_account';
  login_hint?: string;
  ui_locales?: string;
}
