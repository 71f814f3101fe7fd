// Defines registrations. A registration is the OAuth client that represents a configured client in a tenant's realm.
// Its secret and token are sealed for that OAuth client, so they cannot be opened if they are copied to another row.
import type { KeyRing } from '../keys/key-ring.ts';

export interface Registration {
  /** URN */
  tenantId: string;
  /** Id of the configured client. */
  clientId: string;
  realm: string;
  /** Id of the client at the identity provider. */
  oidcClientId: string;
  clientSecret: string;
  registrationAccessToken: string;
  /** The URI as returned by the identity provider, not rebased. */
  registrationClientUri: string;
  redirectUris: string[];
  registeredAt: Date;
}

export interface StoredRegistration extends Registration {
  /** Counts changes of the row. */
  revision: number;
}

/** Columns for SELECT from `client_registrations`. The rows contain sealed secrets and tokens. */
export const registrationColumns = `tenant_id AS "tenantId", client_id AS "clientId", realm,
  oidc_client_id AS "oidcClientId", client_secret AS "clientSecret",
  registration_access_token AS "registrationAccessToken", registration_client_uri AS "registrationClientUri",
  redirect_uris AS "redirectUris", registered_at AS "registeredAt", revision`;

type Owner = Pick<Registration, 'tenantId' | 'oidcClientId'>;

const secretContext = (owner: Owner) => `client secret of ${owner.oidcClientId} of ${owner.tenantId}`;
const tokenContext = (owner: Owner) => `registration access token of ${owner.oidcClientId} of ${owner.tenantId}`;

/** Opens the registration access token of a sealed row. Throws KeyRingError. */
export function openToken(keys: KeyRing, row: Owner & Pick<Registration, 'registrationAccessToken'>): string {
  return keys.open(row.registrationAccessToken, tokenContext(row));
}

/** Opens the secret and the token of a row. Throws KeyRingError, for example if the ring lacks the row's key. */
export function openRegistration<T extends Registration>(keys: KeyRing, row: T): T {
  const clientSecret = keys.open(row.clientSecret, secretContext(row));
  return { ...row, clientSecret, registrationAccessToken: openToken(keys, row) };
}

export function sealToken(keys: KeyRing, row: Owner, token: string): string {
  return keys.seal(token, tokenContext(row));
}

export function sealRegistration<T extends Registration>(keys: KeyRing, registration: T): T {
  const clientSecret = keys.seal(registration.clientSecret, secretContext(registration));
  const token = sealToken(keys, registration, registration.registrationAccessToken);
  return { ...registration, clientSecret, registrationAccessToken: token };
}
