// Sign-in and its callback: starts an attempt at the identity provider, and turns its response into a session. Never
// redirects a browser to another origin that a request names.
import type { Request, Response } from 'express';
import type { Tenant } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { anonymous, type Guard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import type { ClientCatalog } from '../clients/catalog.ts';
import type { Client } from '../clients/client.ts';
import type { Registration } from '../clients/registration.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import { findTenant, type TenantLookup, tenantHeader } from '../sessions/request-tenant.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { Attempts, Place, TakenAttempt } from './attempts.ts';
import { saveSession } from './browser-session.ts';
import { answeredError, judgeError, signInProblem } from './failures.ts';
import type { createSessionOpener } from './open-session.ts';
import type { RelyingParty } from './relying-party.ts';
import { authQuery, callbackQuery, clientParams } from './schema.ts';
import { addressProblem, callbackUrlProblem, fallbackCallbackUrl, landingUrl, refusalUrl } from './sign-in.ts';

export interface SignInOptions {
  tenants: TenantLookup;
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
  404: { description: 'Unknown tenant or client' },
  409: { description: 'The client is not registered (registration-required)' },
  429: { description: 'Too many requests from this address', headers: { 'Retry-After': 'Seconds' } },
  502: { description: 'The identity provider or the configuration service failed' },
  503: { description: 'The session store or the database cannot be reached' },
};

export function authRoute(parts: SignInOptions): Route {
  const { signInLimit, browserSession } = parts;
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/auth',
    summary: 'Starts a sign-in at the identity provider',
    guards: [anonymous, signInLimit, browserSession],
    params: clientParams,
    query: authQuery,
    answers,
    async handle({ params, query }, request, response) {
      const tenant = await requestTenant(parts, request, query.tenant);
      const client = await requireClient(parts, tenant, params.clientId);
      const { callbackUrl = fallbackOf(client, request) } = query;
      const problem =
        query.callbackUrl === undefined ? addressProblem(callbackUrl) : callbackUrlProblem(callbackUrl, client.id);
      if (problem !== undefined) throw invalidRequest([{ pointer: '/query/callbackUrl', detail: problem }]);
      const registration = await requireRegistration(parts, tenant, client);
      const { returnTo } = query;
      const place = {
        tenantId: tenant.id,
        clientId: client.id,
        callbackUrl,
        ...(returnTo !== undefined && { returnTo }),
      };
      response.redirect(302, await begin(parts, { request, client, registration, place }));
    },
  });
}

/** Deprecated: a client with `authCallbackUrl` may leave callbackUrl out. */
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
  place: Place;
}

/** Returns the address to redirect the browser to. */
async function begin(parts: SignInOptions, { request, client, registration, place }: Beginning): Promise<string> {
  const browser = request.session.attempts ?? parts.attempts.nameBrowser();
  const begun = await parts.attempts.begin(browser, place);
  const { scope, prompt, idpHint } = client;
  const asked = { redirectUri: place.callbackUrl, scope, prompt, idpHint, ...begun };
  const url = await parts.relyingParty.authorizationUrl(registration, asked).catch((error: unknown) => {
    throw signInProblem(error);
  });
  request.session.attempts = browser;
  await saveSession(request);
  return url.href;
}

export function callbackRoute(parts: SignInOptions): Route {
  const { signInLimit, browserSession } = parts;
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/callback',
    summary: 'Receives the response of the identity provider and opens the session',
    guards: [anonymous, signInLimit, browserSession],
    params: clientParams,
    query: callbackQuery,
    answers,
    async handle({ params, query }, request, response) {
      const { attempts } = request.session;
      const taken = attempts === undefined ? undefined : await parts.attempts.take(attempts, query.state);
      if (!taken || taken.place.clientId !== params.clientId) throw unknownState();
      await checkDomain(parts, request, taken.place);
      const tenant = await parts.tenants.byId(taken.place.tenantId);
      if (!tenant) throw new Problem('not-found', 'There is no such tenant.');
      const client = await requireClient(parts, tenant, taken.place.clientId);
      const registration = await requireRegistration(parts, tenant, client);
      const { error, iss } = query;
      response.redirect(302, await goOn(parts, { taken, tenant, client, registration, error, iss, request, response }));
    },
  });
}

interface Answered {
  taken: TakenAttempt;
  tenant: Tenant;
  client: Client;
  registration: Registration;
  error: string | undefined;
  /** Not every identity provider sends its issuer with an error. An error with another issuer is rejected. */
  iss: string | undefined;
  request: Request;
  response: Response;
}

