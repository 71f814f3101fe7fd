// Starts a token handler from its configuration: database, platform clients, the upkeep of registrations, and the port.
import { join } from 'node:path';
import type pg from 'pg';
import { createHttpAgent } from '../platform/http-exchange.ts';
import { createPlatform, type Platform } from '../platform/platform.ts';
import { bearer, callTenant } from '../service/auth/bearer-guards.ts';
import { createBearerVerifier } from '../service/auth/identity.ts';
import { type Clock, systemClock } from '../service/clock.ts';
import { createHttpApp } from '../service/http/http-app.ts';
import { loadLatePackages } from '../service/operations/late-packages.ts';
import type { Logger } from '../service/operations/log.ts';
import { createMetrics, type Metrics } from '../service/operations/metrics.ts';
import { watchReadiness } from '../service/operations/process-readiness.ts';
import { type RunningService, serve } from '../service/operations/serve.ts';
import type { StartupPace } from '../service/operations/startup-check.ts';
import { migrate } from '../service/postgres/migrate.ts';
import { createPool } from '../service/postgres/postgres.ts';
import { registerQuarantineMetrics } from '../service/quarantine/quarantine-metrics.ts';
import { createUrns, type Urns } from '../service/urn.ts';
import { createAccessAddresses } from './access-addresses.ts';
import { type TokenHandlerRoutesOptions, tokenHandlerRoutes } from './app.ts';
import { createAccessRegistration } from './clients/access-registration.ts';
import { writeBuilderPreview } from './clients/builder-preview.ts';
import { type ClientCatalog, createClientCatalog } from './clients/catalog.ts';
import { createLeftoverQuarantine, tidyLeftoverQuarantine } from './clients/leftover-quarantine.ts';
import { createLeftoverStore } from './clients/leftover-store.ts';
import { createPersistence } from './clients/persistence.ts';
import { createRegistrar, type Registrar } from './clients/registrar.ts';
import { createRegistrationStore, type RegistrationStore } from './clients/registration-store.ts';
import { startUpkeep, type UpkeepPace } from './clients/upkeep.ts';
import type { TokenHandlerConfig } from './config.ts';
import { createHealthChecks } from './health.ts';
import { createKeyRing } from './keys/key-ring.ts';
import { registered } from './platform-registration.ts';
import { createSessionParts, type SessionParts } from './session-parts.ts';
import { createTargetParts, type TargetParts } from './target-parts.ts';

export const migrationsDirectory = join(import.meta.dirname, 'migrations');

export interface StartOptions {
  config: TokenHandlerConfig;
  log: Logger;
  /** Where `DIR_…` overrides of the directory are read from. */
  env: NodeJS.ProcessEnv;
  clock?: Clock;
  /** Times of the upkeep, where they should differ. */
  pace?: Partial<UpkeepPace>;
  /** Times of the checks before the first readiness, where they should differ. */
  startup?: Partial<StartupPace>;
}

/** What a token handler is made of, running but not listening. */
interface TokenHandlerParts {
  config: TokenHandlerConfig;
  pool: pg.Pool;
  platform: Platform;
  catalog: ClientCatalog;
  registrations: RegistrationStore;
  registrar: Registrar;
  sessions: SessionParts;
  targets: TargetParts;
  urns: Urns;
  log: Logger;
  metrics: Metrics;
  clock: Clock;
  close(): Promise<void>;
}

/** Throws ConfigError for an unusable `DIR_…` override. */
async function assembleTokenHandler(options: StartOptions): Promise<TokenHandlerParts> {
  const { config, log, env, clock = systemClock } = options;
  const metrics = createMetrics();
  const urns = createUrns(config.URN_PREFIX);
  const platform = createPlatform({ config, service: 'token-handler', urns, metrics, log, clock, env });
  await migrate({ url: config.DATABASE_URL, directory: migrationsDirectory, log });
  const { close: closeClients, ...clients } = startClients({ ...options, clock, metrics, urns, platform });
  const sessions = createSessionParts({ ...clients, config, tenants: platform.tenants, clock, log, metrics });
  const { guards, redis } = sessions;
  const { directory } = platform;
  const targets = createTargetParts({ ...clients, config, directory, guards, redis, urns, clock, log, metrics });
  platform.register(registered);
  void platform.preload();
  return {
    ...{ config, platform, urns, log, metrics, clock, sessions, targets, ...clients },
    async close() {
      await targets.close();
      await sessions.close();
      await closeClients();
      await platform.close();
    },
  };
}

