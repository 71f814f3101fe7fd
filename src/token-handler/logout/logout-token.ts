// Verifies logout tokens (OpenID Connect Back-Channel Logout 1.0, section 2.6).
import * as jose from 'jose';
import { z } from 'zod';
import type { Tenant, Tenants } from '../../service/auth/identity.ts';
import { idTokenAlgorithms, isTokenFault, keysProblem, type SigningKeys } from '../../service/auth/signing-keys.ts';
import type { Clock } from '../../service/clock.ts';
import { isObject } from '../../service/json-value.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import type { ProviderAddresses } from '../provider-addresses.ts';
import type { ProviderLogout } from './provider-logouts.ts';

/**
 * Verifies a logout token, except for its audience. Throws LogoutRefusal for an invalid token, and Problem
 * `unavailable` if the signing keys cannot be fetched.
 */
export type VerifyLogoutToken = (token: string) => Promise<LogoutToken>;

/**
 * A valid logout token of a tenant's identity provider. Its audience, a client at this identity provider, is not
 * checked yet.
 */
export interface LogoutToken {
  /** URN of the tenant. */
  tenantId: string;
  /**
   * Returns the logout that the token requests for this client. Throws LogoutRefusal if the client is not registered,
   * or if the token is for another client.
   */
  logoutOf(clientId: string): Promise<ProviderLogout>;
}

/**
 * The logout token is invalid. This error is not a Problem, because Back-Channel Logout 1.0, section 2.8, defines the
 * body of the response.
 */
export class LogoutRefusal extends Error {
  override name = 'LogoutRefusal';
}

export interface LogoutTokenOptions {
  addresses: ProviderAddresses;
  tenants: Pick<Tenants, 'byRealm'>;
  registrations: Pick<RegistrationStore, 'find'>;
  keys: SigningKeys;
  clock: Clock;
}

const eventName = 'http://schemas.openid.net/event/backchannel-logout';
/** Tolerated difference between the clocks of the identity provider and of this process, in seconds. */
const leeway = 5;
/** Maximum age of a logout token in seconds, even if `exp` is later. A used `jti` is remembered for longer. */
const oldest = 300;

const claimsSchema = z
  .object({
    jti: z.string().min(1).max(500),
    sub: z.string().min(1).optional(),
    sid: z.string().min(1).optional(),
    events: z.record(z.string(), z.unknown()).refine((events) => isObject(events[eventName])),
    // Back-Channel Logout 1.0, section 2.4, forbids a nonce. An ID token therefore cannot be used as a logout token.
    nonce: z.undefined().optional(),
  })
  .refine(({ sub, sid }) => sub !== undefined || sid !== undefined);

export function createLogoutVerifier(options: LogoutTokenOptions): VerifyLogoutToken {
  return async (token) => {
    const { tenant, issuer } = await issuerOf(token, options);
    const { payload, protectedHeader } = await checkSignature(token, { tenant, issuer }, options);
    const { data: claims } = claimsSchema.safeParse(payload);
    if (!claims) throw new LogoutRefusal('the claims of a logout token are missing or invalid');
    const { jti, sub, sid } = claims;
    return {
      tenantId: tenant.id,
      async logoutOf(clientId) {
        const registration = await options.registrations.find(tenant.id, clientId);
        if (!registration) throw new LogoutRefusal('the client is not registered');
        if (![payload.aud].flat().includes(registration.oidcClientId))
          throw new LogoutRefusal('the token is for another client');
        return { tenantId: tenant.id, clientId, jti, sub, sid, algorithm: protectedHeader.alg };
      },
    };
  };
}

/** Returns the unverified issuer and its tenant. The caller must check the signature with the tenant's keys. */
async function issuerOf(token: string, { addresses, tenants }: LogoutTokenOptions) {
  const issuer = unverifiedIssuer(token);
  const realm = addresses.realmOf(issuer);
  if (realm === undefined) throw new LogoutRefusal('unknown issuer');
  const tenant = await tenants.byRealm(realm);
  if (!tenant) throw new LogoutRefusal('the issuer belongs to no tenant');
  return { tenant, issuer };
}

function unverifiedIssuer(token: string): string {
  try {
    const { iss }: { iss?: unknown } = jose.decodeJwt(token);
    return typeof iss === 'string' ? iss : '';
  } catch (error) {
    throw new LogoutRefusal('the token is not a JWT', { cause: error });
  }
}

interface Expected {
  tenant: Tenant;
  issuer: string;
}

async function checkSignature(token: string, { tenant, issuer }: Expected, options: LogoutTokenOptions) {
  const { keys, clock } = options;
  try {
    const verified = await jose.jwtVerify(token, keys.ofRealm(tenant.realm), {
      issuer,
      // Logout tokens are signed like ID tokens (Back-Channel Logout 1.0, section 2.4).
      algorithms: idTokenAlgorithms,
      clockTolerance: leeway,
      currentDate: clock(),
      maxTokenAge: oldest,
      // Back-Channel Logout 1.0, section 2.4, requires these claims.
      requiredClaims: ['iat', 'exp', 'jti', 'events'],
    });
    // The recommended type is logout+jwt (Back-Channel Logout 1.0, section 2.4), which Keycloak sends. Other identity
    // providers send JWT or omit the type.
    const type = verified.protectedHeader.typ?.toLowerCase().replace(/^application\//, '') ?? 'jwt';
    if (!['logout+jwt', 'jwt'].includes(type)) throw new LogoutRefusal('the token has another type');
    return verified;
  } catch (error) {
    if (error instanceof LogoutRefusal) throw error;
    if (isTokenFault(error)) throw new LogoutRefusal('the token is not valid', { cause: error });
    throw keysProblem(error);
  }
}