/** Returns the address to redirect the browser to. */
async function goOn(parts: SignInOptions, answered: Answered): Promise<string> {
  const { taken, tenant, client, registration, error, iss, request, response } = answered;
  const { place } = taken;
  const site = new URL(place.callbackUrl).origin;
  const landing = landingUrl(site, { returnTo: place.returnTo, successRedirectUrl: client.successRedirectUrl });
  if (taken.kind === 'late') return startAgain(parts, answered);
  if (taken.kind === 'used') {
    // The page was reloaded. Its code is not redeemed a second time.
    if (await isSignedIn(parts, request, place)) return landing;
    throw unknownState();
  }
  if (error !== undefined && iss === undefined) return takeError(parts, answered, error);
  const url = new URL(place.callbackUrl);
  url.search = new URL(request.originalUrl, site).search;
  const checks = { state: url.searchParams.get('state') ?? '', ...taken.secrets };
  const begun = parts.clock().getTime();
  const redeemed = await parts.relyingParty.redeem(registration, url, checks).catch((failure: unknown) => {
    // The client checked the issuer, also of an error (RFC 9207 section 2.4).
    const refusal = answeredError(failure);
    if (refusal === undefined) throw signInProblem(failure);
    return refusal;
  });
  if (typeof redeemed === 'string') return takeError(parts, answered, redeemed);
  const { oidcClientId } = registration;
  const signedIn = { tenant, client, oidcClientId, callbackUrl: place.callbackUrl, redeemed, begun };
  await parts.openSession(signedIn, request, response);
  return landing;
}

/** Returns where an error of the identity provider leads: to the site, or to another attempt. */
function takeError(parts: SignInOptions, answered: Answered, error: string): Promise<string> | string {
  const { taken, client } = answered;
  const verdict = judgeError(error);
  if (verdict === 'passing') return startAgain(parts, answered);
  if (verdict === 'failed')
    throw new Problem('dependency-failed', 'The identity provider could not sign the person in.');
  return refusalUrl(new URL(taken.place.callbackUrl).origin, client.failureRedirectUrl, error);
}

/** Starts another attempt, once, to avoid a redirect loop. */
function startAgain(parts: SignInOptions, { taken, request, client, registration }: Answered): Promise<string> {
  const { place } = taken;
  if (place.restarted) throw new Problem('invalid-request', 'The sign-in took too long. Sign in again.');
  return begin(parts, { request, client, registration, place: { ...place, restarted: true } });
}

async function isSignedIn({ sessions }: SignInOptions, request: Request, place: Place): Promise<boolean> {
  const { signedIn } = request.session;
  if (signedIn?.tenantId !== place.tenantId || signedIn.clientId !== place.clientId) return false;
  return (await sessions.read(signedIn.handle)) !== undefined;
}

function unknownState(): Problem {
  return invalidRequest([{ pointer: '/query/state', detail: 'belongs to no sign-in that this browser started' }]);
}

async function requestTenant(parts: SignInOptions, request: Request, given: string | undefined): Promise<Tenant> {
  const named = tenantHeader(request, parts.tenantHeader) ?? given;
  if (!named) throw invalidRequest([{ pointer: '/query/tenant', detail: 'is required' }]);
  const tenant = await findTenant(parts.tenants, named);
  if (!tenant) throw new Problem('not-found', 'There is no such tenant.');
  return tenant;
}

/** Rejects the callback of another tenant's sign-in on a domain that is reserved for one tenant. */
async function checkDomain(parts: SignInOptions, request: Request, place: Place): Promise<void> {
  const named = tenantHeader(request, parts.tenantHeader);
  if (named === undefined || (await findTenant(parts.tenants, named))?.id === place.tenantId) return;
  throw invalidRequest([{ pointer: `/headers/${parts.tenantHeader}`, detail: 'names another tenant' }]);
}

async function requireClient({ catalog }: SignInOptions, tenant: Tenant, clientId: string): Promise<Client> {
  const client = await catalog.find(tenant, clientId);
  if (!client) throw new Problem('not-found', 'The tenant has no such client.');
  return client;
}

async function requireRegistration(parts: SignInOptions, tenant: Tenant, client: Client): Promise<Registration> {
  const registration = await parts.registrations.find(tenant.id, client.id);
  if (!registration) throw new Problem('registration-required', 'An administrator has to register the client first.');
  return registration;
}
