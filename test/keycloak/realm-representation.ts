// Translates a realm of the tests into Keycloak's representation of a realm.
import type { RealmClient, RealmDefinition, RealmUser, Roles } from '../../dev/access/realm.ts';

/** Marks a realm as created by tests, so that it may be deleted. */
export const ownMark = 'formgate-test';

export function realmRepresentation(definition: RealmDefinition): object {
  const { name, users, clients } = definition;
  const holders = [...users.map(({ roles }) => roles ?? {}), ...clients.map(({ roles }) => roles ?? {})];
  const clientRoles = rolesByClient(holders);
  const accounts = clients.map(({ clientId }) => clientId);
  const roleHolders = Object.keys(clientRoles).filter((id) => !accounts.includes(id));
  return {
    realm: name,
    enabled: true,
    sslRequired: 'none',
    attributes: { [ownMark]: 'true' },
    accessTokenLifespan: definition.accessTokenLifetime ?? 300,
    ssoSessionIdleTimeout: definition.refreshTokenLifetime ?? 1_800,
    // By default, each refresh token can be used only once, which is the harder case for the token handler.
    revokeRefreshToken: definition.rotateRefreshTokens ?? true,
    refreshTokenMaxReuse: 0,
    roles: {
      realm: [...new Set(holders.flatMap(({ realm = [] }) => realm))].map((role) => ({ name: role })),
      client: Object.fromEntries(
        Object.entries(clientRoles).map(([client, roles]) => [client, roles.map((role) => ({ name: role }))]),
      ),
    },
    clients: [
      ...clients.map((client) => clientRepresentation(client, definition.audiences)),
      // Clients that represent services. Accounts have roles on these clients, and no one signs in to them.
      ...roleHolders.map((clientId) => ({ clientId, standardFlowEnabled: false, fullScopeAllowed: false })),
    ],
    users: [...users.map(userRepresentation), ...clients.flatMap(serviceAccount)],
  };
}

export function clientRepresentation(client: RealmClient, audiences: string[] = []): object {
  const { clientId, secret, grants } = client;
  return {
    clientId,
    enabled: true,
    publicClient: secret === undefined,
    ...(secret !== undefined && { secret }),
    standardFlowEnabled: grants.includes('authorization_code'),
    directAccessGrantsEnabled: grants.includes('password'),
    serviceAccountsEnabled: grants.includes('client_credentials'),
    redirectUris: client.redirectUris ?? [],
    fullScopeAllowed: true,
    ...(grants.includes('password') && { protocolMappers: audiences.map(audienceMapper) }),
  };
}

/** A default client scope, so that tokens of dynamically registered clients contain the audiences too. */
export function audienceScope(audiences: string[]): object {
  return {
    name: 'platform-audiences',
    protocol: 'openid-connect',
    attributes: { 'include.in.token.scope': 'false' },
    protocolMappers: audiences.map(audienceMapper),
  };
}

function audienceMapper(audience: string): object {
  return {
    name: `audience ${audience}`,
    protocol: 'openid-connect',
    protocolMapper: 'oidc-audience-mapper',
    config: { 'included.custom.audience': audience, 'access.token.claim': 'true', 'id.token.claim': 'false' },
  };
}

export function userRepresentation({ email, name, password, roles = {} }: RealmUser): object {
  const [firstName = '', ...rest] = name.split(' ');
  return {
    username: email,
    email,
    emailVerified: true,
    enabled: true,
    // Without a first and a last name, Keycloak asks for them at the first sign-in.
    firstName,
    lastName: rest.join(' ') || 'Person',
    credentials: [{ type: 'password', value: password, temporary: false }],
    ...rolesOf(roles),
  };
}

function serviceAccount({ clientId, grants, roles = {} }: RealmClient): object[] {
  if (!grants.includes('client_credentials')) return [];
  const username = `service-account-${clientId.toLowerCase()}`;
  return [{ username, serviceAccountClientId: clientId, enabled: true, ...rolesOf(roles) }];
}

function rolesOf({ realm = [], clients = {} }: Roles): object {
  return { realmRoles: realm, clientRoles: clients };
}

function rolesByClient(holders: Roles[]): Record<string, string[]> {
  const found: Record<string, Set<string>> = {};
  for (const { clients = {} } of holders)
    for (const [client, roles] of Object.entries(clients)) {
      found[client] ??= new Set();
      for (const role of roles) found[client]?.add(role);
    }
  return Object.fromEntries(Object.entries(found).map(([client, roles]) => [client, [...roles]]));
}
