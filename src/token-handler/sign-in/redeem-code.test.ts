// Tests how an authorization code is redeemed, and that it is sent only once. Tests for each failure which problem the
// person gets and how the failure is counted. openid-client is real; the test supplies the responses of the token
// endpoint.
import { generateKeyPair, jwtVerify, SignJWT } from 'jose';
import * as oidc from 'openid-client';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { KeysUnavailable } from '../../service/auth/realm-keys.ts';
import { Problem } from '../../service/http/problem.ts';
import { mostTokenSetSize, TokensTooLarge } from '../sessions/token-size.ts';
import { authorizationError, errorResponse, failureKind, judgeError, signInProblem } from './failures.ts';
import { IdTokenFault, type VerifyJwt } from './id-token.ts';
import { type RedeemChecks, redeemCode } from './redeem-code.ts';

const issuer = 'https://id.example.org/realms/demo';
const now = () => Math.floor(Date.now() / 1_000);
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
let counted: unknown[];
let sent: { body: URLSearchParams; headers: Headers }[];
beforeAll(async () => {
  keys = await generateKeyPair('ES256');
});
beforeEach(() => {
  [counted, sent] = [[], []];
});

const metrics = { dependencyFailures: { inc: (labels: unknown) => void counted.push(labels) } };
const checks: RedeemChecks = { state: 'the state', nonce: 'the nonce', codeVerifier: 'v'.repeat(43) };
const verify: VerifyJwt = (token, options) => jwtVerify(token, keys.publicKey, options);

interface Given {
  query?: Record<string, string>;
  /** Claims that replace the valid claims of the ID token. */
  claims?: Record<string, unknown>;
  /** Replaces the response of the token endpoint. */
  respond?: () => Response | Promise<Response>;
  /** Members that replace the valid members of the token response. */
  answer?: Record<string, unknown>;
  checks?: Partial<RedeemChecks>;
  verify?: VerifyJwt;
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });

async function idToken(changes: Record<string, unknown> = {}): Promise<string> {
  const claims = {
    iss: issuer,
    aud: 'oidc-web',
    sub: 'ana',
    iat: now(),
    exp: now() + 60,
    nonce: 'the nonce',
    ...changes,
  };
  return new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(keys.privateKey);
}

async function redeem(given: Given = {}) {
  const metadata = {
    ...{ issuer, token_endpoint: `${issuer}/token`, authorization_response_iss_parameter_supported: true },
    id_token_signing_alg_values_supported: ['ES256'],
  };
  const configuration = new oidc.Configuration(metadata, 'oidc-web', {}, oidc.ClientSecretBasic('a secret'));
  configuration[oidc.customFetch] = async (_url, { body, headers }) => {
    sent.push({ body: body as URLSearchParams, headers: new Headers(headers) });
    if (given.respond) return given.respond();
    const tokens = { access_token: 'access', token_type: 'bearer', id_token: await idToken(given.claims) };
    return json(200, { ...tokens, ...given.answer });
  };
  const query = { state: 'the state', code: 'the code', iss: issuer, ...given.query };
  const callback = new URL(`https://app.example.org/clients/web/callback?${new URLSearchParams(query)}`);
  const options = { configuration, verify: given.verify ?? verify, metrics: metrics as never };
  return redeemCode(options, callback, { ...checks, ...given.checks });
}

/** Returns the slug of the problem that the person gets, and the kind under which the failure is counted. */
async function judge(given: Given) {
  const failure = await redeem(given).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toBeDefined();
  const kind = failureKind(failure);
  expect(counted).toEqual(kind === undefined ? [] : [{ dependency: 'identity-provider', kind }]);
  const problem = signInProblem(failure);
  expect(problem).toBeInstanceOf(Problem);
  return [(problem as Problem).slug, kind];
}

