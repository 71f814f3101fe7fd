// Verifies bearer access tokens with Keycloak's claims. Accepts tokens from the realms of known tenants and from the
// realm core. A token that fails any check is rejected with 401.
import { hash } from 'node:crypto';
import * as jose from 'jose';
import { LRUCache } from 'lru-cache';
import { type Clock, systemClock } from '../clock.ts';
import { Problem } from '../http/problem.ts';
import { isTokenFault, keysProblem, type SigningKeys, type VerifiedJwt } from './signing-keys.ts';
import { noTenantIssuers, realmOfIssuer, realmPattern, type TenantIssuers } from './tenant-issuers.ts';
import { claimsSchema, personOf } from './token-claims.ts';
import { memoryOfRoles, rolesOf } from './token-roles.ts';

export interface Tenant {
  /** The tenant's URN. */
  id: string;
  name: string;
  realm: string;
}

export interface Tenants {
  byRealm(realm: string): Promise<Tenant | undefined>;
  /** Finds a tenant by its full URN. */
  byId(urn: string): Promise<Tenant | undefined>;
  /**
   * Finds a tenant by its name. Ignores the difference between upper and lower case, and between spaces and hyphens.
   */
  byName(name: string): Promise<Tenant | undefined>;
}

/** The caller that a verified bearer token identifies. */
export interface Caller {
  subject: string;
  /** The claim `name`, or else `preferred_username`, or else the subject. */
  name: string;
  email?: string;
  /** True if the identity provider states that the email address belongs to the caller. */
  isEmailVerified?: boolean;
  /** True if the token was issued to a client for itself, without a person who signed in. */
  isServiceAccount?: boolean;
  issuer: string;
  realm: string;
  /** The client that the token was issued to (`azp`). */
  clientId: string;
  isCore: boolean;
  /** Absent for callers of the realm core. */
  tenant?: Tenant;
  /**
   * Realm roles by their names, and client roles as `<client>:<role>`. A role of this service's own client is listed
   * twice: with and without `<client>:`.
   */
  roles: ReadonlySet<string>;
}

export interface BearerVerifier {
  /**
   * Verifies an `Authorization` header. One of `audiences` must be in the claim `aud`; `'any'` skips this check. Throws
   * Problem `unauthenticated`, or `unavailable` if the realm's keys cannot be fetched. For a cached token, returns the
   * caller without a promise, because a promise would cost more than the lookup.
   */
  verify(authorization: string | undefined, audiences: readonly string[] | 'any'): Caller | Promise<Caller>;
}

export interface BearerVerifierOptions {
  signingKeys: SigningKeys;
  /** Base URL of issuers on the platform's identity provider, such as `https://access.example.org/auth`. */
  accessPublicUrl: string;
  /** Issuers that the operator has mapped to tenants. */
  tenantIssuers?: TenantIssuers;
  tenants: Pick<Tenants, 'byRealm'>;
  /** The verifying service's client id (its URN). */
  clientId: string;
  clock?: Clock;
}

interface VerifiedToken {
  caller: Caller;
  audiences: readonly string[];
  /** Time at which the token expires, in seconds since 1970. */
  expires: number;
  isCurrent: VerifiedJwt['isCurrent'];
  /** Time at which the tenant of the realm was last looked up, in milliseconds since 1970. */
  tenantRead: number;
  /** Estimated memory. */
  bytes: number;
}

/** Milliseconds after which the tenant of a known token is looked up again. Tenants may end or change realms. */
const tenantAge = 60_000;
/** Tolerated clock skew in seconds. */
const leeway = 5;
const coreRealm = 'core';
/**
 * Caches up to 10,000 verified tokens by SHA-256 digest, with an estimated memory of 64 MiB. An entry is used until the
 * token expires, until the realm may have removed the signing key of the token, or until the realm belongs to another
 * tenant or to none.
 */
