// Creates the OpenID provider of one realm: oidc-provider with Keycloak's paths, lifetimes and token contents. It has
// no consent screen, because all clients are first-party clients.
import { randomBytes, randomUUID } from 'node:crypto';
import type { JWK } from 'jose';
import type { Configuration, KoaContextWithOIDC, Provider } from 'oidc-provider';
import { createAdapterFactory } from './adapter.ts';
import type { EntityStore } from './entity-store.ts';
import { askToLogOut, confirmLogOut, showError } from './notices.ts';
import type { OidcLibrary } from './oidc-library.ts';
import { addPasswordGrant } from './password-grant.ts';
import { type Account, accessTokenClaims, profileClaims, type Realm } from './realm.ts';

/** The resource (RFC 8707) of all access tokens. oidc-provider issues JWTs only for tokens with a resource. */
const platformResource = 'urn:platform';
const scopes = ['openid', 'profile', 'email', 'roles', 'offline_access'];
const sessionLifetime = 10 * 3600;
const keycloakRoutes = {
  authorization: '/protocol/openid-connect/auth',
  token: '/protocol/openid-connect/token',
  jwks: '/protocol/openid-connect/certs',
  userinfo: '/protocol/openid-connect/userinfo',
  end_session: '/protocol/openid-connect/logout',
  revocation: '/protocol/openid-connect/revoke',
  introspection: '/protocol/openid-connect/token/introspect',
  registration: '/clients-registrations/openid-connect',
};

export interface ProviderOptions {
  library: OidcLibrary;
  realm: Realm;
  /** Issuer of the tokens, and prefix of all URLs of the provider: `<public address>/auth/realms/<realm>`. */
  issuer: string;
  store: EntityStore;
  signingKey: JWK;
  /** Keys that sign the cookies. */
  cookieKeys: string[];
}

export function createProvider(options: ProviderOptions): Provider {
  const { library, realm } = options;
  const provider = new library.Provider(options.issuer, createConfiguration(options));
  addPasswordGrant({ library, provider, realm, resource: platformResource });
  // Adds two fields to the token response, as Keycloak does: the lifetime of the refresh token, and the session id.
  provider.use(async (ctx, next) => {
    await next();
    const refreshToken = ctx.oidc?.entities.RefreshToken;
    if (ctx.oidc?.route !== 'token' || !refreshToken || ctx.status !== 200) return;
    if (ctx.body && typeof ctx.body === 'object' && 'refresh_token' in ctx.body) {
      Object.assign(ctx.body, {
        refresh_expires_in: refreshToken.remainingTTL,
        ...(refreshToken.sid !== undefined && { session_state: refreshToken.sid }),
      });
    }
  });
  return provider;
}

function createConfiguration({ realm, issuer, store, signingKey, cookieKeys }: ProviderOptions): Configuration {
  const { definition } = realm;
  const accessTokenLifetime = definition.accessTokenLifetime ?? 300;
  const path = new URL(issuer).pathname;
  return {
    adapter: createAdapterFactory(realm, store),
    jwks: { keys: [signingKey as Record<string, string>] },
    cookies: {
      keys: cookieKeys,
      names: { session: 'access_session', interaction: 'access_interaction', resume: 'access_resume' },
      // Realms share a host, so each realm needs its own cookie path to keep sessions separate.
      long: { httpOnly: true, sameSite: 'lax', path },
      short: { httpOnly: true, sameSite: 'lax', path },
    },
    scopes,
    claims: {
      openid: ['sub', 'preferred_username', 'name', 'email', 'email_verified'],
      profile: ['name'],
      email: ['email'],
    },
    // Keycloak puts all claims into the ID token.
    conformIdTokenClaims: false,
    extraParams: ['kc_idp_hint'],
    routes: keycloakRoutes,
    ttl: {
      AccessToken: accessTokenLifetime,
      ClientCredentials: accessTokenLifetime,
      IdToken: accessTokenLifetime,
      AuthorizationCode: 60,
      RefreshToken: definition.refreshTokenLifetime ?? 1800,
      Interaction: 30 * 60,
      Session: sessionLifetime,
      Grant: sessionLifetime,
    },
    rotateRefreshToken: definition.rotateRefreshTokens ?? true,
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: (_ctx, source) => !source.scopes.has('offline_access'),
    clientDefaults: { backchannel_logout_session_required: true },
    clientBasedCORS: () => true,
    pkce: { required: (_ctx, client) => client.clientAuthMethod === 'none' },
    // The default fetch of oidc-provider refuses loopback addresses.
    fetch: (url, init) => fetch(url, withoutDispatcher(init ?? {})),
    findAccount: (_ctx, id) => {
      const account = realm.account(id);
      return account && { accountId: id, claims: () => ({ sub: id, ...profileClaims(account) }) };
    },
    loadExistingGrant: grantEverything,
    interactions: { url: (_ctx, interaction) => `${path}/login-actions/authenticate/${interaction.uid}` },
    renderError: showError,
    formats: { customizers: { jwt: (ctx, token, jwt) => shapeAccessToken(realm, ctx, token, jwt) } },
    extraClientMetadata: { properties: ['software_id'], validator: acceptWithoutRedirectUris },
    features: createFeatures(realm, accessTokenLifetime),
  };
}

