// Routes for sign-in and its callback. They start an attempt at the identity provider, and open a session from its
// response. They never redirect the browser to another origin just because a request names that origin.
import type { Request, Response } from 'express';
import type { Tenant } from '../../service/auth/identity.ts';
import { anonymous, type Guard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { queryOf } from '../../service/http/request-context.ts';
import { dropAudit, noteAudit } from '../../service/operations/request-audit.ts';
import { type ClientCatalog, requireClient } from '../clients/catalog.ts';
import type { Client } from '../clients/client.ts';
import type { Registration } from '../clients/registration.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import type { ProviderLogouts } from '../logout/provider-logouts.ts';
import { failuresAsPages, noteSignIn, pageLanguage } from '../pages/failure-pages.ts';
import { findTenant, notPrefetched, type TenantLookup, tenantHeader } from '../sessions/guards.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { AttemptCookies } from './attempt-cookies.ts';
import { type Attempt, type Attempts, attemptId, type SignInRequest } from './attempts.ts';
import { authorizationError, errorCode, errorResponse, judgeError, signInProblem, unknownState } from './failures.ts';
import type { createSessionOpener } from './open-session.ts';
import type { RelyingParty } from './relying-party.ts';
import { authQuery, callbackQuery, clientParams, signInResponses } from './schema.ts';
import { addressProblem, callbackUrlProblem, fallbackCallbackUrl, landingUrl, refusalUrl } from './sign-in.ts';
import type { SignInOutcomes } from './sign-in-outcomes.ts';

export interface SignInOptions {
  tenants: TenantLookup;
  /** Name of the request header in which the reverse proxy of a domain names the tenant of that domain. */
  tenantHeader: string;
  catalog: Pick<ClientCatalog, 'find'>;
  registrations: Pick<RegistrationStore, 'find'>;
  attempts: Attempts;
  attemptCookies: AttemptCookies;
  relyingParty: RelyingParty;
  sessions: Pick<Sessions, 'read'>;
  openSession: ReturnType<typeof createSessionOpener>;
  outcomes: SignInOutcomes;
  /** Guard that sets `request.session`. */
  browserSession: Guard;
  /** Guard that rejects requests for content that pages of other sites embed. */
  notEmbedded: Guard;
  signInLimit: Guard;
  /** Guard that rejects requests over http if the session cookie requires https. */
  cookieScheme: Guard;
  providerLogouts: Pick<ProviderLogouts, 'time'>;
}

export function authRoute(options: SignInOptions): Route {
  const { notEmbedded, signInLimit, cookieScheme } = options;
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/auth',
    audit: { unaudited: 'Nobody is known yet; the callback is audited.' },
    operationId: 'signIn',
    getHasEffects: true,
    summary: 'Starts a sign-in at the identity provider',
    description: `Sets a cookie for this attempt, for an hour. The person has ten minutes; after that, the sign-in starts again once. A browser may have 20 attempts at a time. ${failuresAsPages}`,
    guards: [anonymous, notPrefetched, notEmbedded, signInLimit, cookieScheme],
    params: clientParams,
    query: authQuery,
    headers: pageLanguage,
    responses: signInResponses,
    async handle({ params, query }, request, response) {
      const named = tenantHeader(request, options.tenantHeader) ?? query.tenant;
      if (!named) throw invalidRequest([{ pointer: '/query/tenant', detail: 'is required' }]);
      const tenant = requireTenant(await findTenant(options.tenants, named));
      noteSignIn(response, { tenant: tenant.name });
      const client = await requireClient(options.catalog, tenant, params.clientId);
      noteSignIn(response, { client: client.name, checked: { tenantId: tenant.id, clientId: client.id } });
      const { tenant: _, callbackUrl: given = fallbackOf(client, request), returnTo, ...asked } = query;
      const problem = query.callbackUrl === undefined ? addressProblem(given) : callbackUrlProblem(given, client.id);
      if (problem !== undefined) throw invalidRequest([{ pointer: '/query/callbackUrl', detail: problem }]);
      const registration = await requireRegistration(options, tenant, client);
      // The `redirect_uri` must be identical in the token request, which sends a normalised URL (RFC 6749 section
      // 4.1.3). Registered redirect URIs are normalised too.
      const { href: callbackUrl } = new URL(given);
      const signIn = { tenantId: tenant.id, clientId: client.id, callbackUrl, returnTo, ...askedOf(asked) };
      response.redirect(302, await begin(options, { request, response, client, registration }, signIn));
    },
  });
}

