// Routes for logout by the person (a link that may redirect to the identity provider) and by the identity provider
// (OpenID Connect Back-Channel Logout 1.0). A logout discards the tokens without revoking them. Revoking a refresh
// token would make Keycloak end the single sign-on session, which must end only if the client's `keycloakLogout` is
// true.
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { Tenants } from '../../service/auth/identity.ts';
import { readBodyBytes, smallBody } from '../../service/http/body-bytes.ts';
import { networkOf } from '../../service/http/client-address.ts';
import { anonymous, type Guard, type PlainGuard, type Route, route } from '../../service/http/http-app.ts';
import { type LocalRateLimiter, rateLimit } from '../../service/limits/rate-limit.ts';
import type { Logger } from '../../service/operations/log.ts';
import { dropAudit, noteAudit } from '../../service/operations/request-audit.ts';
import type { ClientCatalog } from '../clients/catalog.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import { failuresAsPages, pageLanguage } from '../pages/failure-pages.ts';
import { clearCsrfCookie } from '../sessions/cookies.ts';
import { notPrefetched } from '../sessions/guards.ts';
import type { FoundSession, Session } from '../sessions/session.ts';
import { noteSession } from '../sessions/session-audit.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { endBrowserSession } from '../sign-in/browser-session.ts';
import type { RelyingParty } from '../sign-in/relying-party.ts';
import { clientParams, logoutQuery } from '../sign-in/schema.ts';
import type { Logouts } from './logout-metrics.ts';
import { LogoutRefusal, type LogoutToken, type VerifyLogoutToken } from './logout-token.ts';
import type { ProviderLogouts } from './provider-logouts.ts';

declare global {
  namespace Express {
    interface Locals {
      logoutToken?: LogoutToken;
    }
  }
}

export interface LogoutOptions {
  tenants: Pick<Tenants, 'byId'>;
  catalog: Pick<ClientCatalog, 'find'>;
  registrations: Pick<RegistrationStore, 'find'>;
  relyingParty: Pick<RelyingParty, 'endSessionUrl'>;
  sessions: Sessions;
  providerLogouts: ProviderLogouts;
  logouts: Logouts;
  verifyLogoutToken: VerifyLogoutToken;
  /** Guard that sets `request.session`. */
  browserSession: Guard;
  /** Guard that rejects requests for content that pages of other sites embed. */
  notEmbedded: Guard;
  /** Limits the sign-outs of one address. Counts nothing else, so that a sign-out is seldom refused. */
  signOutLimit: Guard;
  /** Limits the invalid logout tokens of one address. */
  invalidLogoutTokens: PlainGuard;
  /** Limits the valid logout tokens for one tenant from one address. */
  validLogoutTokens: LocalRateLimiter;
  log: Logger;
}

export function logoutRoute(options: LogoutOptions): Route {
  const { notEmbedded, signOutLimit, browserSession } = options;
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/logout',
    audit: 'session.sign-out',
    operationId: 'signOut',
    getHasEffects: true,
    summary: "Ends the session, and the identity provider's if the client asks for it",
    description: failuresAsPages,
    guards: [anonymous, notPrefetched, notEmbedded, signOutLimit, browserSession],
    params: clientParams,
    query: logoutQuery,
    headers: pageLanguage,
    responses: {
      302: { description: 'To the root of the site, to returnTo, or to the identity provider' },
      400: { description: 'returnTo is not a path on the same origin' },
      503: { description: 'The session store cannot be reached' },
    },
    async handle({ query }, request, response) {
      const { signedIn } = request.session;
      const found = signedIn && (await options.sessions.read(signedIn.handle));
      if (signedIn) noteSession(response, signedIn);
      else dropAudit(response);
      if (signedIn && (await options.sessions.end(signedIn))) options.logouts.count('person');
      await endBrowserSession(request, response, options.sessions.cookie.name);
      clearCsrfCookie(response, request.secure);
      const onward = found && (await providerLogoutUrl(options, found, request));
      response.redirect(302, onward ?? query.returnTo ?? '/');
    },
  });
}

/**
 * Returns the URL that logs the person out at the identity provider. Returns undefined if the session at the identity
 * provider should continue. Never throws, because the token handler has already ended its own session.
 */
async function providerLogoutUrl(options: LogoutOptions, { session, tokens }: FoundSession, request: Request) {
  // A link or an image on another site must not end the single sign-on session.
  if (request.headers['sec-fetch-site'] === 'cross-site') return undefined;
  const { idToken } = tokens;
  if (idToken === undefined || !session.site) return undefined;
  try {
    const client = await clientOf(options, session);
    if (!client?.keycloakLogout) return undefined;
    const registration = await options.registrations
      .find(session.tenantId, session.clientId)
      .catch((error: unknown) => {
        options.log.warn({ err: error, session: session.handle }, 'registration not read for a logout');
        // The client is rarely registered again during a session, and the person must not stay signed in unnoticed.
        return session;
      });
    // If the tenant now has another realm, the identity provider of that realm does not know the session, and must not
    // get the session's ID token.
    if (registration?.realm !== session.realm) return undefined;
    // If the client was registered again, the identity provider no longer knows the ID token's audience. Without the ID
    // token, the identity provider asks the person to confirm the logout.
    const isSame = registration.oidcClientId === session.oidcClientId;
    const hint = { returnTo: `${session.site}/`, ...(isSame && { idToken }) };
    return (await options.relyingParty.endSessionUrl(registration, hint))?.href;
  } catch (error) {
    options.log.warn({ err: error, session: session.handle }, 'logout at the identity provider failed');
    return undefined;
  }
}

