// Keycloak's direct access grant (RFC 6749, section 4.3), so that a terminal or a test can act as a person. Only clients
// that name the grant have it, which of the embedded ones is demo-cli alone.
import Provider, { errors, type TokenEndpointGrantContext } from 'oidc-provider';
import type { Realm } from './realm.ts';

interface Parameters {
  username?: string;
  password?: string;
  scope?: string;
}

export function addPasswordGrant(provider: Provider, realm: Realm, resource: string): void {
  const handle = (ctx: TokenEndpointGrantContext<Parameters>) => grantByPassword(ctx, realm, resource);
  provider.registerGrantType<Parameters>('password', handle, ['username', 'password', 'scope']);
}

async function grantByPassword(
  ctx: TokenEndpointGrantContext<Parameters>,
  realm: Realm,
  resource: string,
): Promise<void> {
  const { client, params, provider } = ctx.oidc;
  const account = realm.authenticate(params.username ?? '', params.password ?? '');
  if (!account) throw new errors.InvalidGrant('Invalid user credentials');
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