/** Throws ConfigError for an unusable `DIR_…` override. */
export async function startTokenHandler(options: StartOptions): Promise<RunningService> {
  const { config, log, startup: pace } = options;
  const parts = await assembleTokenHandler(options);
  const { metrics, pool, platform, sessions } = parts;
  const { conditions, stop } = watchReadiness({ config, pool, account: platform.account, log, metrics, pace });
  const service = await serve({
    app: createHttpApp({
      ...{ log, metrics, routes: tokenHandlerRoutes(createRouteOptions(parts)) },
      trustedProxies: config.TRUSTED_PROXIES,
      corsOrigins: config.CORS_ORIGINS,
      bodyLimit: config.BODY_LIMIT,
    }),
    mayUpgrade: parts.targets.mayUpgrade,
    host: config.HOST,
    port: config.PORT,
    metrics,
    metricsPort: config.METRICS_PORT,
    readiness: { ...conditions, first: { ...conditions.first, redis: sessions.redisProblem } },
    drainDeadline: config.DRAIN_DEADLINE,
    drainDelay: config.DRAIN_DELAY,
    log,
    close: () => {
      stop();
      return parts.close();
    },
  });
  // So that the first who signs in does not wait for them, and neither does whoever asks whether it is ready.
  setTimeout(() => void loadLatePackages(), 2_000).unref();
  return service;
}

function createRouteOptions(parts: TokenHandlerParts): TokenHandlerRoutesOptions {
  const { config, platform, urns, log, metrics, clock, catalog, registrations, registrar, sessions, targets } = parts;
  const { tenants } = platform;
  const accessUrl = config.ACCESS_SERVICE_URL;
  const accessPublicUrl = config.ACCESS_SERVICE_PUBLIC_URL ?? accessUrl;
  const clientId = urns.service('token-handler');
  const verifier = createBearerVerifier({ accessUrl, accessPublicUrl, tenants, clientId, log, metrics, clock });
  const administrator = { bearer: bearer(verifier, [clientId]), tenant: callTenant(tenants) };
  const allowInsecureRedirectUris = config.ALLOW_INSECURE_REDIRECT_URIS;
  return {
    about: { checks: createHealthChecks(parts), clock },
    clients: { ...administrator, catalog, registrations, registrar, allowInsecureRedirectUris },
    signIn: sessions.signIn,
    logout: sessions.logout,
    sessions: {
      ...administrator,
      ...sessions.guards,
      sessions: sessions.sessions,
      cookieName: sessions.cookieName,
    },
    targets: targets.routes,
  };
}

interface ClientsOptions extends StartOptions {
  clock: Clock;
  metrics: Metrics;
  urns: Urns;
  platform: Platform;
}

/** Everything about clients, and what runs in the background for them. */
function startClients({ config, log, clock, pace, metrics, urns, platform }: ClientsOptions) {
  const database = { url: config.DATABASE_URL, log, metrics };
  const pool = createPool({ ...database, name: 'requests', size: config.DATABASE_POOL_SIZE });
  // A change of a registration holds its connection during calls to the access service.
  const changePool = createPool({ ...database, name: 'registrations', size: 3 });
  const agent = createHttpAgent();
  const keys = createKeyRing(config.KEY_RING);
  const addresses = createAccessAddresses({
    accessUrl: config.ACCESS_SERVICE_URL,
    accessPublicUrl: config.ACCESS_SERVICE_PUBLIC_URL,
  });
  const { configuration, events } = platform;
  const catalog = createClientCatalog({
    configuration,
    urns,
    allowInsecureRedirectUris: config.ALLOW_INSECURE_REDIRECT_URIS,
    log,
    metrics,
  });
  const access = createAccessRegistration({ addresses, agent, metrics, timeout: config.PLATFORM_TIMEOUT });
  const registrations = createRegistrationStore({ pool, changePool, keys });
  const leftovers = createLeftoverStore({ pool, keys });
  const quarantine = createLeftoverQuarantine({ pool, clock });
  registerQuarantineMetrics(metrics, quarantine);
  const upkeep = startUpkeep({
    store: leftovers,
    quarantine: { release: quarantine.release, tidy: () => tidyLeftoverQuarantine(pool) },
    ...{ access, events, clock, log, metrics, pace },
  });
  const persistence = createPersistence({ log });
  const publicUrl = config.PUBLIC_URL;
  const registrar = createRegistrar({
    store: registrations,
    access,
    persistence,
    publicUrl,
    clock,
    changed: upkeep.nudge,
  });
  const builderUrl = config.BUILDER_APP_URL;
  const preview = builderUrl === undefined ? undefined : writeBuilderPreview({ builderUrl, configuration, urns, log });
  async function close(): Promise<void> {
    preview?.stop();
    await Promise.all([upkeep.stop(), persistence.close(), preview?.done]);
    await Promise.all([pool.end(), changePool.end(), agent.destroy()]);
  }
  return { pool, keys, addresses, catalog, registrations, registrar, close };
}
