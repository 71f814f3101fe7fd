// The token handler's route table and request listener. Every route is served under /token-handler/v1 and, for frontends
// whose proxy does not rewrite, under /token-handler. Requests for targets go to the proxy, all others to Express.
import type { RequestListener } from 'node:http';
import type { Express } from 'express';
import type pg from 'pg';
import type { Platform } from '../platform/platform.ts';
import { anyRole, bearer, callTenant } from '../service/auth/bearer-guards.ts';
import { createBearerVerifier } from '../service/auth/identity.ts';
import type { Clock } from '../service/clock.ts';
import { createHttpApp, type Route } from '../service/http/http-app.ts';
import { createPlainListener } from '../service/http/plain-listener.ts';
import { addressLimit, type RateLimits } from '../service/limits/rate-limit.ts';
import { aboutRoutes } from '../service/openapi/about-routes.ts';
import { createOpenApi, documentRoutes } from '../service/openapi/openapi.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import type { Redis } from '../service/redis/redis.ts';
import type { Urns } from '../service/urn.ts';
import type { Clients } from './clients/clients.ts';
import { listClientsRoute, registerClientRoute, updateClientRoute } from './clients/routes.ts';
import type { TokenHandlerConfig } from './config.ts';
import { createHealthChecks } from './health.ts';
import { logoutRoutes } from './logout/routes.ts';
import { sessionRoutes } from './sessions/routes.ts';
import type { SessionService } from './sessions/session-service.ts';
import type { RelyingParty } from './sign-in/relying-party.ts';
import { signInRoutes } from './sign-in/routes.ts';
import type { SignIns } from './sign-in/sign-ins.ts';
import { targetRoute } from './targets/routes.ts';
import { isForTargets, targetPatternOf } from './targets/target-path.ts';
import type { Targets } from './targets/targets.ts';

/** The modules of a token handler, running but not listening (`start.ts`). */
export interface TokenHandler {
  config: TokenHandlerConfig;
  log: Logger;
  metrics: Metrics;
  clock: Clock;
  urns: Urns;
  platform: Platform;
  pool: pg.Pool;
  /** Undefined: sessions are kept in memory. */
  redis: Redis | undefined;
  rateLimits: RateLimits;
  relyingParty: RelyingParty;
  clients: Clients;
  sessionService: SessionService;
  signIns: SignIns;
  targets: Targets;
  close(): Promise<void>;
}

const name = 'Token handler';
const description =
  'Signs users of single-page apps in, keeps their tokens in sessions, and proxies their requests to APIs.';
const root = '/token-handler/v1';
const adminRole = 'token-handler-admin';

export function tokenHandlerRoutes(tokenHandler: TokenHandler): Route[] {
  const { clock } = tokenHandler;
  const api = apiRoutes(tokenHandler);
  return [
    ...aboutRoutes({ name, description, api: root, checks: createHealthChecks(tokenHandler), clock }),
    ...api,
    ...api.map((route) => ({ ...route, path: route.path.replace(root, '/token-handler') })),
  ];
}

function apiRoutes(tokenHandler: TokenHandler): Route[] {
  const { config, log, clock, platform, rateLimits, relyingParty, clients, sessionService, signIns, targets } =
    tokenHandler;
  const { tenants } = platform;
  const { sessions, cookie } = sessionService;
  const { liveSession, sessionTenant } = targets.guards;
  const administrator = administratorGuards(tokenHandler);
  const allowInsecureRedirectUris = config.ALLOW_INSECURE_REDIRECT_URIS;
  const registration = { ...clients, allowInsecureRedirectUris };
  const tenantHeader = config.TENANT_HEADER;
  const perWindow = { most: config.SIGN_IN_LIMIT, window: config.SIGN_IN_WINDOW };
  const limit = addressLimit(rateLimits.exact({ name: 'sign-in', ...perWindow }));
  const backchannelLimit = addressLimit(rateLimits.exact({ name: 'backchannel-logout', ...perWindow }));
  const browsing = { ...clients, ...signIns, tenants, relyingParty, sessions };
  return [
    listClientsRoute(administrator, registration),
    registerClientRoute(administrator, registration),
    updateClientRoute(administrator, registration),
    ...signInRoutes({ ...browsing, tenantHeader, limit, clock }),
    ...logoutRoutes({ ...browsing, backchannelLimit, cookieName: cookie.name, log }),
    ...sessionRoutes({ sessions, session: [liveSession, sessionTenant], administrator, cookieName: cookie.name }),
    targetRoute(targets.guards),
  ];
}

function administratorGuards({ config, platform, urns, log, metrics, clock }: TokenHandler) {
  const accessUrl = config.ACCESS_SERVICE_URL;
  const accessPublicUrl = config.ACCESS_SERVICE_PUBLIC_URL ?? accessUrl;
  const clientId = urns.service('token-handler');
  const { tenants } = platform;
  const verifier = createBearerVerifier({ accessUrl, accessPublicUrl, tenants, clientId, log, metrics, clock });
  return [bearer(verifier, [clientId]), anyRole(adminRole), callTenant(tenants)];
}

function createApp(tokenHandler: TokenHandler): Express {
  const { config, log, metrics } = tokenHandler;
  const routes = tokenHandlerRoutes(tokenHandler);
  const documented = routes.filter(({ path }) => !path.startsWith('/token-handler') || path.startsWith(root));
  const document = () => createOpenApi({ title: name, version: '1', description, routes: documented });
  return createHttpApp({
    log,
    metrics,
    routes,
    trustedProxies: config.TRUSTED_PROXIES,
    corsOrigins: config.CORS_ORIGINS,
    bodyLimit: config.BODY_LIMIT,
    extend: (app) => void app.use(documentRoutes(document)),
  });
}

/** Express' router and body handling cost more than the proxy itself, so requests for targets do not enter it. */
export function createTokenHandlerListener(tokenHandler: TokenHandler): RequestListener {
  const { config, log, metrics, targets } = tokenHandler;
  const app = createApp(tokenHandler);
  const proxy = createPlainListener(
    { log, metrics, trustedProxies: config.TRUSTED_PROXIES },
    { routeOf: targetPatternOf, serve: targets.handler },
  );
  return (request, response) => (isForTargets(request) ? proxy(request, response) : app(request, response));
}
