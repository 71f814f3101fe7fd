// Starts a token handler from its configuration: builds its modules and serves requests. When the token handler is
// closed, it first waits until running requests have ended.
import { HttpAgent } from '../platform/http-agent.ts';
import { createPlatform } from '../platform/platform.ts';
import { longestResponse, lookupProvider } from '../service/auth/provider-fetch.ts';
import { createSigningKeys } from '../service/auth/signing-keys.ts';
import { type Clock, systemClock } from '../service/clock.ts';
import { createKeyRing } from '../service/keys/key-ring.ts';
import { createRateLimits } from '../service/limits/rate-limit.ts';
import type { Logger } from '../service/operations/log.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { watchReadiness } from '../service/operations/process-readiness.ts';
import { type RunningService, serve } from '../service/operations/serve.ts';
import type { StartupPace } from '../service/operations/startup-check.ts';
import { endPools } from '../service/postgres/end-pools.ts';
import { migrate } from '../service/postgres/migrate.ts';
import { programFile } from '../service/program-files.ts';
import { createUrns } from '../service/urn.ts';
import { createTokenHandlerListener, type TokenHandler } from './app.ts';
import { startClients } from './clients/clients.ts';
import type { UpkeepPace } from './clients/upkeep-pace.ts';
import type { TokenHandlerConfig } from './config.ts';
import { registered } from './platform-registration.ts';
import { openPools } from './pools.ts';
import { createProviderAddresses } from './provider-addresses.ts';
import { createProviderDiscovery } from './provider-discovery.ts';
import { createMemoryStore } from './sessions/memory-store.ts';
import { createRedisStore } from './sessions/redis-store.ts';
import { Sessions } from './sessions/sessions.ts';
import { connectRedis, redisProblem } from './sessions/store.ts';
import { createProviderCache } from './sign-in/provider-cache.ts';
import { createRelyingParty } from './sign-in/relying-party.ts';
import { createSignIns } from './sign-in/sign-ins.ts';
import { isTargetRequest } from './targets/path.ts';
import { createTargets } from './targets/targets.ts';

export const migrationsDirectory = programFile('src/token-handler/migrations');

export interface StartOptions {
  config: TokenHandlerConfig;
  log: Logger;
  /** The environment. Its `DIR_…` variables override addresses that the directory service returns. */
  env: NodeJS.ProcessEnv;
  clock?: Clock;
  /** Overrides the intervals and limits of upkeep, the background work for clients. */
  pace?: Partial<UpkeepPace>;
  /** Overrides the limits of the startup checks, which run before the service is first ready. */
  startup?: Partial<StartupPace>;
}

/** Builds the modules without listening. Throws ConfigError for an invalid `DIR_…` variable. */
async function assembleTokenHandler(options: StartOptions): Promise<TokenHandler> {
  const { config, log, env, pace, clock = systemClock } = options;
  const metrics = createMetrics('token-handler');
  const urns = createUrns(config.URN_PREFIX);
  const platform = createPlatform({ config, service: 'token-handler', urns, metrics, log, clock, env });
  const { tenants, directory } = platform;
  await migrate({ url: config.DATABASE_URL, directory: migrationsDirectory, log });
  const redis = connectRedis(config, log, metrics);
  const { pool, changePool } = openPools({ config, log, metrics });
  const agent = new HttpAgent({ lookup: lookupProvider, maxResponse: longestResponse });
  const keys = createKeyRing(config.KEY_RING);
  const { ACCESS_SERVICE_URL: accessUrl, ACCESS_SERVICE_PUBLIC_URL: accessPublicUrl } = config;
  const called = (outcome: string, seconds: number) => metrics.dependencyCalled('identity-provider', outcome, seconds);
  const tenantIssuers = config.TENANT_ISSUERS;
  const addresses = createProviderAddresses({ accessUrl, accessPublicUrl, tenantIssuers, called });
  const timeout = config.PLATFORM_TIMEOUT;
  const discover = createProviderDiscovery({ addresses, log, timeout });
  const providers = createProviderCache({ addresses, discover, timeout });
  const signingKeys = createSigningKeys({ urlOf: providers.keysUrl, log, metrics });
  const shared = { config, log, metrics, clock, urns, platform, addresses, discover, signingKeys };
  const foundation = { ...shared, keys, pool, redis };
  const relyingParty = createRelyingParty({ addresses, providers, signingKeys, metrics });
  const rateLimits = createRateLimits({ redis, clock, log, metrics });
  const clients = startClients({ ...foundation, agent, changePool, pace });
  const { catalog, registrations } = clients;
  const { SESSION_MAX_AGE: maxAge, SESSION_IDLE: idle, SESSIONS_VALID_FROM: validFrom } = config;
  const limits = { maxAge, idle, validFrom, mostOfTenant: config.TENANT_SESSION_LIMIT };
  const store = redis ? createRedisStore(redis, limits) : createMemoryStore({ ...limits, clock });
  const cookieName = config.SESSION_COOKIE;
  const sessions = new Sessions({
    ...{ ...foundation, store, limits, cookieName, registrations, relyingParty },
    refreshConcurrency: config.REFRESH_CONCURRENCY,
  });
  const signIns = createSignIns({ ...foundation, registrations, sessions });
  const targets = createTargets({ ...foundation, sessions, tenants, rateLimits, catalog, directory });
  platform.register(registered);
  void platform.preload();
  return {
    ...foundation,
    ...{ rateLimits, relyingParty, clients, sessions, signIns, targets },
    async close() {
      rateLimits.close();
      await targets.close();
      // Each of them waits for several seconds if the identity provider does not respond.
      await Promise.all([sessions.close(), clients.close()]);
      await relyingParty.close();
      redis?.close();
      await endPools([pool, changePool]);
      await agent.destroy();
      await platform.close();
    },
  };
}

/** Throws ConfigError for an invalid `DIR_…` variable. */
export async function startTokenHandler(options: StartOptions): Promise<RunningService> {
  const { config, log, env, startup: pace } = options;
  const tokenHandler = await assembleTokenHandler(options);
  const { metrics, pool, platform, redis } = tokenHandler;
  const { conditions, stop } = watchReadiness({ config, pool, env, account: platform.account, log, metrics, pace });
  return serve({
    app: createTokenHandlerListener(tokenHandler),
    mayUpgrade: isTargetRequest,
    host: config.HOST,
    port: config.PORT,
    metrics,
    metricsPort: config.METRICS_PORT,
    readiness: { ...conditions, first: { ...conditions.first, redis: () => redisProblem(redis) } },
    drainDeadline: config.DRAIN_DEADLINE,
    drainDelay: config.DRAIN_DELAY,
    log,
    close: () => {
      stop();
      return tokenHandler.close();
    },
  });
}
