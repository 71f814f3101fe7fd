// A realm of the embedded access service: its people, its clients and what their tokens say. Shaped as Keycloak shapes
// it, because that is what Formgate meets in a cluster.
import { createHash } from 'node:crypto';
import { isSameText } from '../../src/service/same-text.ts';

/** Roles of an account: of the realm itself, and of clients by client id. */
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

/** A client that is part of the realm; registered ones live in the store. */
export interface RealmClient {
  clientId: string;
  /** Absent for a public client. */
  secret?: string;
  grants: ('authorization_code' | 'refresh_token' | 'client_credentials' | 'password')[];
  redirectUris?: string[];
  postLogoutRedirectUris?: string[];
  /** Of its service account. */
  roles?: Roles;
}

export interface RealmDefinition {
  name: string;
  users: RealmUser[];
  clients: RealmClient[];
  /** Audiences of every person's tokens: what an audience mapper in a Keycloak realm's default client scope adds. */
  audiences?: string[];
  /** What a caller of dynamic registration presents. */
  registrationToken?: string;
  /** Seconds; 300 as in Keycloak. */
  accessTokenLifetime?: number;
  /** Seconds; 1800 as in Keycloak. */
  refreshTokenLifetime?: number;
  /** Whether a refresh answers a new refresh token and voids the one presented (true). */
  rotateRefreshTokens?: boolean;
}

/** Someone with a token: a person, or a client's service account. */
export interface Account {
  /** Stable across restarts, so that what it created stays its own. */
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
  /** The account of this e-mail address (in any case), if the password is right. */
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

/** What an access token says about the account: Keycloak's claims and their nesting. */
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
    // Keycloak's audience resolution: one per client on which the account has a role, the token's own client excepted.
    aud: [...new Set([...withRoles.filter((client) => client !== clientId), ...audiences])],
    realm_access: { roles: account.roles.realm ?? [] },
    resource_access: Object.fromEntries(Object.entries(clients).map(([client, roles]) => [client, { roles }])),
    ...profileClaims(account),
  };
}

/** What an ID token and the userinfo endpoint say. */
export function profileClaims(account: Account): Record<string, unknown> {
  return {
    preferred_username: account.username,
    ...(account.email !== undefined && { name: account.name, email: account.email, email_verified: true }),
  };
}

/** A UUID (version 8, RFC 9562, section 5.8) that is the same in every run. */
function stableId(...parts: string[]): string {
  const hex = createHash('sha256').update(parts.join('\0')).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