describe('a code', () => {
  it('is redeemed once, with the verifier of this sign-in', async () => {
    const { tokens, claims } = await redeem();
    expect(tokens).toMatchObject({ access_token: 'access' });
    expect(claims).toMatchObject({ sub: 'ana', nonce: 'the nonce' });
    expect(sent).toHaveLength(1);
    expect(Object.fromEntries(sent[0]?.body ?? [])).toEqual({
      ...{ grant_type: 'authorization_code', code: 'the code', code_verifier: 'v'.repeat(43) },
      redirect_uri: 'https://app.example.org/clients/web/callback',
    });
    expect(counted).toEqual([]);
  });

  it('must give an ID token whose hashes match the code and the access token', async () => {
    expect(await judge({ claims: { c_hash: 'of another code' } })).toEqual([
      'dependency-failed',
      'invalid-token-response',
    ]);
    counted = [];
    expect(await judge({ claims: { at_hash: 'of another' } })).toEqual(['dependency-failed', 'invalid-token-response']);
  });

  it('whose tokens are too large fails as an invalid response, before its ID token is verified', async () => {
    const given: Given = { answer: { access_token: 'a'.repeat(70_000) }, verify: () => expect.unreachable() };
    expect(await judge(given)).toEqual(['dependency-failed', 'invalid-token-response']);
    await expect(redeem({ answer: { access_token: 'a'.repeat(32_768) } })).resolves.toBeDefined();
  });

  it('that gives tokens which are too large for a session is a problem that an administrator can solve', async () => {
    const given = { answer: { access_token: 'x'.repeat(mostTokenSetSize) } };
    expect(await judge(given)).toEqual(['dependency-failed', 'invalid-token-response']);
    const failure = await redeem(given).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(TokensTooLarge);
    expect(signInProblem(failure)).toMatchObject({
      cause: failure,
      message: expect.stringContaining('An administrator has to reduce the roles and claims in them.'),
    });
  });

  it('gives an ID token with the time of the authentication if a greatest age was requested', async () => {
    const recent = { auth_time: now() - 30 };
    const within = (seconds: number) => ({ earliestAuthTime: (now() - seconds) * 1_000 });
    await expect(redeem({ claims: recent, checks: within(60) })).resolves.toBeDefined();
    await expect(redeem({ claims: { auth_time: now() - 600 } })).resolves.toBeDefined();
    expect(await judge({ claims: { auth_time: now() - 600 }, checks: within(60) })).toEqual([
      'invalid-request',
      undefined,
    ]);
    expect(await judge({ checks: within(60) })).toEqual(['invalid-request', undefined]);
    expect(await judge({ claims: { auth_time: now() - 90 }, checks: within(0) })).toEqual([
      'invalid-request',
      undefined,
    ]);
  });
});

describe('a callback of another sign-in', () => {
  it.each<[string, Given]>([
    ['with another state', { query: { state: 'another' } }],
    ['of another issuer', { query: { iss: 'https://evil.example.org' } }],
    ['whose code gives an ID token with another nonce', { claims: { nonce: 'another' } }],
    ['whose code gives an ID token without a nonce', { claims: { nonce: undefined } }],
  ])('%s is an invalid request, which is not counted', async (_which, given) => {
    expect(await judge(given)).toEqual(['invalid-request', undefined]);
  });

  it('whose code was used before is an invalid request', async () => {
    expect(await judge({ respond: () => json(400, { error: 'invalid_grant' }) })).toEqual([
      'invalid-request',
      undefined,
    ]);
  });
});

describe('an invalid response of the token endpoint', () => {
  it.each<[string, Given]>([
    ['that is no JSON', { respond: () => new Response('{', { headers: { 'content-type': 'application/json' } }) }],
    ['without an access token', { answer: { access_token: undefined } }],
    ['without an ID token', { answer: { id_token: undefined } }],
    ['whose ID token is no JWT', { answer: { id_token: 'x' } }],
    ['whose ID token is of another issuer', { claims: { iss: 'https://other.example.org' } }],
    ['whose ID token is for another client', { claims: { aud: 'other' } }],
    ['whose ID token has expired', { claims: { exp: now() - 120 } }],
    ['whose ID token is encrypted', { answer: { id_token: 'e30.a.b.c.d' } }],
    ['whose ID token has another key', { verify: () => Promise.reject(new IdTokenFault('signature')) }],
  ])('%s is a failure of the provider, counted as such', async (_which, given) => {
    expect(await judge(given)).toEqual(['dependency-failed', 'invalid-token-response']);
  });
});

