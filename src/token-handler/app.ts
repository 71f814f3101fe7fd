// The token handler's route table and request listener. Every route has a path under /token-handler/v1, and another
// under /token-handler for frontends whose reverse proxy does not rewrite paths. Requests for targets bypass Express.
import type { RequestListener } from 'node:http';
import { platformHealthChecks } from '../platform/health-checks.ts';
import { bearer, callTenant } from '../service/auth/bearer-guards.ts';
import { createBearerVerifier } from '../service/auth/identity.ts';
import { clientsName, clientsNamespace } from '../service/clients/client-rules.ts';
import { redirectUriRules } from '../service/clients/redirect-uri.ts';
import { createHttpApp, type Route } from '../service/http/http-app.ts';
import { createPlainListener } from '../service/http/plain-listener.ts';
import { addressLimit, type RateLimits } from '../service/limits/rate-limit.ts';
import { type AboutOptions, aboutRoutes } from '../service/openapi/about-routes.ts';
import { documentRoutes } from '../service/openapi/openapi.ts';
import { canConnect } from '../service/postgres/fresh-connection.ts';
import type { Clients } from './clients/clients.ts';
import {
  type ClientRouteOptions,
  listClientsRoute,
  listLeftoversRoute,
  readClientRoute,
  registerClientRoute,
  updateClientRoute,
} from './clients/routes.ts';
import type { Foundation } from './foundation.ts';
import { backchannelRoute, type LogoutOptions, logoutRoute } from './logout/routes.ts';
import { presentFailures } from './pages/failure-pages.ts';
import { seenSession } from './sessions/guards.ts';
import { deleteSessionRoute, listSessionsRoute, type SessionRouteOptions } from './sessions/routes.ts';
import type { Sessions } from './sessions/sessions.ts';
import { redisProblem } from './sessions/store.ts';
import type { RelyingParty } from './sign-in/relying-party.ts';
import { authRoute, callbackRoute, type SignInOptions } from './sign-in/routes.ts';
import type { SignIns } from './sign-in/sign-ins.ts';
import type { TargetGuards } from './targets/handler.ts';
import { isTargetRequestInAnyForm, targetPatternOf } from './targets/path.ts';
import { targetRoute } from './targets/routes.ts';
import type { Targets } from './targets/targets.ts';

/** The modules of a token handler. `start.ts` builds them before the server listens. */
export interface TokenHandler extends Foundation {
  rateLimits: RateLimits;
  relyingParty: RelyingParty;
  clients: Clients;
  sessions: Sessions;
  signIns: SignIns;
  targets: Targets;
  close(): Promise<void>;
}

const name = 'Token handler';
const description =
  'Signs users of single-page apps in, keeps their tokens in sessions, and proxies their requests to APIs.';
const root = '/token-handler/v1';

export interface TokenHandlerRoutesOptions {
  about: Pick<AboutOptions, 'checks' | 'clock'>;
  clients: ClientRouteOptions;
  signIn: SignInOptions;
  logout: LogoutOptions;
  sessions: SessionRouteOptions;
  targets: TargetGuards;
}

export function tokenHandlerRoutes(options: TokenHandlerRoutesOptions): Route[] {
  const { about, clients, signIn, logout, sessions, targets } = options;
  const api = [
    listClientsRoute(clients),
    readClientRoute(clients),
    registerClientRoute(clients),
    updateClientRoute(clients),
    listLeftoversRoute(clients),
    signIn.outcomes.observe('auth', authRoute(signIn)),
    signIn.outcomes.observe('callback', callbackRoute(signIn)),
    logoutRoute(logout),
    backchannelRoute(logout),
    listSessionsRoute(sessions),
    deleteSessionRoute(sessions),
    targetRoute(targets),
  ];
  const routes = [...aboutRoutes({ ...about, name, description, api: root }), ...api];
  return [
    ...routes,
    ...api.map((route) => ({ ...route, path: route.path.replace(root, '/token-handler') })),
    ...documentRoutes({ title: name, version: '1', description, routes }),
  ];
}

/**
 * The limit of valid back-channel logouts is SIGN_IN_LIMIT times this number. The limit applies per tenant and client
 * address.
 */
