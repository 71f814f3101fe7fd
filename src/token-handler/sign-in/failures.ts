// Turns failures at the identity provider into problems for the person who signs in. The problems contain no text, code
// or token from the identity provider.
import * as oidc from 'openid-client';
import { KeysUnavailable } from '../../service/auth/realm-keys.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import { TokensTooLarge } from '../sessions/token-size.ts';
import { IdTokenFault } from './id-token.ts';

/** Error codes that the person or the requested prompt causes (RFC 6749 4.1.2.1, OIDC Core 3.1.2.6). */
const refusals = new Set([
  'access_denied',
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
]);

/**
 * Classifies an error of the authorization response.
 * - `refused`: the person, or the requested prompt, caused it
 * - `expired`: a sign-in form was open for too long; a new attempt may succeed. Keycloak then sends the error
 *   `temporarily_unavailable` with the description `authentication_expired`
 * - `unavailable`: the identity provider is temporarily unavailable; a new attempt may succeed
 * - `failed`: any other error
 */
export function judgeError(error: string, description?: unknown): 'refused' | 'expired' | 'unavailable' | 'failed' {
  if (refusals.has(error)) return 'refused';
  if (error === expired || (error === unavailable && description === expired)) return 'expired';
  return error === unavailable ? 'unavailable' : 'failed';
}

const expired = 'authentication_expired';
const unavailable = 'temporarily_unavailable';

/** An error that the identity provider has sent, for the log. */
export interface ErrorResponse {
  error: string;
  /** Status of the token response. Absent for an authorization response. */
  status?: number;
}

/** Returns the error response of the token endpoint (RFC 6749 section 5.2), or undefined for any other failure. */
export function errorResponse(failure: unknown): ErrorResponse | undefined {
  if (failure instanceof oidc.ResponseBodyError) return { error: errorCode(failure.error), status: failure.status };
  if (failure instanceof oidc.WWWAuthenticateChallengeError) return { error: 'challenge', status: failure.status };
  return undefined;
}

/** Returns an error code as it may be logged. A text of another form could quote anything, so it becomes `other`. */
export function errorCode(text: string): string {
  return /^[a-z_]{1,60}$/.test(text) ? text : 'other';
}

/** Returns the error code that the identity provider sent to the callback, or undefined for any other failure. */
export function authorizationError(failure: unknown): string | undefined {
  return failure instanceof oidc.AuthorizationResponseError ? failure.error : undefined;
}

const invalidResponses = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
  'OAUTH_PARSE_ERROR',
]);

/**
 * Returns the kind under which metrics count a failure to redeem a code. `invalid-token-response`: the identity
 * provider redeemed the code, but its response or its ID token is invalid, or the tokens are too large. `sign-in`: the
 * identity provider failed in another way. Returns undefined if the identity provider did not fail.
 */
export function failureKind(failure: unknown): 'invalid-token-response' | 'sign-in' | undefined {
  if (isOfAnotherSignIn(failure) || authorizationError(failure) !== undefined) return undefined;
  if (failure instanceof IdTokenFault || failure instanceof TokensTooLarge) return 'invalid-token-response';
  if (failure instanceof oidc.ClientError && invalidResponses.has(failure.code ?? '')) return 'invalid-token-response';
  const problem = signInProblem(failure);
  return problem instanceof Problem && problem.status >= 500 ? 'sign-in' : undefined;
}

/**
 * True if the callback does not belong to this sign-in:
 * - its `iss` or `state` differs
 * - the ID token's `nonce` differs or is missing, as with an injected code (RFC 9700 section 4.5)
 * - the requested `auth_time` is missing or too old
 */
function isOfAnotherSignIn(failure: unknown): boolean {
  if (failure instanceof IdTokenFault) return failure.rule === 'auth_time';
  // openid-client wraps the error of oauth4webapi. The cause of that error shows which values were compared.
  if (!(failure instanceof oidc.ClientError && failure.cause instanceof Error)) return false;
  const { message, cause } = failure.cause;
  if (/"nonce" .*claim missing$/.test(message)) return true;
  return isObject(cause) && ('parameters' in cause || cause.claim === 'nonce');
}

/** Returns the problem for a failure to start a sign-in or to redeem its code. */
export function signInProblem(cause: unknown): unknown {
  if (cause instanceof Problem) return cause;
  if (cause instanceof oidc.ResponseBodyError && cause.error === 'invalid_grant')
    return new Problem('invalid-request', 'The identity provider rejected this sign-in. Sign in again.');
  if (isUnknownClient(cause)) {
    const detail =
      'The identity provider no longer accepts this client. An administrator has to register the client again.';
    return new Problem('registration-required', detail, { cause });
  }
  if (cause instanceof TokensTooLarge) {
    const detail =
      'The identity provider issued tokens that are too large. An administrator has to reduce the roles and claims in them.';
    return new Problem('dependency-failed', detail, { cause });
  }
  if (isTimeout(cause))
    return new Problem('dependency-timeout', 'The identity provider did not respond in time.', { cause });
  if (isOfAnotherSignIn(cause))
    return invalidRequest([{ pointer: '/query', detail: 'is not the response to this sign-in' }]);
  return new Problem('dependency-failed', 'The identity provider failed.', { cause });
}

function isTimeout(cause: unknown): boolean {
  if (cause instanceof KeysUnavailable)
    return cause.cause instanceof DOMException && cause.cause.name === 'TimeoutError';
  return cause instanceof oidc.ClientError && cause.code === 'OAUTH_TIMEOUT';
}

/**
 * True if the identity provider rejected the client or its secret (RFC 6749 section 5.2). The identity provider may
 * reject HTTP Basic with a WWW-Authenticate challenge. Keycloak sends `unauthorized_client` for a wrong secret.
 */
function isUnknownClient(error: unknown): boolean {
  if (error instanceof oidc.WWWAuthenticateChallengeError) return error.status === 401;
  return (
    error instanceof oidc.ResponseBodyError &&
    error.status === 401 &&
    ['invalid_client', 'unauthorized_client'].includes(error.error)
  );
}

/** The problem for a callback whose attempt is unknown in this browser or was already used. */
export function unknownState(): Problem {
  const detail = 'does not belong to a sign-in that this browser started. Sign in again';
  return invalidRequest([{ pointer: '/query/state', detail }]);
}
