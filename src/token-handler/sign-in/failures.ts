// What a failed answer of the access service means to the person who signs in. No text of the access service is passed
// on, and no code or token.

import * as oidc from 'openid-client';
import { invalidRequest, Problem } from '../../service/http/problem.ts';

/** Errors that the person, or what the sign-in asked for, brought about (RFC 6749 section 4.1.2.1, OIDC Core 3.1.2.6). */
const refusals = new Set([
  'access_denied',
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
]);

/** Errors after which the same attempt may succeed: Keycloak has them for a sign-in form that was left too long. */
const passing = new Set(['temporarily_unavailable', 'authentication_expired']);

/** How an error in the authorization response is taken. */
export function judgeError(error: string): 'refused' | 'passing' | 'failed' {
  if (refusals.has(error)) return 'refused';
  return passing.has(error) ? 'passing' : 'failed';
}

/** The error that the access service answers in place of a code; undefined for any other failure. */
export function answeredError(failure: unknown): string | undefined {
  return failure instanceof oidc.AuthorizationResponseError ? failure.error : undefined;
}

const invalidAnswers = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
]);

/** The problem that a failure to begin a sign-in, or to redeem its code, is. */
export function signInProblem(error: unknown): unknown {
  if (error instanceof Problem) return error;
  // The access service does not take the code (any more).
  if (error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant')
    return new Problem('invalid-request', 'The access service does not accept this sign-in. Sign in again.');
  if (isUnknownClient(error))
    return new Problem('registration-required', 'The access service does not know the client any more.', {
      cause: error,
    });
  if (error instanceof oidc.ClientError && error.code === 'OAUTH_TIMEOUT')
    return new Problem('dependency-timeout', 'The access service did not answer in time.', { cause: error });
  // iss, state or nonce of another sign-in, another issuer's token, a parameter given twice
  if (error instanceof oidc.ClientError && invalidAnswers.has(error.code ?? ''))
    return invalidRequest([{ pointer: '/query', detail: 'is not the answer to this sign-in' }]);
  return new Problem('dependency-failed', 'The access service failed.', { cause: error });
}

/**
 * Whether the client, or its secret, is not the access service's any more (RFC 6749 section 5.2). A refusal of HTTP Basic
 * may come as a challenge, and Keycloak says unauthorized_client of a wrong secret.
 */
export function isUnknownClient(error: unknown): boolean {
  if (error instanceof oidc.WWWAuthenticateChallengeError) return error.status === 401;
  return (
    error instanceof oidc.ResponseBodyError &&
    error.status === 401 &&
    ['invalid_client', 'unauthorized_client'].includes(error.error)
  );
}
