// Verifies ID tokens from the token endpoint, at sign-in (OpenID Connect Core 1.0, section 3.1.3.7) and after a refresh
// (section 12.2). No other kind of JWT from the same issuer is accepted as an ID token.
import { hash } from 'node:crypto';
import type { JWTPayload, JWTVerifyOptions, JWTVerifyResult } from 'jose';
import { z } from 'zod';
import { idTokenAlgorithms, isTokenFault } from '../../service/auth/signing-keys.ts';

/** Thrown if the identity provider sent an ID token that must not be used. */
export class IdTokenFault extends Error {
  override name = 'IdTokenFault';
  /** The claim or header parameter that is invalid, or an error code of jose such as `ERR_JWKS_NO_MATCHING_KEY`. */
  readonly rule: string;

  constructor(rule: string) {
    super(`the ID token is not valid: ${rule}`);
    this.rule = rule;
  }
}

export interface ExpectedIdToken {
  issuer: string;
  /** Id of the OAuth client that requested the token. */
  clientId: string;
  /**
   * The current time, for the checks of `exp`, `nbf` and `iat`. Undefined after a refresh: these claims do not say
   * whose token it is, and the clock of this pod may be wrong.
   */
  now: Date | undefined;
  /** The access token of the same response. Its hash must equal `at_hash`, if the ID token has this claim. */
  accessToken: string;
  /** The redeemed code. Its hash must equal `c_hash`, if the ID token has this claim. */
  code?: string | undefined;
  /** The subject of the person who signed in. Set only after a refresh. */
  sub?: string | undefined;
  /** The earliest accepted `auth_time`, in milliseconds since 1970. Set only if the sign-in requested a `max_age`. */
  earliestAuthTime?: number | undefined;
}

export type IdTokenClaims = JWTPayload & { sub: string };

/** Verifies the signature of a JWT with the keys of the expected issuer, and the claims that `options` names. */
export type VerifyJwt = (token: string, options: JWTVerifyOptions) => Promise<JWTVerifyResult>;

/** Largest tolerance that accepts each time, in seconds. */
const anyTime = Number.MAX_SAFE_INTEGER;
/** Tolerated clock difference for `exp`, `nbf` and `auth_time`, in seconds. */
const leeway = 5;
/**
 * Maximum age of an ID token in seconds. The identity provider has just issued the token, but its `iat` may be
 * backdated by minutes.
 */
const oldest = 600;
/** Seconds by which the clock of the identity provider may be ahead. */
const ahead = 60;

const claimsSchema = z.looseObject({
  // OpenID Connect Core 1.0, section 2, limits the length of `sub`.
  sub: z.string().min(1).max(255),
  iat: z.number(),
  azp: z.string().optional(),
  auth_time: z.number().optional(),
  at_hash: z.string().optional(),
  c_hash: z.string().optional(),
});

/**
 * Returns the claims of a valid ID token. Throws IdTokenFault for an invalid token. Throws the error of `verify` if the
 * keys cannot be fetched.
 */
export async function verifyIdToken(
  idToken: string,
  verify: VerifyJwt,
  expected: ExpectedIdToken,
): Promise<IdTokenClaims> {
  const { issuer, clientId, now: currentDate } = expected;
  const settings = {
    algorithms: idTokenAlgorithms,
    clockTolerance: currentDate ? leeway : anyTime,
    requiredClaims: ['sub', 'iat', 'exp'],
    ...(currentDate && { currentDate }),
  };
  const verified = verify(idToken, { ...settings, issuer, audience: clientId });
  const { payload, protectedHeader } = await verified.catch((error: unknown) => {
    throw isTokenFault(error) ? new IdTokenFault('claim' in error ? String(error.claim) : error.code) : error;
  });
  const { data: claims, error: malformed } = claimsSchema.safeParse(payload);
  if (malformed) throw new IdTokenFault(String(malformed.issues[0]?.path[0]));
  const rule =
    kindProblem(protectedHeader.typ, payload) ??
    claimProblem(claims, payload.aud, expected) ??
    hashProblem(claims, protectedHeader.alg, expected);
  if (rule !== undefined) throw new IdTokenFault(rule);
  return payload as IdTokenClaims;
}

/** Rejects other kinds of JWT, such as access tokens (`at+jwt`) and logout tokens (RFC 8725 section 3.11). */
function kindProblem(type: string | undefined, payload: JWTPayload): string | undefined {
  const kind = type?.toLowerCase().replace(/^application\//, '') ?? 'jwt';
  if (kind !== 'jwt') return 'typ';
  // Only security event tokens, such as logout tokens, have this claim (RFC 8417 section 2.2).
  return 'events' in payload ? 'events' : undefined;
}

type Claims = z.infer<typeof claimsSchema>;

function claimProblem(claims: Claims, aud: unknown, expected: ExpectedIdToken): string | undefined {
  const { sub, iat, azp, auth_time: authTime = Number.NEGATIVE_INFINITY } = claims;
  const { earliestAuthTime = Number.NEGATIVE_INFINITY } = expected;
  const now = expected.now && expected.now.getTime() / 1_000;
  if (now !== undefined && (iat < now - oldest || iat > now + ahead)) return 'iat';
  // OpenID Connect Core 1.0, section 3.1.3.7, rules 4 and 5: `azp` names the client to which the token was issued.
  if (azp === undefined ? Array.isArray(aud) && aud.length > 1 : azp !== expected.clientId) return 'azp';
  // OpenID Connect Core 1.0, section 3.1.3.7, rule 13.
  if (authTime < earliestAuthTime / 1_000 - leeway) return 'auth_time';
  // OpenID Connect Core 1.0, section 12.2: a refreshed ID token must have the same subject as the session.
  return expected.sub !== undefined && sub !== expected.sub ? 'sub' : undefined;
}

/** Checks the hashes that bind the ID token to the access token and the code (OIDC Core 1.0, 3.1.3.6 and 3.3.2.11). */
function hashProblem(claims: Claims, alg: string, { accessToken, code }: ExpectedIdToken): string | undefined {
  const { at_hash: accessHash, c_hash: codeHash } = claims;
  if (accessHash !== undefined && accessHash !== leftHalf(accessToken, alg)) return 'at_hash';
  return codeHash !== undefined && code !== undefined && codeHash !== leftHalf(code, alg) ? 'c_hash' : undefined;
}

function leftHalf(text: string, alg: string): string {
  const size = /[RPE]S(\d+)$/.exec(alg)?.[1] ?? '512';
  const digest = hash(`sha${size}`, text, 'buffer');
  return digest.subarray(0, digest.length / 2).toString('base64url');
}