/**
 * Returns the client's present setting, or the one at the sign-in if the platform fails, because the person must not
 * stay signed in unnoticed. Returns undefined if the client or its tenant does not exist any more.
 */
async function clientOf({ tenants, catalog, log }: LogoutOptions, session: Session) {
  try {
    const tenant = await tenants.byId(session.tenantId);
    return tenant && (await catalog.find(tenant, session.clientId));
  } catch (error) {
    log.warn({ err: error, session: session.handle }, 'client not read for a logout');
    return session;
  }
}

/** The body that OpenID Connect Back-Channel Logout 1.0, section 2.8, defines. */
const refusal = z.object({ error: z.literal('invalid_request'), error_description: z.string() });

export function backchannelRoute(options: LogoutOptions): Route {
  return route({
    method: 'post',
    path: '/token-handler/v1/clients/:clientId/backchannel-logout',
    audit: 'session.end-by-provider',
    operationId: 'backchannelLogout',
    summary: 'Ends the sessions that a logout token of the identity provider names',
    guards: [anonymous, logoutTokenLimits(options)],
    params: clientParams,
    bodyType: 'application/x-www-form-urlencoded',
    streamedBody: z.object({ logout_token: z.string() }),
    responses: {
      200: { description: 'The sessions have ended, or there were none' },
      400: { description: 'The logout token is invalid', schema: refusal },
      429: { description: 'Too many logout tokens from this address: invalid ones, or valid ones of the tenant' },
      503: { description: 'The session store, the database or the keys of the identity provider are unavailable' },
    },
    async handle({ params: { clientId } }, _request, response) {
      try {
        const logout = await logoutTokenOf(response).logoutOf(clientId);
        noteAudit(response, { isProvider: true, tenant: logout.tenantId });
        const ended = await options.providerLogouts.end(logout);
        if (ended === 'used') throw new LogoutRefusal('the token was used before');
        if (ended === 'other algorithm') throw new LogoutRefusal('ID tokens are signed with another algorithm');
        options.logouts.count('back-channel', ended);
        options.log.info({ tenant: logout.tenantId, client: clientId, ended }, 'logout by the identity provider');
        response.status(200).end();
      } catch (error) {
        if (!(error instanceof LogoutRefusal)) throw error;
        options.log.warn({ client: clientId, err: error }, 'logout token refused');
        response.status(400).json({ error: 'invalid_request', error_description: 'The logout token is invalid.' });
      }
    },
  });
}

/**
 * Returns a guard that verifies the logout token in the body, and limits the number of tokens. Each client address has
 * a limit for invalid tokens. Each pair of tenant and address has a limit for valid tokens. Tenants share no limit,
 * because they may share an identity provider. Addresses share no limit, so that another recipient of a valid token
 * cannot use up the tenant's limit by sending the token repeatedly.
 */
function logoutTokenLimits({ verifyLogoutToken, invalidLogoutTokens, validLogoutTokens }: LogoutOptions): Guard {
  const valid = rateLimit(
    validLogoutTokens,
    ({ locals }) => `${locals.logoutToken?.tenantId}\0${networkOf(locals.forwarded.address)}`,
  );
  return {
    name: 'logoutTokenLimits',
    async check(request, response) {
      try {
        response.locals.logoutToken = await verifyLogoutToken(await readLogoutToken(request));
        valid.check(request, response);
      } catch (error) {
        if (!(error instanceof LogoutRefusal)) throw error;
        await invalidLogoutTokens.check(request, response);
        // Leaves the response to the route's handler, which sends refusals in the format of the specification.
        response.locals.logoutToken = { tenantId: '', logoutOf: () => Promise.reject(error) };
      }
    },
  };
}

/**
 * Returns the token that `logoutTokenLimits` has verified. If the token was refused, `logoutOf` of the result rejects.
 */
function logoutTokenOf({ locals }: Response): LogoutToken {
  if (!locals.logoutToken) throw new Error('the route has no guard that verifies the logout token');
  return locals.logoutToken;
}

async function readLogoutToken(request: Request): Promise<string> {
  if (!/^application\/x-www-form-urlencoded *(?:;|$)/i.test(request.headers['content-type'] ?? ''))
    throw new LogoutRefusal('the body is not a form');
  // A logout token has 1 to 2 KiB. The limit is low, because anybody may send a body, which needs no slot.
  const form = new URLSearchParams((await readBodyBytes(request, smallBody)).toString('utf8'));
  const [token, second] = form.getAll('logout_token');
  if (token === undefined || second !== undefined)
    throw new LogoutRefusal('the form must have exactly one logout_token');
  return token;
}