/** Omits an empty object, which would lengthen the attempt's cookie. */
const askedOf = (asked: NonNullable<SignInRequest['asked']>) => (Object.keys(asked).length > 0 ? { asked } : {});

/** Deprecated. If a request has no callbackUrl, derives it from the client's `authCallbackUrl`. */
function fallbackOf(client: Client, request: Request): string {
  const { host } = request;
  if (client.authCallbackUrl === undefined || host === undefined)
    throw invalidRequest([{ pointer: '/query/callbackUrl', detail: 'is required' }]);
  return fallbackCallbackUrl(client.authCallbackUrl, request.protocol, host);
}

interface Beginning {
  request: Request;
  response: Response;
  client: Client;
  registration: Registration;
}

/** Starts an attempt. Returns the identity provider's address, to which the browser is redirected. */
async function begin(options: SignInOptions, beginning: Beginning, signIn: SignInRequest): Promise<string> {
  const { request, response, client, registration } = beginning;
  const begun = options.attempts.begin(signIn);
  const { state, nonce, codeVerifier } = begun;
  const { scope, idpHint } = client;
  const asked = { ...signIn.asked, prompt: promptOf(client, signIn) };
  const authorization = { redirectUri: signIn.callbackUrl, scope, idpHint, asked, state, nonce, codeVerifier };
  const url = await options.relyingParty.authorizationUrl(registration, authorization).catch((error: unknown) => {
    throw signInProblem(error);
  });
  options.attemptCookies.issue(begun, request, response);
  return url.href;
}

/** A request may override the client's prompt. A person could change it in the authorization URL anyway. */
const promptOf = (client: Client, { asked }: SignInRequest) => asked?.prompt ?? client.prompt;

export function callbackRoute(options: SignInOptions): Route {
  const { notEmbedded, signInLimit, browserSession } = options;
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/callback',
    audit: 'session.sign-in',
    operationId: 'receiveSignIn',
    getHasEffects: true,
    summary: 'Receives the response of the identity provider and opens the session',
    description: `Lands at \`returnTo\`, the successRedirectUrl of the client or the root of the site. If the person cancels, it lands at the failureRedirectUrl or the root, with \`error=access_denied\` in the query. After \`prompt=none\` it lands at \`returnTo\`, the failureRedirectUrl or the root, with \`error=login_required\`, \`interaction_required\`, \`consent_required\` or \`account_selection_required\`. ${failuresAsPages}`,
    guards: [anonymous, notPrefetched, notEmbedded, signInLimit, browserSession],
    params: clientParams,
    query: callbackQuery,
    headers: pageLanguage,
    responses: signInResponses,
    async handle({ params, query: { state, error, iss } }, request, response) {
      const landed = await landingAgain(options, request, attemptId(state), params.clientId);
      if (landed !== undefined) {
        dropAudit(response);
        return response.redirect(302, landed);
      }
      const attempt = options.attemptCookies.find(request, state);
      if (attempt?.signIn.clientId !== params.clientId) throw unknownState();
      noteAudit(response, { tenant: attempt.signIn.tenantId });
      await checkDomain(options, request, attempt.signIn);
      noteSignIn(response, { attempt: attempt.signIn });
      const tenant = requireTenant(await options.tenants.byId(attempt.signIn.tenantId));
      noteSignIn(response, { tenant: tenant.name });
      const client = await requireClient(options.catalog, tenant, params.clientId);
      noteSignIn(response, { client: client.name, checked: { tenantId: tenant.id, clientId: client.id } });
      const registration = await requireRegistration(options, tenant, client);
      const begun = await options.providerLogouts.time();
      // Claims the attempt last, so that the browser can load the callback again after another service has failed.
      const isFirst = attempt.isLate || (await options.attempts.claim(attempt));
      options.attemptCookies.remove(attempt, request, response);
      if (!isFirst) throw unknownState();
      const callback = { attempt, tenant, client, registration, error, iss, begun, request, response };
      const onward = await finish(options, callback);
      // If no session was opened, the identity provider refused the sign-in, or the sign-in starts again.
      if (!response.locals.signedIn) noteAudit(response, { outcome: 'refused' });
      response.redirect(302, onward);
    },
  });
}

/** Returns the landing page if the browser has already completed this callback and is signed in, else undefined. */
async function landingAgain(options: SignInOptions, { session }: Request, attempt: string, clientId: string) {
  const { signedIn, landings = [] } = session;
  const landing = landings.find((one) => one.attempt === attempt);
  if (!landing || signedIn?.clientId !== clientId) return undefined;
  return (await options.sessions.read(signedIn.handle)) && landing.url;
}