const logoutsPerSignIn = 100;
/** Window of SESSION_REQUEST_LIMIT in milliseconds. */
const minute = 60_000;

function routeOptions(tokenHandler: TokenHandler): TokenHandlerRoutesOptions {
  const { config, log, metrics, clock, platform, rateLimits, relyingParty, clients, sessions, signIns, targets } =
    tokenHandler;
  const { tenants } = platform;
  const administrator = administratorGuards(tokenHandler);
  const perWindow = { most: config.SIGN_IN_LIMIT, window: config.SIGN_IN_WINDOW };
  const signInLimit = addressLimit(rateLimits.exact({ name: 'sign-in', ...perWindow }));
  const invalidLogoutTokens = addressLimit(rateLimits.exact({ name: 'invalid-logout-tokens', ...perWindow }));
  const mostLogouts = config.SIGN_IN_LIMIT * logoutsPerSignIn;
  const validLogoutTokens = rateLimits.local({ name: 'backchannel-logout', ...perWindow, most: mostLogouts });
  const ofAddress = { most: config.TARGET_ADDRESS_LIMIT, window: config.TARGET_WINDOW };
  const signOutLimit = addressLimit(rateLimits.local({ name: 'sign-out', ...ofAddress }));
  const sessionsOfAddress = addressLimit(rateLimits.local({ name: 'sessions-address', ...ofAddress }));
  const ofPerson = { most: config.SESSION_REQUEST_LIMIT, window: minute };
  const browsing = { ...clients, ...signIns, tenants, relyingParty, sessions };
  return {
    about: { checks: healthChecks(tokenHandler), clock },
    clients: { ...administrator, ...clients, redirectUriRules: redirectUriRules(config), metrics },
    signIn: { ...browsing, tenantHeader: config.TENANT_HEADER, signInLimit },
    logout: { ...browsing, signOutLimit, invalidLogoutTokens, validLogoutTokens, log },
    sessions: {
      ...{ ...administrator, ...targets.guards, tenants, seenSession: seenSession(sessions), sessions },
      ...{ metrics, logouts: signIns.logouts },
      addressLimit: sessionsOfAddress,
      personLimit: rateLimits.local({ name: 'sessions-person', ...ofPerson }),
    },
    targets: targets.guards,
  };
}

/** Returns the checks of `GET /health`: the platform's services, the database and Redis. */
function healthChecks(tokenHandler: TokenHandler) {
  const { config, redis } = tokenHandler;
  return {
    ...platformHealthChecks(tokenHandler, [clientsNamespace, clientsName]),
    db: () => canConnect(config.DATABASE_URL),
    sessions: async () => (await redisProblem(redis)) === undefined,
  };
}

function administratorGuards({ config, platform, signingKeys, urns, clock }: TokenHandler) {
  const { TENANT_ISSUERS: tenantIssuers } = config;
  const accessPublicUrl = config.ACCESS_SERVICE_PUBLIC_URL ?? config.ACCESS_SERVICE_URL;
  const clientId = urns.service('token-handler');
  const { tenants } = platform;
  const verifier = createBearerVerifier({ signingKeys, accessPublicUrl, tenantIssuers, tenants, clientId, clock });
  return { bearer: bearer(verifier, [clientId]), tenant: callTenant(tenants) };
}

/** Requests for targets bypass Express, because Express's router and body handling cost more than the proxy. */
export function createTokenHandlerListener(tokenHandler: TokenHandler): RequestListener {
  const { config, log, metrics, targets } = tokenHandler;
  const common = { log, metrics, trustedProxies: config.TRUSTED_PROXIES };
  const app = createHttpApp({
    ...common,
    routes: tokenHandlerRoutes(routeOptions(tokenHandler)),
    corsOrigins: config.CORS_ORIGINS,
    bodyLimit: config.BODY_LIMIT,
    presentProblem: presentFailures(config.SIGN_IN_PAGES),
  });
  const proxy = createPlainListener(common, { routeOf: targetPatternOf, serve: targets.handler });
  return (request, response) => (isTargetRequestInAnyForm(request) ? proxy(request, response) : app(request, response));
}
