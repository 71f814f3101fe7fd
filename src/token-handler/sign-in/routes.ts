// Routes for sign-in and its callback. They start an attempt at the identity provider, and open a session from the
// identity provider's response. They never redirect a browser to another origin that a request names.
import type { Request, Response } from 'express';
import type { Tenant } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { anonymous, type Guard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { type ClientCatalog, requireClient } from '../clients/catalog.ts';
import type { Client } from '../clients/client.ts';
import type { Registration } from '../clients/registration.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import { noteSignIn, pageLanguage } from '../pages/failure-pages.ts';
import { findTenant, type TenantLookup, tenantHeader } from '../sessions/guards.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { Attempts, SignInRequest, TakenAttempt } from './attempts.ts';
import { saveSession } from './browser-session.ts';
import { authorizationError, judgeError, signInProblem } from './failures.ts';
import type { createSessionOpener } from './open-session.ts';
import type { RelyingParty } from './relying-party.ts';
import { authQuery, callbackQuery, clientParams } from './schema.ts';
import { addressProblem, callbackUrlProblem, fallbackCallbackUrl, landingUrl, refusalUrl } from './sign-in.ts';

export interface SignInOptions {
  tenants: TenantLookup;
  /** Name of the tenant header. */
  tenantHeader: string;
  catalog: Pick<ClientCatalog, 'find'>;
  registrations: Pick<RegistrationStore, 'find'>;
  attempts: Attempts;
  relyingParty: RelyingParty;
  sessions: Pick<Sessions, 'read'>;
  openSession: ReturnType<typeof createSessionOpener>;
  /** Sets `request.session`. */
  browserSession: Guard;
  signInLimit: Guard;
  clock: Clock;
}

const answers = {
  302: { description: 'Redirects the browser', headers: { Location: 'Address' } },
  400: { description: 'The request is not valid, or this browser did not start the sign-in' },
  401: { description: 'The identity provider has ended the sign-in meanwhile' },
  404: { description: 'Unknown tenant or client' },
  409: { description: 'The client is not registered (registration-required)' },
  429: { description: 'Too many requests from this address', headers: { 'Retry-After': 'Seconds' } },
  502: { description: 'The identity provider or the configuration service failed' },
  503: { description: 'The session store or the database cannot be reached' },
  504: { description: 'The identity provider or the configuration service did not respond in time' },
};

export function authRoute(options: SignInOptions): Route {
  const { signInLimit, browserSession } = options;
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/auth',
    summary: 'Starts a sign-in at the identity provider',
    guards: [anonymous, signInLimit, browserSession],
    params: clientParams,
    query: authQuery,
    headers: pageLanguage,
    answers,
    async handle({ params, query }, request, response) {
      const named = tenantHeader(request, options.tenantHeader) ?? query.tenant;
      if (!named) throw invalidRequest([{ pointer: '/query/tenant', detail: 'is required' }]);
      const tenant = requireTenant(await findTenant(options.tenants, named));
      noteSignIn(response, { tenant: tenant.name });
      const client = await requireClient(options.catalog, tenant, params.clientId);
      noteSignIn(response, { client: client.name });
      const { callbackUrl = fallbackOf(client, request), returnTo } = query;
      const problem =
        query.callbackUrl === undefined ? addressProblem(callbackUrl) : callbackUrlProblem(callbackUrl, client.id);
      if (problem !== undefined) throw invalidRequest([{ pointer: '/query/callbackUrl', detail: problem }]);
      const registration = await requireRegistration(options, tenant, client);
      const signIn = { tenantId: tenant.id, clientId: client.id, callbackUrl, returnTo };
      response.redirect(302, await begin(options, { request, client, registration }, signIn));
    },
  });
}

/** Deprecated: returns the callbackUrl for a client with `authCallbackUrl` if the request has none. */
function fallbackOf(client: Client, request: Request): string {
  const { host } = request;
  if (client.authCallbackUrl === undefined || host === undefined)
    throw invalidRequest([{ pointer: '/query/callbackUrl', detail: 'is required' }]);
  return fallbackCallbackUrl(client.authCallbackUrl, request.protocol, host);
}

interface Beginning {
  request: Request;
  client: Client;
  registration: Registration;
}

/** Returns the address to redirect the browser to. */
async function begin(
  options: SignInOptions,
  { request, client, registration }: Beginning,
  signIn: SignInRequest,
): Promise<string> {
  const browser = request.session.attempts ?? options.attempts.nameBrowser();
  const begun = await options.attempts.begin(browser, signIn);
  const { scope, prompt, idpHint } = client;
  const asked = { redirectUri: signIn.callbackUrl, scope, prompt, idpHint, ...begun };
  const url = await options.relyingParty.authorizationUrl(registration, asked).catch((error: unknown) => {
    throw signInProblem(error);
  });
  request.session.attempts = browser;
  await saveSession(request);
  return url.href;
}

