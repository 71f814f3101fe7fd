// Who calls: verifies bearer access tokens of the access service (Keycloak's claims) for the realms of known tenants
// and for core. Deny by default: any doubt about a token is a 401. It decides no permissions beyond "has a role".
import { createHash } from 'node:crypto';
import {
  createRemoteJWKSet,
  decodeJwt,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { type Clock, systemClock } from './clock.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import { Problem } from './problem.ts';

export interface Tenant {
  /** URN */
  id: string;
  name: string;
  realm: string;
}

export interface Tenants {
  byRealm(realm: string): Promise<Tenant | undefined>;
  /** By full URN. */
  byId(urn: string): Promise<Tenant | undefined>;
  /** By name in any case or in kebab-case. */
  byName(name: string): Promise<Tenant | undefined>;
}

/** A verified bearer. */
export interface Caller {
  subject: string;
  /** `name`, else `preferred_username`, else the subject. */
  name: string;
  email?: string;
  issuer: string;
  realm: string;
  /** The client that the token was issued to (`azp`). */
  clientId: string;
  isCore: boolean;
  /** Absent for core callers. */
  tenant?: Tenant;
  /** Realm roles bare, client roles as `<client>:<role>`, roles of the verifying service's own client also bare. */
  roles: ReadonlySet<string>;
}

export interface BearerVerifier {
  /**
   * Verifies an `Authorization` header. `audiences`: one of these must be in `aud`, `'any'` skips the check.
   * Throws Problem `unauthenticated`, or `unavailable` when the access service's keys cannot be had.
   */
  verify(authorization: string | undefined, audiences: readonly string[] | 'any'): Promise<Caller>;
}

export interface BearerVerifierOptions {
  /** Where keys are fetched, such as `http://keycloak:8080/auth`. */
  accessUrl: string;
  /** What issuers begin with, such as `https://access.example.org/auth`. */
  accessPublicUrl: string;
  tenants: Pick<Tenants, 'byRealm'>;
  /** The verifying service's client id (its URN). */
  clientId: string;
  log: Logger;
  metrics: Metrics;
  clock?: Clock;
}

interface VerifiedToken {
  caller: Caller;
  audiences: readonly string[];
  /** Seconds since 1970. */
  expires: number;
}

const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const leeway = 5;
const coreRealm = 'core';
const rolesSchema = z.object({ roles: z.array(z.string()) });
const claimsSchema = z.object({
  sub: z.string().min(1),
  exp: z.number(),
  typ: z.string().optional(),
  azp: z.string().optional(),
  name: z.string().optional(),
  preferred_username: z.string().optional(),
  email: z.string().optional(),
  aud: z.union([z.string().transform((one) => [one]), z.array(z.string())]).default([]),
  realm_access: rolesSchema.optional(),
  resource_access: z.record(z.string(), rolesSchema).optional(),
});

/** A verified token is remembered by its SHA-256 until it expires; at most 10,000 of them. */
export function createBearerVerifier(options: BearerVerifierOptions): BearerVerifier {
  const clock = options.clock ?? systemClock;
  const issuerBase = `${options.accessPublicUrl}/realms/`;
  const verified = new LRUCache<string, VerifiedToken>({ max: 10_000 });
  const keySets = new LRUCache<string, JWTVerifyGetKey>({ max: 5_000 });

  return {
    async verify(authorization, audiences) {
      const token = bearerToken(authorization);
      const hash = createHash('sha256').update(token).digest('base64');
      let entry = verified.get(hash);
      if (!entry) {
        entry = await verifyToken(token);
        verified.set(hash, entry);
      }
      if (entry.expires + leeway <= clock().getTime() / 1000) {
        verified.delete(hash);
        throw unauthenticated('The token has expired.');
      }
      if (audiences !== 'any' && !audiences.some((audience) => entry.audiences.includes(audience)))
        throw unauthenticated('The token is for another audience.');
      return entry.caller;
    },
  };

  async function verifyToken(token: string): Promise<VerifiedToken> {
    const issuer = unverifiedIssuer(token);
    const realm = issuer.startsWith(issuerBase) ? issuer.slice(issuerBase.length) : '';
    if (!/^[\w.-]+$/.test(realm)) throw unauthenticated('The token is from another issuer.');
    const tenant = realm === coreRealm ? undefined : await options.tenants.byRealm(realm);
    if (realm !== coreRealm && !tenant) throw unauthenticated('The token is from the realm of no tenant.');
    const payload = await checkSignature(token, issuer, realm);
    const claims = claimsSchema.safeParse(payload);
    // Keycloak marks what a token is for; an ID or refresh token is no access token.
    if (!claims.success || ['ID', 'Refresh', 'Offline', 'Logout'].includes(claims.data.typ ?? ''))
      throw unauthenticated('The token is no access token.');
    const { data } = claims;
    const caller: Caller = {
      subject: data.sub,
      name: data.name ?? data.preferred_username ?? data.sub,
      ...(data.email !== undefined && { email: data.email }),
      issuer,
      realm,
      clientId: data.azp ?? '',
      isCore: realm === coreRealm,
      ...(tenant && { tenant }),
      roles: rolesOf(data, options.clientId),
    };
    return { caller, audiences: data.aud, expires: data.exp };
  }

  async function checkSignature(token: string, issuer: string, realm: string): Promise<JWTPayload> {
    try {
      const settings = { algorithms, issuer, clockTolerance: leeway, currentDate: clock(), requiredClaims: ['exp', 'sub'] };
      return (await jwtVerify(token, keysOf(realm), settings)).payload;
    } catch (error) {
      if (isTokenFault(error)) throw unauthenticated('The token is not valid.', error);
      options.metrics.dependencyFailures.inc({ dependency: 'access-service', kind: 'keys' });
      options.log.warn({ err: error, realm }, 'the keys of a realm cannot be fetched');
      const headers = { 'Retry-After': '5' };
      throw new Problem('unavailable', 'The access service cannot be reached at the moment.', { cause: error, headers });
    }
  }

  function keysOf(realm: string): JWTVerifyGetKey {
    let keys = keySets.get(realm);
    if (!keys) {
      const url = new URL(`${options.accessUrl}/realms/${realm}/protocol/openid-connect/certs`);
      // An unknown kid fetches anew, at most every 30 s.
      keys = createRemoteJWKSet(url, { cooldownDuration: 30_000, cacheMaxAge: 36_000_000, timeoutDuration: 10_000 });
      keySets.set(realm, keys);
    }
    return keys;
  }
}

/** Faults of the token itself; whatever else fails is the access service's or the network's. */
function isTokenFault(error: unknown): boolean {
  return (
    error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout) && !(error instanceof errors.JWKSInvalid) &&
    error.code !== 'ERR_JOSE_GENERIC'
  );
}

function bearerToken(authorization: string | undefined): string {
  const match = /^Bearer +([\w~+/.=-]+) *$/i.exec(authorization ?? '');
  if (!match?.[1]) throw unauthenticated('The request carries no bearer token.');
  return match[1];
}

function unverifiedIssuer(token: string): string {
  try {
    return decodeJwt(token).iss ?? '';
  } catch (error) {
    throw unauthenticated('The token is not a JWT.', error);
  }
}

function rolesOf(claims: z.output<typeof claimsSchema>, ownClient: string): ReadonlySet<string> {
  const roles = new Set(claims.realm_access?.roles);
  for (const [client, access] of Object.entries(claims.resource_access ?? {}))
    for (const role of access.roles) {
      roles.add(`${client}:${role}`);
      if (client === ownClient) roles.add(role);
    }
  return roles;
}

// RFC 6750 section 3.
function unauthenticated(detail: string, cause?: unknown): Problem {
  const challenge = `Bearer error="invalid_token", error_description="${detail}"`;
  return new Problem('unauthenticated', detail, { cause, headers: { 'WWW-Authenticate': challenge } });
}
