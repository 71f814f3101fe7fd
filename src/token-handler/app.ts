// The token handler's route table, and what its routes are made of. Every route answers under /token-handler/v1 and, for
// frontends whose proxy does not rewrite, under /token-handler.
import type { Express } from 'express';
import type pg from 'pg';
import type { Platform } from '../platform/platform.ts';
import { anyRole, bearer, callTenant } from '../service/auth/bearer-guards.ts';
import { createBearerVerifier } from '../service/auth/identity.ts';
import type { Clock } from '../service/clock.ts';
import { createHttpApp, type Route } from '../service/http/http-app.ts';
import { aboutRoutes } from '../service/openapi/about-routes.ts';
import { createOpenApi, documentRoutes } from '../service/openapi/openapi.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import type { Urns } from '../service/urn.ts';
import type { AccessAddresses } from './access-addresses.ts';
import type { ClientCatalog } from './clients/catalog.ts';
import type { Registrar } from './clients/registrar.ts';
import type { RegistrationStore } from './clients/registration-store.ts';
import { listClientsRoute, registerClientRoute, updateClientRoute } from './clients/routes.ts';
import type { TokenHandlerConfig } from './config.ts';
import { createHealthChecks } from './health.ts';
import type { KeyRing } from './keys/key-ring.ts';
import type { SessionParts } from './session-parts.ts';
import type { TargetParts } from './target-parts.ts';

export interface TokenHandlerAppOptions {
  config: TokenHandlerConfig;
  pool: pg.Pool;
  platform: Platform;
  addresses: AccessAddresses;
  catalog: ClientCatalog;
  registrations: RegistrationStore;
  registrar: Registrar;
  keys: KeyRing;
  sessions: SessionParts;
  targets: TargetParts;
  urns: Urns;
  log: Logger;
  metrics: Metrics;
  clock: Clock;
}

const name = 'Token handler';
const description = 'Signs users of light frontends in, keeps their tokens in sessions, and relays their requests.';
const root = '/token-handler/v1';
const adminRole = 'token-handler-admin';

export function tokenHandlerRoutes(options: TokenHandlerAppOptions): Route[] {
  const { clock } = options;
  const api = apiRoutes(options);
  return [
    ...aboutRoutes({ name, description, api: root, checks: createHealthChecks(options), clock }),
    ...api,
    ...api.map((route) => ({ ...route, path: route.path.replace(root, '/token-handler') })),
  ];
}

function apiRoutes(options: TokenHandlerAppOptions): Route[] {
  const { config, platform, urns, log, metrics, clock, catalog, registrations, registrar, sessions, targets } = options;
  const accessUrl = config.ACCESS_SERVICE_URL;
  const accessPublicUrl = config.ACCESS_SERVICE_PUBLIC_URL ?? accessUrl;
  const clientId = urns.service('token-handler');
  const { tenants } = platform;
  const verifier = createBearerVerifier({ accessUrl, accessPublicUrl, tenants, clientId, log, metrics, clock });
  const administrator = [bearer(verifier, [clientId]), anyRole(adminRole), callTenant(tenants)];
  const clients = {
    catalog,
    registrations,
    registrar,
    allowInsecureRedirectUris: config.ALLOW_INSECURE_REDIRECT_URIS,
  };
  return [
    listClientsRoute(administrator, clients),
    registerClientRoute(administrator, clients),
    updateClientRoute(administrator, clients),
    ...sessions.routes(administrator),
    ...targets.routes,
  ];
}

export function createTokenHandlerApp(options: TokenHandlerAppOptions): Express {
  const { config, log, metrics } = options;
  const routes = tokenHandlerRoutes(options);
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
