// Defines registrations and their event. A registration is the OAuth client that represents a configured client in a
// tenant's realm. Its secret and token are sealed (encrypted) for that OAuth client, so that a copy in another row
// cannot be opened.
import type { Caller } from '../../service/auth/identity.ts';
import type { KeyRing } from '../../service/keys/key-ring.ts';
import type { Client } from './client.ts';

/**
 * How the client can be changed and deleted at the identity provider.
 * - `kept`: with the registration access token
 * - `lost`: not any more, because the identity provider replaced the token and the new token was lost
 * - `unsupported`: not at all, because the identity provider issued no token (RFC 7592 is optional)
 * - `provided`: never, because an administrator created the client
 */
export const managements = ['kept', 'lost', 'unsupported', 'provided'] as const;
export type Management = (typeof managements)[number];

/** How the client authenticates at the token endpoint (RFC 6749 section 2.3.1). */
export const clientAuthentications = ['client_secret_basic', 'client_secret_post'] as const;
export type ClientAuthentication = (typeof clientAuthentications)[number];

export interface Registration {
  /** URN of the tenant. */
  tenantId: string;
  /** Id of the configured client. */
  clientId: string;
  realm: string;
  /** Id of the client at the identity provider. */
  oidcClientId: string;
  /**
   * Name of the client at the identity provider. Null for provided clients, and for clients that an older version of
   * the token handler registered.
   */
  clientName: string | null;
  /** The issuer that the operator has mapped to the tenant. Null for a realm of the platform's identity provider. */
  issuer: string | null;
  authentication: ClientAuthentication;
  management: Management;
  clientSecret: string;
  /** Empty unless `management` is `kept` or `lost`. */
  registrationAccessToken: string;
  /** The URI as the identity provider returned it, not rebased. Empty unless `management` is `kept` or `lost`. */
  registrationClientUri: string;
  redirectUris: string[];
  registeredAt: Date;
}

export interface StoredRegistration extends Registration {
  /** Each change to the registration increases the revision, except for sealing its secrets with another key. */
  revision: number;
}

/** The fields of a registration that administrators see. */
export interface RegistrationSummary {
  /** Id of the client at the identity provider. */
  clientId: string;
  registeredAt: Date;
  redirectUris: string[];
  management: Management;
}

export interface RegistrationEvent {
  name: string;
  payload: object;
}

export const clientRegistered = 'client-registered';

export function registeredEvent(
  { id, name }: Pick<Client, 'id' | 'name'>,
  registered: { clientId: string; authCallbackUrl?: string | undefined },
  by: Pick<Caller, 'subject' | 'name'>,
) {
  const { clientId, authCallbackUrl } = registered;
  const client = { id, name, clientId, ...(authCallbackUrl !== undefined && { authCallbackUrl }) };
  return { name: clientRegistered, payload: { client, registeredBy: { id: by.subject, name: by.name } } };
}

/** Columns for a SELECT from `client_registrations`. Secrets and tokens in the rows are sealed. */
export const registrationColumns = `tenant_id AS "tenantId", client_id AS "clientId", realm,
  oidc_client_id AS "oidcClientId", client_secret AS "clientSecret",
  registration_access_token AS "registrationAccessToken", registration_client_uri AS "registrationClientUri",
  client_name AS "clientName", issuer, authentication, management, redirect_uris AS "redirectUris", registered_at AS "registeredAt", revision`;

type Owner = Pick<Registration, 'tenantId' | 'oidcClientId'>;

/** The contexts for which the secret and the token of a registration are sealed. */
export const secretContext = (owner: Owner) => `client secret of ${owner.oidcClientId} of ${owner.tenantId}`;
export const tokenContext = (owner: Owner) => `registration access token of ${owner.oidcClientId} of ${owner.tenantId}`;

/** Opens the sealed registration access token of a row. Throws KeyRingError. */
export function openToken(keys: KeyRing, row: Owner & Pick<Registration, 'registrationAccessToken'>): string {
  return keys.open(row.registrationAccessToken, tokenContext(row));
}

/**
 * Opens the sealed secret and token of a row. Throws KeyRingError, for example if the key that sealed them is not in
 * the key ring.
 */
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