export function createBearerVerifier(options: BearerVerifierOptions): BearerVerifier {
  const clock = options.clock ?? systemClock;
  const mapped = options.tenantIssuers ?? noTenantIssuers;
  const verified = new LRUCache<string, VerifiedToken>({
    max: 10_000,
    maxSize: 64 * 1_048_576,
    sizeCalculation: ({ bytes }) => bytes,
  });

  return {
    verify(authorization, audiences) {
      const token = bearerToken(authorization);
      const digest = hash('sha256', token, 'base64');
      const known = verified.get(digest);
      const current = known?.isCurrent() ? known : undefined;
      if (current && !isTenantOld(current, clock())) return callerOf(digest, current, audiences);
      return verifyAgain(token, current).then((entry) => {
        verified.set(digest, entry);
        return callerOf(digest, entry, audiences);
      });
    },
  };

  /** Returns the known entry if the realm still belongs to its tenant. Otherwise verifies the token. */
  async function verifyAgain(token: string, known: VerifiedToken | undefined): Promise<VerifiedToken> {
    const tenant = known && (await options.tenants.byRealm(known.caller.realm));
    if (!known || tenant?.id !== known.caller.tenant?.id) return verifyToken(token);
    return { ...known, tenantRead: clock().getTime() };
  }

  function callerOf(digest: string, entry: VerifiedToken, audiences: readonly string[] | 'any'): Caller {
    if (entry.expires + leeway <= clock().getTime() / 1000) {
      verified.delete(digest);
      throw unauthenticated('The token has expired.');
    }
    if (audiences !== 'any' && !audiences.some((audience) => entry.audiences.includes(audience)))
      throw unauthenticated('The token is for another audience.');
    return entry.caller;
  }

  async function verifyToken(token: string): Promise<VerifiedToken> {
    const issuer = unverifiedIssuer(token);
    const realm = realmOfIssuer(issuer, options.accessPublicUrl, mapped) ?? '';
    if (!realmPattern.test(realm)) throw unauthenticated('The token is from another issuer.');
    const tenant = realm === coreRealm ? undefined : await options.tenants.byRealm(realm);
    if (realm !== coreRealm && !tenant) throw unauthenticated('The realm of the token belongs to no tenant.');
    const { payload, protectedHeader, isCurrent } = await checkSignature(token, issuer, realm);
    const { data } = claimsSchema.safeParse(payload);
    if (!data || !isAccessTokenType(protectedHeader.typ)) throw unauthenticated('The token is not an access token.');
    const caller = { ...personOf(data), issuer, realm, isCore: !tenant, ...(tenant && { tenant }) };
    const roles = rolesOf(data, options.clientId);
    if (!roles) throw unauthenticated('The token names too many roles.');
    const bytes = 1_000 + 2 * token.length + memoryOfRoles(roles);
    const tenantRead = clock().getTime();
    return { caller: { ...caller, roles }, audiences: data.aud, expires: data.exp, isCurrent, tenantRead, bytes };
  }

  async function checkSignature(token: string, issuer: string, realm: string): Promise<VerifiedJwt> {
    try {
      return await options.signingKeys.verify(realm, token, {
        issuer,
        clockTolerance: leeway,
        currentDate: clock(),
        requiredClaims: ['exp', 'sub'],
      });
    } catch (error) {
      throw signatureProblem(error);
    }
  }
}

function signatureProblem(cause: unknown): Problem {
  return isTokenFault(cause) ? unauthenticated('The token is not valid.', cause) : keysProblem(cause);
}

function isTenantOld({ caller, tenantRead }: VerifiedToken, now: Date): boolean {
  return !caller.isCore && now.getTime() - tenantRead >= tenantAge;
}

const accessTokenTypes = ['at+jwt', 'application/at+jwt', 'jwt'];

/**
 * Accepts the types of access tokens (RFC 9068 section 2.1) in the header `typ`, and `jwt` for providers that do not
 * distinguish their tokens by type. Rejects all other types that a realm may sign (RFC 8725 section 3.11), such as
 * `logout+jwt`.
 */
function isAccessTokenType(type: unknown = 'jwt'): boolean {
  return typeof type === 'string' && accessTokenTypes.includes(type.toLowerCase());
}

/** Returns the token of an Authorization header (RFC 6750 section 2.1). Throws 401 if the header has none. */
function bearerToken(authorization = ''): string {
  // The scheme is case-insensitive (RFC 9110 section 11.1).
  const token = authorization.slice(0, 7).toLowerCase() === 'bearer ' ? authorization.slice(7).trim() : '';
  if (token === '') throw unauthenticated('The request has no bearer token.');
  return token;
}

/**
 * Returns the issuer that the token states, without verification. Use this function only to find the realm whose keys
 * must have signed the token.
 */
function unverifiedIssuer(token: string): string {
  try {
    const { iss }: { iss?: unknown } = jose.decodeJwt(token);
    return typeof iss === 'string' ? iss : '';
  } catch (error) {
    throw unauthenticated('The token is not a JWT.', error);
  }
}

// Returns the Problem for a 401 response with the challenge that RFC 6750, section 3, defines.
function unauthenticated(detail: string, cause?: unknown): Problem {
  const challenge = `Bearer error="invalid_token", error_description="${detail}"`;
  return new Problem('unauthenticated', detail, { cause, headers: { 'WWW-Authenticate': challenge } });
}
