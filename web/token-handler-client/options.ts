// What an app decides: about the client, and about one sign-in.

export interface ClientOptions {
  clientId: string;
  /** Name of the tenant. Leave it out if the proxy sets the tenant header. */
  tenant?: string;
  /** Path of the token handler on this site. Default: `/token-handler`. */
  prefix?: string;
  /** Milliseconds between two reads of the session, by one tab for all. Default: 60,000. */
  poll?: number;
  /** Milliseconds before the end at which `expiring` comes. Default: 120,000. */
  warn?: number;
  /** Returns what the person has typed, as a JSON value. Called just before a sign-in leaves the page. */
  keep?: () => unknown;
}

/** Parameters of `/auth`. With `prompt: 'none'`, the identity provider shows no page. */
export interface SignIn {
  /** A path on this site. Default: the current address. */
  returnTo?: string;
  /** Name of the tenant, if it is not that of the client. */
  tenant?: string;
  prompt?: 'none' | 'login' | 'select_account';
  login_hint?: string;
  ui_locales?: string;
}