interface Callback extends Beginning {
  attempt: Attempt;
  tenant: Tenant;
  error: string | undefined;
  /** The issuer that the response names. A wrong issuer is rejected. Some identity providers omit `iss` from errors. */
  iss: string | undefined;
  /** A time before the code is redeemed, by `providerLogouts.time`. */
  begun: number;
}

/** Completes the sign-in, or starts it again. Returns the address to which the browser is redirected. */
async function finish(options: SignInOptions, callback: Callback): Promise<string> {
  const { attempt, tenant, client, registration, error, iss, request, response } = callback;
  const { callbackUrl, returnTo } = attempt.signIn;
  // A late cancel grants nothing, and the person does not want to see the sign-in form again.
  if (attempt.isLate && error !== 'access_denied') return startAgain(options, callback);
  if (error !== undefined && iss === undefined) return handleError(options, callback, error);
  const url = new URL(callbackUrl);
  url.search = new URL(request.originalUrl, url.origin).search;
  const { nonce, codeVerifier, earliestAuthTime } = attempt;
  const checks = { state: url.searchParams.get('state') ?? '', nonce, codeVerifier, earliestAuthTime };
  const { begun } = callback;
  const redeemed = await options.relyingParty.redeem(registration, url, checks).catch((failure: unknown) => {
    // openid-client has already checked the issuer, which it does even for an error response (RFC 9207 section 2.4).
    const refusal = authorizationError(failure);
    if (refusal !== undefined) return refusal;
    options.outcomes.providerError(attempt.signIn, errorResponse(failure));
    throw signInProblem(failure);
  });
  if (typeof redeemed === 'string') return handleError(options, callback, redeemed);
  const landing = { attempt: attempt.id, url: landingUrl(url.origin, returnTo ?? client.successRedirectUrl) };
  await options.openSession({ tenant, client, registration, callbackUrl, redeemed, begun, landing }, request, response);
  options.outcomes.succeeded({ tenantId: tenant.id, clientId: client.id });
  return landing.url;
}

/** Handles an error response. Returns the address of a page of the site, or of the identity provider to start again. */
function handleError(options: SignInOptions, callback: Callback, error: string): Promise<string> | string {
  const { attempt, client, request } = callback;
  const { callbackUrl, returnTo, restarted = false } = attempt.signIn;
  const verdict = judgeError(error, queryOf(request).error_description);
  if (verdict === 'expired' || (verdict === 'unavailable' && !restarted)) return startAgain(options, callback);
  if (verdict !== 'refused') {
    options.outcomes.providerError(attempt.signIn, { error: errorCode(error) });
    throw new Problem('dependency-failed', 'The identity provider could not sign you in. Try again later.');
  }
  options.outcomes.cancelled();
  // With prompt=none, the page that requested the sign-in gets the error (OpenID Connect Core 1.0, section 3.1.2.6).
  const asker = promptOf(client, attempt.signIn) === 'none' ? returnTo : undefined;
  return refusalUrl(new URL(callbackUrl).origin, asker ?? client.failureRedirectUrl, error);
}

/** Starts another attempt for the same sign-in. Throws at the second restart, to avoid a redirect loop. */
function startAgain(options: SignInOptions, callback: Callback): Promise<string> {
  const { signIn } = callback.attempt;
  if (signIn.restarted) throw new Problem('invalid-request', 'The sign-in took too long. Sign in again.');
  return begin(options, callback, { ...signIn, restarted: true });
}

/** If the tenant header names the tenant of the domain, rejects the callback of another tenant's sign-in. */
async function checkDomain(options: SignInOptions, request: Request, signIn: SignInRequest): Promise<void> {
  const named = tenantHeader(request, options.tenantHeader);
  if (named === undefined || (await findTenant(options.tenants, named))?.id === signIn.tenantId) return;
  throw invalidRequest([{ pointer: `/headers/${options.tenantHeader}`, detail: 'names another tenant' }]);
}

function requireTenant(tenant: Tenant | undefined): Tenant {
  if (!tenant) throw new Problem('not-found', 'There is no such tenant.');
  return tenant;
}

async function requireRegistration(options: SignInOptions, tenant: Tenant, client: Client): Promise<Registration> {
  const registration = await options.registrations.find(tenant.id, client.id);
  if (registration?.realm !== tenant.realm)
    throw new Problem('registration-required', 'The client is not registered. An administrator has to register it.');
  return registration;
}
