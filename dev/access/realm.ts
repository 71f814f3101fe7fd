// Defines a realm of the embedded identity provider: its people, its clients and the claims of their tokens. The claims
// are named and nested as in Keycloak, which is the identity provider of most clusters.
import { createHash } from 'node:crypto';
import { isSameText } from '../../src/service/same-text.ts';

/** Roles of an account: realm roles, and client roles keyed by client id. */
export interface Roles {
  realm?: string[];
  clients?: Record<string, string[]>;
}

export interface RealmUser {
  email: string;
  name: string;
  password: string;
  roles?: Roles;
}

/** A client of the realm's definition. Clients that registered themselves are in the entity store. */
export interface RealmClient {
  clientId: string;
  /** Client secret; absent for a public client. */
  secret?: string;
  grants: ('authorization_code' | 'refresh_token' | 'client_credentials' | 'password')[];
  redirectUris?: string[];
  postLogoutRedirectUris?: string[];
  /** Roles of the client's service account. */
  roles?: Roles;
}

export interface RealmDefinition {
  name: string;
  users: RealmUser[];
  clients: RealmClient[];
  /**
   * Audiences that the tokens of every person contain. In Keycloak, an audience mapper in the realm's default client
   * scope adds them.
   */
  audiences?: string[];
  /** The initial access token of dynamic registration; without it, the realm refuses registration. */
  registrationToken?: string;
  /** Lifetime in seconds; by default 300, as in Keycloak. */
  accessTokenLifetime?: number;
  /** Lifetime in seconds; by default 1800, as in Keycloak. */
  refreshTokenLifetime?: number;
  /** If true, a refresh returns a new refresh token and revokes the presented one (default: true). */
  rotateRefreshTokens?: boolean;
}

/** The subject of a token: a person, or the service account of a client. */
export interface Account {
  /** The id stays the same across restarts, so that forms keep their owner. */
  id: string;
  username: string;
  name: string;
  email?: string;
  roles: Roles;
}

export interface Realm {
  readonly definition: RealmDefinition;
  addUser(user: RealmUser): Account;
  addClient(client: RealmClient): void;
  client(clientId: string): RealmClient | undefined;
  serviceAccount(clientId: string): Account | undefined;
  account(id: string): Account | undefined;
  /**
   * Returns the account with this email address (case-insensitive). Returns undefined if no account has the address, or
   * if the password is wrong.
   */
  authenticate(email: string, password: string): Account | undefined;
}

export function createRealm(definition: RealmDefinition): Realm {
  const users = new Map<string, { user: RealmUser; account: Account }>();
  const accounts = new Map<string, Account>();
  const clients = new Map<string, RealmClient>();

  const realm: Realm = {
    definition,
    addUser: (user) => {
      const id = stableId(definition.name, 'user', user.email);
      const account = { id, username: user.email, name: user.name, email: user.email, roles: user.roles ?? {} };
      users.set(user.email.toLowerCase(), { user, account });
      accounts.set(id, account);
      return account;
    },
    addClient: (client) => {
      clients.set(client.clientId, client);
    },
    client: (clientId) => clients.get(clientId),
    serviceAccount: (clientId) => {
      const client = clients.get(clientId);
      if (!client?.grants.includes('client_credentials')) return undefined;
      const username = `service-account-${clientId}`;
      return { id: stableId(definition.name, 'client', clientId), username, name: username, roles: client.roles ?? {} };
    },
    account: (id) => accounts.get(id),
    authenticate: (email, password) => {
      const found = users.get(email.toLowerCase());
      return found && isSameText(found.user.password, password) ? found.account : undefined;
    },
  };
  definition.users.forEach(realm.addUser);
  definition.clients.forEach(realm.addClient);
  return realm;
}

/** Returns the claims of an access token, named and nested as in Keycloak. */
export function accessTokenClaims(
  account: Account,
  clientId: string,
  audiences: string[] = [],
): Record<string, unknown> {
  const clients = account.roles.clients ?? {};
  const withRoles = Object.keys(clients).filter((client) => clients[client]?.length);
  return {
    sub: account.id,
    typ: 'Bearer',
    azp: clientId,
    // As in Keycloak, the audience contains each client on which the account has a role, except the client that
    // requests the token.
    aud: [...new Set([...withRoles.filter((client) => client !== clientId), ...audiences])],
    realm_access: { roles: account.roles.realm ?? [] },
    resource_access: Object.fromEntries(Object.entries(clients).map(([client, roles]) => [client, { roles }])),
    ...profileClaims(account),
  };
}

/** Returns the profile claims of access tokens, ID tokens and the userinfo endpoint. */
export function profileClaims(account: Account): Record<string, unknown> {
  return {
    preferred_username: account.username,
    ...(account.email !== undefined && { name: account.name, email: account.email, email_verified: true }),
  };
}

/** Derives a UUID (version 8, RFC 9562, section 5.8) from the parts, so that an id is the same in every run. */
function stableId(...parts: string[]): string {
  const hex = createHash('sha256').update(parts.join('\0')).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