export function callbackRoute(options: SignInOptions): Route {
  const { signInLimit, browserSession } = options;
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/callback',
    summary: 'Receives the response of the identity provider and opens the session',
    guards: [anonymous, signInLimit, browserSession],
    params: clientParams,
    query: callbackQuery,
    headers: pageLanguage,
    answers,
    async handle({ params, query: { state, error, iss } }, request, response) {
      const { attempts } = request.session;
      const taken = attempts === undefined ? undefined : await options.attempts.take(attempts, state);
      if (!taken || taken.signIn.clientId !== params.clientId) throw unknownState();
      await checkDomain(options, request, taken.signIn);
      noteSignIn(response, { attempt: taken.signIn });
      const tenant = requireTenant(await options.tenants.byId(taken.signIn.tenantId));
      noteSignIn(response, { tenant: tenant.name });
      const client = await requireClient(options.catalog, tenant, params.clientId);
      noteSignIn(response, { client: client.name });
      const registration = await requireRegistration(options, tenant, client);
      const callback = { taken, tenant, client, registration, error, iss, request, response };
      response.redirect(302, await finish(options, callback));
    },
  });
}

interface Callback extends Beginning {
  taken: TakenAttempt;
  tenant: Tenant;
  error: string | undefined;
  /** Issuer of the response. Some identity providers omit it from errors. A wrong issuer is rejected. */
  iss: string | undefined;
  response: Response;
}

/** Returns the address to redirect the browser to. */
async function finish(options: SignInOptions, callback: Callback): Promise<string> {
  const { taken, tenant, client, registration, error, iss, request, response } = callback;
  const { signIn } = taken;
  const { callbackUrl, returnTo } = signIn;
  const site = new URL(callbackUrl).origin;
  const landing = landingUrl(site, returnTo ?? client.successRedirectUrl);
  if (taken.kind === 'late') return startAgain(options, callback);
  if (taken.kind === 'used') {
    // The browser reloaded the callback. The code is not redeemed a second time.
    if (await isSignedIn(options, request, signIn)) return landing;
    throw unknownState();
  }
  if (error !== undefined && iss === undefined) return handleError(options, callback, error);
  const url = new URL(callbackUrl);
  url.search = new URL(request.originalUrl, site).search;
  const checks = { state: url.searchParams.get('state') ?? '', ...taken.secrets };
  const begun = options.clock().getTime();
  const redeemed = await options.relyingParty.redeem(registration, url, checks).catch((failure: unknown) => {
    // openid-client has already checked the issuer, also for errors (RFC 9207 section 2.4).
    const refusal = authorizationError(failure);
    if (refusal === undefined) throw signInProblem(failure);
    return refusal;
  });
  if (typeof redeemed === 'string') return handleError(options, callback, redeemed);
  const { oidcClientId } = registration;
  await options.openSession({ tenant, client, oidcClientId, callbackUrl, redeemed, begun }, request, response);
  return landing;
}

/** Returns the address after an error of the identity provider: a page of the site, or the start of a new attempt. */
function handleError(options: SignInOptions, callback: Callback, error: string): Promise<string> | string {
  const { taken, client } = callback;
  const verdict = judgeError(error);
  if (verdict === 'passing') return startAgain(options, callback);
  if (verdict === 'failed')
    throw new Problem('dependency-failed', 'The identity provider could not sign you in. Try again later.');
  return refusalUrl(new URL(taken.signIn.callbackUrl).origin, client.failureRedirectUrl, error);
}

/** Starts another attempt, but only once, to avoid a redirect loop. */
function startAgain(options: SignInOptions, callback: Callback): Promise<string> {
  const { signIn } = callback.taken;
  if (signIn.restarted) throw new Problem('invalid-request', 'The sign-in took too long. Sign in again.');
  return begin(options, callback, { ...signIn, restarted: true });
}

async function isSignedIn({ sessions }: SignInOptions, request: Request, signIn: SignInRequest): Promise<boolean> {
  const { signedIn } = request.session;
  if (signedIn?.tenantId !== signIn.tenantId || signedIn.clientId !== signIn.clientId) return false;
  return (await sessions.read(signedIn.handle)) !== undefined;
}

function unknownState(): Problem {
  const detail = 'does not belong to a sign-in that this browser started. Sign in again';
  return invalidRequest([{ pointer: '/query/state', detail }]);
}

/** Rejects the callback of another tenant's sign-in if the tenant header reserves the domain for one tenant. */
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
  if (!registration)
    throw new Problem('registration-required', 'The client is not registered. An administrator has to register it.');
  return registration;
}
