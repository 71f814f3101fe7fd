// Sign-in and its callback: begins an attempt at the access service, and turns its answer into a session. It never
// redirects a browser to another origin because a request says so.
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

export interface SignInParts {
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
  302: { description: 'Where the browser goes on', headers: { Location: 'Address' } },
  400: { description: 'A place in the request is not valid, or the browser has no such attempt' },
  404: { description: 'Unknown tenant or client' },
  409: { description: 'The client is not registered (registration-required)' },
  429: { description: 'Too many requests from this address', headers: { 'Retry-After': 'Seconds' } },
  502: { description: 'The access or configuration service failed' },
  503: { description: 'The session store or the database cannot be reached' },
};

export function authRoute(parts: SignInParts): Route {
  const { signInLimit, browserSession } = parts;
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/auth',
    summary: 'Starts a sign-in at the access service',
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

/** Answers where the browser has to go. */
async function begin(parts: SignInParts, { request, client, registration, place }: Beginning): Promise<string> {
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

export function callbackRoute(parts: SignInParts): Route {
  const { signInLimit, browserSession } = parts;
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/callback',
    summary: 'Takes the answer of the access service and opens the session',
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
  /** Not every access service names itself in an error; one that names another is not believed. */
  iss: string | undefined;
  request: Request;
  response: Response;
}

/** Answers where the browser has to go. */
async function goOn(parts: SignInParts, answered: Answered): Promise<string> {
  const { taken, tenant, client, registration, error, iss, request, response } = answered;
  const { place } = taken;
  const site = new URL(place.callbackUrl).origin;
  const landing = landingUrl(site, { returnTo: place.returnTo, successRedirectUrl: client.successRedirectUrl });
  if (taken.kind === 'late') return startAgain(parts, answered);
  if (taken.kind === 'used') {
    // A page that is loaded again. Its code is not redeemed a second time.
    if (await isSignedIn(parts, request, place)) return landing;
    throw unknownState();
  }
  if (error !== undefined && iss === undefined) return takeError(parts, answered, error);
  const url = new URL(place.callbackUrl);
  url.search = new URL(request.originalUrl, site).search;
  const checks = { state: url.searchParams.get('state') ?? '', ...taken.secrets };
  const begun = parts.clock().getTime();
  const redeemed = await parts.relyingParty.redeem(registration, url, checks).catch((failure: unknown) => {
    // Of the right issuer: the one of an error counts as well (RFC 9207 section 2.4).
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

/** Where an error of the access service leads: on to the site, or to another attempt. */
function takeError(parts: SignInParts, answered: Answered, error: string): Promise<string> | string {
  const { taken, client } = answered;
  const verdict = judgeError(error);
  if (verdict === 'passing') return startAgain(parts, answered);
  if (verdict === 'failed') throw new Problem('dependency-failed', 'The access service could not sign the person in.');
  return refusalUrl(new URL(taken.place.callbackUrl).origin, client.failureRedirectUrl, error);
}

/** Once, so that nobody goes round in circles. */
function startAgain(parts: SignInParts, { taken, request, client, registration }: Answered): Promise<string> {
  const { place } = taken;
  if (place.restarted) throw new Problem('invalid-request', 'The sign-in took too long. Sign in again.');
  return begin(parts, { request, client, registration, place: { ...place, restarted: true } });
}

async function isSignedIn({ sessions }: SignInParts, request: Request, place: Place): Promise<boolean> {
  const { signedIn } = request.session;
  if (signedIn?.tenantId !== place.tenantId || signedIn.clientId !== place.clientId) return false;
  return (await sessions.read(signedIn.handle)) !== undefined;
}

function unknownState(): Problem {
  return invalidRequest([{ pointer: '/query/state', detail: 'is of no sign-in that this browser began' }]);
}

async function requestTenant(parts: SignInParts, request: Request, given: string | undefined): Promise<Tenant> {
  const named = tenantHeader(request, parts.tenantHeader) ?? given;
  if (!named) throw invalidRequest([{ pointer: '/query/tenant', detail: 'is required' }]);
  const tenant = await findTenant(parts.tenants, named);
  if (!tenant) throw new Problem('not-found', 'There is no such tenant.');
  return tenant;
}

/** A domain that is kept to one tenant finishes no sign-in of another. */
async function checkDomain(parts: SignInParts, request: Request, place: Place): Promise<void> {
  const named = tenantHeader(request, parts.tenantHeader);
  if (named === undefined || (await findTenant(parts.tenants, named))?.id === place.tenantId) return;
  throw invalidRequest([{ pointer: `/headers/${parts.tenantHeader}`, detail: 'names another tenant' }]);
}

async function requireClient({ catalog }: SignInParts, tenant: Tenant, clientId: string): Promise<Client> {
  const client = await catalog.find(tenant, clientId);
  if (!client) throw new Problem('not-found', 'The tenant has no such client.');
  return client;
}

async function requireRegistration(parts: SignInParts, tenant: Tenant, client: Client): Promise<Registration> {
  const registration = await parts.registrations.find(tenant.id, client.id);
  if (!registration) throw new Problem('registration-required', 'An administrator has to register the client first.');
  return registration;
}
