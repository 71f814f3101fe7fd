// Builds the metadata that is sent to the identity provider when a client is registered. Pure functions only.
import { rootsOf } from '../../service/clients/redirect-uri.ts';
import type { Client } from './client.ts';

export type ClientMetadata = ReturnType<typeof clientMetadata>;

/**
 * Returns metadata of RFC 7591 section 2, OpenID Connect RP-Initiated Logout 1.0 section 3.1 and Back-Channel Logout
 * 1.0 section 2.2. `name` is the client's name at the identity provider. `publicUrl` is the base URL at which the
 * identity provider reaches this token handler.
 */
export function clientMetadata(
  client: Pick<Client, 'id' | 'keycloakLogout'>,
  { name, redirectUris }: { name: string; redirectUris: readonly string[] },
  publicUrl: string | undefined,
) {
  return {
    client_name: name,
    redirect_uris: [...redirectUris],
    response_types: ['code'],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'client_secret_basic',
    ...(client.keycloakLogout && { post_logout_redirect_uris: rootsOf(redirectUris) }),
    ...(publicUrl !== undefined && {
      backchannel_logout_uri: `${publicUrl}/token-handler/v1/clients/${encodeURIComponent(client.id)}/backchannel-logout`,
      backchannel_logout_session_required: true,
    }),
  };
}