function createFeatures(realm: Realm, accessTokenTTL: number): NonNullable<Configuration['features']> {
  const { registrationToken } = realm.definition;
  return {
    devInteractions: { enabled: false },
    dPoP: { enabled: false },
    clientCredentials: { enabled: true },
    revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
    introspection: { enabled: true, allowedPolicy: (_ctx, client) => client.clientAuthMethod !== 'none' },
    backchannelLogout: { enabled: true },
    rpInitiatedLogout: { enabled: true, logoutSource: askToLogOut, postLogoutSuccessSource: confirmLogOut },
    registration: {
      enabled: registrationToken !== undefined,
      ...(registrationToken !== undefined && { initialAccessToken: registrationToken }),
      idFactory: () => randomUUID(),
      secretFactory: () => randomBytes(32).toString('base64url'),
    },
    registrationManagement: { enabled: registrationToken !== undefined, rotateRegistrationAccessToken: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => platformResource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: scopes.join(' '),
        audience: platformResource,
        accessTokenFormat: 'jwt',
        accessTokenTTL,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  };
}

function withoutDispatcher({ dispatcher: _, ...init }: RequestInit & { dispatcher?: unknown }): RequestInit {
  return init;
}

/** Grants every requested scope without a consent screen. */
async function grantEverything(ctx: KoaContextWithOIDC) {
  const { client, session, params, provider } = ctx.oidc;
  if (!client || !session?.accountId) return undefined;
  const id = session.grantIdFor(client.clientId);
  const present = id === undefined ? undefined : await provider.Grant.find(id);
  const grant = present ?? new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  const scope = typeof params?.scope === 'string' ? params.scope : 'openid';
  grant.addOIDCScope(scope);
  grant.addResourceScope(platformResource, scope);
  await grant.save();
  return grant;
}

type JwtCustomizer = NonNullable<NonNullable<NonNullable<Configuration['formats']>['customizers']>['jwt']>;

/** Changes the header and the claims of the library's access token (RFC 9068) to those of a Keycloak token. */
async function shapeAccessToken(realm: Realm, ...[ctx, token, jwt]: Parameters<JwtCustomizer>): Promise<void> {
  const clientId = token.clientId ?? '';
  const person =
    'accountId' in token && typeof token.accountId === 'string' ? realm.account(token.accountId) : undefined;
  const account = person ?? realm.serviceAccount(clientId) ?? anonymousAccount(clientId);
  const { jti, iat, exp, iss, scope } = jwt.payload;
  const sid = await sessionIdOf(ctx, token, clientId);
  jwt.header = { typ: 'JWT' };
  jwt.payload = {
    jti,
    iat,
    exp,
    iss,
    scope,
    ...(sid !== undefined && { sid }),
    ...accessTokenClaims(account, clientId, person && realm.definition.audiences),
  };
}

/** Returns an account without roles, for a client that registered itself. */
function anonymousAccount(clientId: string): Account {
  return { id: clientId, username: `service-account-${clientId}`, name: clientId, roles: {} };
}

async function sessionIdOf(ctx: KoaContextWithOIDC, token: object, clientId: string): Promise<string | undefined> {
  if ('sid' in token && typeof token.sid === 'string') return token.sid;
  if (!('sessionUid' in token) || typeof token.sessionUid !== 'string') return undefined;
  const session = await ctx.oidc.provider.Session.findByUid(token.sessionUid);
  return session?.sidFor(clientId);
}

/**
 * Accepts a client without redirect URIs, as Keycloak does. Nobody can sign in through the client until it has a
 * redirect URI.
 */
function acceptWithoutRedirectUris(
  _ctx: KoaContextWithOIDC | undefined,
  _key: string,
  _value: unknown,
  metadata: object,
): void {
  const uris = 'redirect_uris' in metadata ? metadata.redirect_uris : undefined;
  if (!Array.isArray(uris) || uris.length === 0) Object.assign(metadata, { redirect_uris: [], response_types: [] });
}
