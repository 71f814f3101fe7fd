// Implements Keycloak's direct access grant (RFC 6749, section 4.3), which scripts and tests use to sign in as a
// person. Only clients that list the grant may use it; of the default clients, only demo-cli lists it.
import type { Provider, TokenEndpointGrantContext } from 'oidc-provider';
import type { OidcLibrary } from './oidc-library.ts';
import type { Realm } from './realm.ts';

interface Parameters {
  username?: string;
  password?: string;
  scope?: string;
}

interface PasswordGrant {
  library: OidcLibrary;
  provider: Provider;
  realm: Realm;
  /** The resource (RFC 8707) of the access tokens that this grant issues. */
  resource: string;
}

export function addPasswordGrant(grant: PasswordGrant): void {
  const handle = (ctx: TokenEndpointGrantContext<Parameters>) => grantByPassword(ctx, grant);
  grant.provider.registerGrantType<Parameters>('password', handle, ['username', 'password', 'scope']);
}

async function grantByPassword(
  ctx: TokenEndpointGrantContext<Parameters>,
  { library, realm, resource }: PasswordGrant,
): Promise<void> {
  const { client, params, provider } = ctx.oidc;
  const account = realm.authenticate(params.username ?? '', params.password ?? '');
  if (!account) throw new library.errors.InvalidGrant('Invalid user credentials');
  const scope = params.scope ?? 'openid profile email';
  const grant = new provider.Grant({ clientId: client.clientId, accountId: account.id });
  grant.addOIDCScope(scope);
  grant.addResourceScope(resource, scope);
  const origin = { client, accountId: account.id, grantId: await grant.save(), gty: 'password', scope };

  const info = {
    scope,
    audience: resource,
    accessTokenFormat: 'jwt' as const,
    jwt: { sign: { alg: 'RS256' as const } },
  };
  const accessToken = new provider.AccessToken({
    ...origin,
    resourceServer: new provider.ResourceServer(resource, info),
  });
  const refreshToken = new provider.RefreshToken({ ...origin, resource, rotations: 0 });
  ctx.oidc.entity('Grant', grant);
  ctx.oidc.entity('AccessToken', accessToken);
  ctx.oidc.entity('RefreshToken', refreshToken);
  ctx.body = {
    access_token: await accessToken.save(),
    expires_in: accessToken.expiration,
    refresh_token: await refreshToken.save(),
    scope,
    token_type: 'Bearer',
  };
}
