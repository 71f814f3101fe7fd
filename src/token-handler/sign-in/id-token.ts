// Verifies ID tokens from the token endpoint, at sign-in (OpenID Connect Core 1.0, section 3.1.3.7) and after a refresh
// (section 12.2). Accepts no other JWT of the same issuer in the place of an ID token.
import { hash } from 'node:crypto';
import type { JWTPayload, JWTVerifyOptions, JWTVerifyResult } from 'jose';
import { z } from 'zod';
import { isTokenFault } from '../../service/auth/signing-keys.ts';

/** The identity provider sent an ID token that must not be used. The message names the rule, and no value. */
export class IdTokenFault extends Error {
  override name = 'IdTokenFault';
}

export interface ExpectedIdToken {
  issuer: string;
  /** Id of the OAuth client that requested the token. */
  clientId: string;
  now: Date;
  /** The access token of the same response, for `at_hash`. */
  accessToken: string;
  /** The code that was redeemed, for `c_hash`. */
  code?: string | undefined;
  /** After a refresh: the subject of the person who signed in. */
  sub?: string | undefined;
}

export type IdTokenClaims = JWTPayload & { sub: string };

/** Verifies a signature with the keys of the expected issuer, and checks the claims that the options name. */
export type VerifyJwt = (token: string, options: JWTVerifyOptions) => Promise<JWTVerifyResult>;

/** Algorithms of ID tokens and logout tokens; all of them are asymmetric (RFC 8725 section 3.1). */
export const signatureAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/** Seconds by which the clocks may differ, for `exp` and `nbf`. */
const leeway = 5;
/** Greatest age in seconds. The token was issued for the request that just ended, but may be dated back by minutes. */
const oldest = 600;
/** Seconds by which the clock of the identity provider may be ahead. */
const ahead = 60;

const claimsSchema = z.looseObject({
  // Section 2 limits the length.
  sub: z.string().min(1).max(255),
  iat: z.number(),
  azp: z.string().optional(),
  at_hash: z.string().optional(),
  c_hash: z.string().optional(),
});

/**
 * Returns the claims of a valid ID token. Throws IdTokenFault for any other token, and the error of `verify` if the keys
 * cannot be fetched.
 */
export async function verifyIdToken(
  idToken: string,
  verify: VerifyJwt,
  expected: ExpectedIdToken,
): Promise<IdTokenClaims> {
  const { issuer, clientId, now: currentDate } = expected;
  const requiredClaims = ['sub', 'iat', 'exp'];
  const settings = { algorithms: signatureAlgorithms, clockTolerance: leeway, requiredClaims, currentDate };
  const verified = verify(idToken, { ...settings, issuer, audience: clientId });
  const { payload, protectedHeader } = await verified.catch((cause: unknown) => {
    throw isTokenFault(cause) ? new IdTokenFault('the ID token is not valid', { cause }) : cause;
  });
  const { data: claims } = claimsSchema.safeParse(payload);
  const problem = claims
    ? (kindProblem(protectedHeader.typ, payload) ??
      claimProblem(claims, payload.aud, expected) ??
      hashProblem(claims, protectedHeader.alg, expected))
    : 'has a claim that is missing, empty or of another type';
  if (problem !== undefined) throw new IdTokenFault(`the ID token ${problem}`);
  return payload as IdTokenClaims;
}

/** RFC 8725 section 3.11: rejects other kinds of JWT, such as access tokens (`at+jwt`) and logout tokens. */
function kindProblem(type: string | undefined, payload: JWTPayload): string | undefined {
  const kind = type?.toLowerCase().replace(/^application\//, '') ?? 'jwt';
  if (kind !== 'jwt') return 'has another type';
  // Only security events have this claim (RFC 8417 section 2.2), such as logout tokens.
  return 'events' in payload ? 'is a security event' : undefined;
}

type Claims = z.infer<typeof claimsSchema>;

function claimProblem({ sub, iat, azp }: Claims, aud: unknown, expected: ExpectedIdToken): string | undefined {
  const now = expected.now.getTime() / 1_000;
  if (iat < now - oldest || iat > now + ahead) return 'was issued too long ago or in the future';
  // Section 3.1.3.7, rules 4 and 5: with several audiences, `azp` says which of them the token was issued to.
  if (azp === undefined ? Array.isArray(aud) && aud.length > 1 : azp !== expected.clientId)
    return 'was issued to another client';
  // Section 12.2 for refreshed tokens.
  return expected.sub !== undefined && sub !== expected.sub ? 'is of another person' : undefined;
}

/** Sections 3.1.3.6 and 3.3.2.11: the hashes bind the ID token to the access token and the code. */
function hashProblem(claims: Claims, alg: string, { accessToken, code }: ExpectedIdToken): string | undefined {
  if (claims.at_hash !== undefined && claims.at_hash !== leftHalf(accessToken, alg))
    return 'is of another access token';
  const { c_hash: codeHash } = claims;
  const isOfCode = codeHash === undefined || code === undefined || codeHash === leftHalf(code, alg);
  return isOfCode ? undefined : 'is of another code';
}

function leftHalf(text: string, alg: string): string {
  const digest = hash(alg === 'EdDSA' ? 'sha512' : 'sha256', text, 'buffer');
  return digest.subarray(0, digest.length / 2).toString('base64url');
}
