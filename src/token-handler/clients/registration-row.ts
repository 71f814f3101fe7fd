// A registration as its table has it. Secret and token are sealed for the client at the access service that they belong
// to: a row cannot be made to use those of another. It reads and writes nothing.
import type { KeyRing } from '../keys/key-ring.ts';
import type { Registration } from './registration.ts';

export interface RegistrationRow {
  tenant_id: string;
  client_id: string;
  realm: string;
  oidc_client_id: string;
  /** Sealed. */
  client_secret: string;
  /** Sealed. */
  registration_access_token: string;
  registration_client_uri: string;
  redirect_uris: string[];
  registered_at: Date;
  revision: number;
}

export interface StoredRegistration extends Registration {
  /** Counts changes of the row. */
  revision: number;
}

export const rowColumns =
  'tenant_id, client_id, realm, oidc_client_id, client_secret, registration_access_token, registration_client_uri, redirect_uris, registered_at, revision';

type Owner = Pick<RegistrationRow, 'tenant_id' | 'oidc_client_id'>;

const secretContext = (row: Owner) => `client secret of ${row.oidc_client_id} of ${row.tenant_id}`;
export const tokenContext = (row: Owner) => `registration access token of ${row.oidc_client_id} of ${row.tenant_id}`;

/** Throws KeyRingError for a row that was sealed under a key that is gone. */
export function toRegistration(keys: KeyRing, row: RegistrationRow): StoredRegistration {
  return {
    tenantId: row.tenant_id,
    clientId: row.client_id,
    realm: row.realm,
    oidcClientId: row.oidc_client_id,
    clientSecret: keys.open(row.client_secret, secretContext(row)),
    registrationAccessToken: keys.open(row.registration_access_token, tokenContext(row)),
    registrationClientUri: row.registration_client_uri,
    redirectUris: row.redirect_uris,
    registeredAt: row.registered_at,
    revision: row.revision,
  };
}

export function toRow(keys: KeyRing, registration: Registration): Omit<RegistrationRow, 'revision'> {
  const owner = { tenant_id: registration.tenantId, oidc_client_id: registration.oidcClientId };
  return {
    ...owner,
    client_id: registration.clientId,
    realm: registration.realm,
    client_secret: keys.seal(registration.clientSecret, secretContext(owner)),
    registration_access_token: keys.seal(registration.registrationAccessToken, tokenContext(owner)),
    registration_client_uri: registration.registrationClientUri,
    redirect_uris: registration.redirectUris,
    registered_at: registration.registeredAt,
  };
}