describe('a failure of the token endpoint', () => {
  const basic = { 'www-authenticate': 'Basic realm="x"' };
  it.each<[string, Given, string, string | undefined]>([
    ['500', { respond: () => new Response('', { status: 500 }) }, 'dependency-failed', 'sign-in'],
    ['an error', { respond: () => json(400, { error: 'invalid_request' }) }, 'dependency-failed', 'sign-in'],
    ['401 of another kind', { respond: () => json(401, { error: 'access_denied' }) }, 'dependency-failed', 'sign-in'],
    ['400 for the client', { respond: () => json(400, { error: 'invalid_client' }) }, 'dependency-failed', 'sign-in'],
    [
      '401 for the client',
      { respond: () => json(401, { error: 'invalid_client' }) },
      'registration-required',
      undefined,
    ],
    [
      ...(['401 for its secret', { respond: () => json(401, { error: 'unauthorized_client' }) }] as const),
      ...(['registration-required', undefined] as const),
    ],
    ['a challenge', { respond: () => json(401, {}, basic) }, 'registration-required', undefined],
    ['a challenge with another status', { respond: () => json(403, {}, basic) }, 'dependency-failed', 'sign-in'],
    [
      ...(['a time-out', { respond: () => Promise.reject(new DOMException('late', 'TimeoutError')) }] as const),
      ...(['dependency-timeout', 'sign-in'] as const),
    ],
    ['a network failure', { respond: () => Promise.reject(new TypeError('away')) }, 'dependency-failed', 'sign-in'],
  ])('with %s has its problem', async (_which, given, slug, kind) => {
    expect(await judge(given)).toEqual([slug, kind]);
  });

  it('while the keys cannot be fetched tells whether that took too long', async () => {
    const late = new KeysUnavailable('late', { cause: new DOMException('late', 'TimeoutError') });
    expect(await judge({ verify: () => Promise.reject(late) })).toEqual(['dependency-timeout', 'sign-in']);
    counted = [];
    const broken = new KeysUnavailable('broken', { cause: new DOMException('broken', 'NetworkError') });
    expect(await judge({ verify: () => Promise.reject(broken) })).toEqual(['dependency-failed', 'sign-in']);
    expect(signInProblem(new KeysUnavailable('no cause'))).toMatchObject({ slug: 'dependency-failed' });
    const unrelated = Object.assign(new Error('x'), { cause: new DOMException('late', 'TimeoutError') });
    expect(signInProblem(unrelated)).toMatchObject({ slug: 'dependency-failed', cause: unrelated });
  });

  it('that is a problem already stays that problem', () => {
    const problem = new Problem('unavailable');
    expect(signInProblem(problem)).toBe(problem);
    expect(failureKind(problem)).toBe('sign-in');
    expect(failureKind(new Problem('internal'))).toBe('sign-in');
    expect(failureKind(new Problem('not-found'))).toBeUndefined();
  });

  it('of openid-client is judged by its code, also without a cause', () => {
    const code = 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED';
    const failure = Object.assign(new oidc.ClientError('unexpected'), { code });
    expect(failureKind(failure)).toBe('invalid-token-response');
    expect(failureKind(new oidc.ClientError('unexpected'))).toBe('sign-in');
    expect(signInProblem(failure)).toMatchObject({ slug: 'dependency-failed' });
  });

  it.each<[() => Response | Promise<Response>]>([
    [() => json(401, { error: 'invalid_client' })],
    [() => Promise.reject(new DOMException('late', 'TimeoutError'))],
  ])('keeps its cause for the log', async (respond) => {
    const failure = await redeem({ respond }).catch((error: unknown) => error);
    expect((signInProblem(failure) as Problem).cause).toBe(failure);
  });

  it('in the callback names the part of the request that is wrong', async () => {
    const failure = await redeem({ query: { state: 'another' } }).catch((error: unknown) => error);
    expect(signInProblem(failure)).toMatchObject({ errors: [{ pointer: '/query' }] });
  });
});

describe('an error of the authorization response', () => {
  it('is found by its code, and not counted as a failure of the token endpoint', async () => {
    const query = { state: 'the state', iss: issuer, error: 'access_denied', code: '' };
    const failure = await redeem({ query }).catch((error: unknown) => error);
    expect(authorizationError(failure)).toBe('access_denied');
    expect([failureKind(failure), sent, counted]).toEqual([undefined, [], []]);
    expect(authorizationError(new Error('access_denied'))).toBeUndefined();
  });

  it.each([
    ['access_denied', 'refused'],
    ['login_required', 'refused'],
    ['interaction_required', 'refused'],
    ['consent_required', 'refused'],
    ['account_selection_required', 'refused'],
    ['temporarily_unavailable', 'unavailable'],
    ['authentication_expired', 'expired'],
    ['server_error', 'failed'],
    ['', 'failed'],
  ])('%s counts as %s', (error, verdict) => {
    expect(judgeError(error)).toBe(verdict);
  });

  it.each([
    ['temporarily_unavailable', 'expired'],
    ['server_error', 'failed'],
    ['access_denied', 'refused'],
  ])('%s with the description authentication_expired counts as %s', (error, verdict) => {
    expect(judgeError(error, 'authentication_expired')).toBe(verdict);
  });
});

describe('an error response', () => {
  it.each<[() => Response, object | undefined]>([
    [() => json(400, { error: 'invalid_grant' }), { error: 'invalid_grant', status: 400 }],
    [() => json(401, { error: 'invalid_client' }), { error: 'invalid_client', status: 401 }],
    [() => json(400, { error: 'A Secret' }), { error: 'other', status: 400 }],
    [() => json(401, {}, { 'www-authenticate': 'Basic realm="x"' }), { error: 'challenge', status: 401 }],
    [() => new Response('', { status: 500 }), undefined],
  ])('of the token endpoint has its error code and its status in the log', async (respond, logged) => {
    expect(errorResponse(await redeem({ respond }).catch((error: unknown) => error))).toEqual(logged);
  });
});
