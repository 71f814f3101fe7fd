// Fetches the discovery document of a realm's identity provider (OpenID Connect Discovery 1.0, RFC 8414). If the
// operator has mapped an issuer, the document must name exactly this issuer. If the identity provider lacks a feature,
// a log line states the consequence, once for each realm.
import * as oidc from 'openid-client';
import type { Logger } from '../service/operations/log.ts';
import type { ClientAuthentication } from './clients/registration.ts';
import type { ProviderAddresses } from './provider-addresses.ts';

export interface ProviderDiscoveryOptions {
  addresses: ProviderAddresses;
  log: Logger;
  /** Timeout of a call to the identity provider, in milliseconds. */
  timeout: number;
}

/** Returns the metadata of the realm's identity provider. Throws errors of openid-client, and IssuerMismatch. */
export type DiscoverProvider = (realm: string) => Promise<oidc.ServerMetadata>;

/** The discovery document's issuer is not the one in TENANT_ISSUERS (OpenID Connect Discovery 1.0, section 4.3). */
class IssuerMismatch extends Error {
  override name = 'IssuerMismatch';
}

const missingFeatures: { isMissing(metadata: oidc.ServerMetadata): boolean; message: string }[] = [
  {
    isMissing: ({ end_session_endpoint: endpoint }) => endpoint === undefined,
    message: 'identity provider has no end-session endpoint: a logout ends the session of the token handler only',
  },
  {
    isMissing: ({ backchannel_logout_supported: isSupported }) => isSupported !== true,
    message:
      'identity provider has no back-channel logout: after a logout there, sessions end when their next refresh is refused',
  },
  {
    isMissing: ({ registration_endpoint: endpoint }) => endpoint === undefined,
    message: 'identity provider has no dynamic registration: register clients with clientId and clientSecret',
  },
];

/** Returns how a client authenticates at the token endpoint (RFC 6749 section 2.3.1). */
export function authenticate(client: { clientSecret: string; authentication?: ClientAuthentication }): oidc.ClientAuth {
  const method = client.authentication === 'client_secret_post' ? oidc.ClientSecretPost : oidc.ClientSecretBasic;
  return method(client.clientSecret);
}

export function createProviderDiscovery({ addresses, log, timeout }: ProviderDiscoveryOptions): DiscoverProvider {
  const reported = new Set<string>();
  return async (realm) => {
    const found = await oidc.discovery(addresses.issuer(realm), 'discovery', undefined, oidc.None(), {
      timeout: timeout / 1_000,
      [oidc.customFetch]: (url, init) => addresses.fetch(addresses.providerOf(realm), url, init, 'discovery'),
      ...(addresses.insecure && { execute: [oidc.allowInsecureRequests] }),
    });
    const metadata = { ...found.serverMetadata() };
    const mapped = addresses.mappedIssuer(realm);
    if (mapped !== undefined && metadata.issuer !== mapped) {
      log.error(
        { realm },
        'identity provider refused: its discovery document names another issuer than TENANT_ISSUERS',
      );
      throw new IssuerMismatch('the discovery document names another issuer than TENANT_ISSUERS');
    }
    if (!reported.has(realm)) {
      reported.add(realm);
      for (const { isMissing, message } of missingFeatures) if (isMissing(metadata)) log.warn({ realm }, message);
    }
    return metadata;
  };
}
