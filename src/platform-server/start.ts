// Starts a platform server from its configuration. Creates the database pools, the stores, the mailer, the dependencies
// of the routes and the job worker. Then listens.
import type pg from 'pg';
import { bearer, callTenant } from '../service/auth/bearer-guards.ts';
import { createBearerVerifier } from '../service/auth/identity.ts';
import { createSigningKeys } from '../service/auth/signing-keys.ts';
import { createKeysUrl } from '../service/auth/tenant-issuers.ts';
import { type Clock, systemClock } from '../service/clock.ts';
import { createHttpApp } from '../service/http/http-app.ts';
import { createRateLimits } from '../service/limits/rate-limit.ts';
import type { Logger } from '../service/operations/log.ts';
import { createMetrics, type Metrics } from '../service/operations/metrics.ts';
import { watchReadiness } from '../service/operations/process-readiness.ts';
import { type RunningService, serve } from '../service/operations/serve.ts';
import type { StartupPace } from '../service/operations/startup-check.ts';
import { endPools } from '../service/postgres/end-pools.ts';
import { canConnect } from '../service/postgres/fresh-connection.ts';
import { migrate } from '../service/postgres/migrate.ts';
import { createPool } from '../service/postgres/postgres.ts';
import { programFile } from '../service/program-files.ts';
import { type PlatformRoutesOptions, platformRoutes } from './app.ts';
import { builtIn } from './built-in.ts';
import { codeLimit, createCodes } from './codes/codes.ts';
import { jobConnections, type PlatformServerConfig } from './config.ts';
import { type ChangeOptions, type ConfigurationChanges, createConfigurationChanges } from './configuration/changes.ts';
import { coreScope } from './configuration/configuration.ts';
import { anonymousReads, createConfigurationGuards } from './configuration/policy.ts';
import { createReadBudget } from './configuration/read-budget.ts';
import { limitSearches } from './configuration/searches.ts';
import { createDatabaseMetrics } from './database-metrics.ts';
import { platformNamespace } from './directory/entry.ts';
import { type AcceptEvent, createAcceptance } from './events/acceptance.ts';
import { eventsHome, payloadSchemaPath } from './events/event.ts';
import { createEventStore } from './events/store.ts';
import { createPlatformJobs, type PlatformJobs } from './jobs.ts';
import { createMailer } from './mail.ts';
import { createDeliveryJobs } from './notifications/delivery.ts';
import { createJobQuarantine } from './notifications/job-quarantine.ts';
import { notificationsHome } from './notifications/notification-type.ts';
import { createSettingsCache } from './notifications/settings.ts';
import { createSubscriberStore } from './notifications/subscribers-store.ts';
import { createSubscribing } from './notifications/subscribing.ts';
import { createSubscriptionStore } from './notifications/subscriptions-store.ts';
import { createBehaviour } from './reference/create-behaviour.ts';
import { readReference } from './reference/reference-times.ts';
import { applySeed } from './seed.ts';
import { readSeed } from './seed-file.ts';
import { createStores, type StoreOptions } from './stores.ts';
import { createTenantCode, type TenantCode } from './tenant-code.ts';
import { createTenantPool, storeOf, type TenantPool } from './tenant-pool.ts';
import { migrateJobs, startWorker } from './worker.ts';

export const migrationsDirectory = programFile('src/platform-server/migrations');

/**
 * `clock` is the application's clock. Retries of jobs use the clock of the database instead. Throws ConfigError for an
 * invalid seed.
 */
export async function startPlatformServer(options: {
  config: PlatformServerConfig;
  log: Logger;
  /** The environment. For tests, it can select the behaviour of the reference implementation. */
  env?: NodeJS.ProcessEnv;
  clock?: Clock;
  /** Overrides the intervals of the checks before the service is first ready. */
  startup?: Partial<StartupPace>;
}): Promise<RunningService> {
  const { config, log, env = {}, clock = systemClock, startup } = options;
  const reference = readReference(env);
  const seed = config.SEED_FILE === undefined ? undefined : readSeed(config.SEED_FILE);
  const metrics = createMetrics('platform-server');
  const url = config.DATABASE_URL;
  await migrate({ url, directory: migrationsDirectory, log });
  const pool = createPool({ url, name: 'requests', size: config.DATABASE_POOL_SIZE, log, metrics });
  // Jobs have a separate pool, so that many requests do not delay mail, and many mails do not delay requests.
  const jobPool = createPool({ url, name: 'jobs', size: jobConnections(config), log, metrics });
  await migrateJobs(jobPool, log);
  if (seed) await applySeed(pool, seed);

  const behaviour = await createBehaviour(reference, { pool, clock, log });
  const mailer = createMailer({ url: config.SMTP_URL, from: config.MAIL_FROM, log, metrics });
  const tenantCode = createTenantCode({ metrics });
  const stored: StoreOptions = { config, pool, mailer, behaviour, settingsCache: createSettingsCache() };
  const base: Base = {
    ...stored,
    log,
    clock,
    metrics,
    jobPool,
    tenantCode,
    tenantPool: createTenantPool({ pool, size: config.DATABASE_POOL_SIZE, name: 'requests', metrics }),
    acceptEvent: createAcceptance({ clock, metrics }),
    ...createStores(stored),
  };
  createDatabaseMetrics({ ...base, registry: metrics.registry });
  const worker = await startWorker({
    ...{ ...createJobs(base), pool: jobPool, log },
    concurrency: behaviour.concurrency(config.WORKER_CONCURRENCY),
    staleAfter: config.WORKER_STALE_AFTER,
  });
  // This process has no service account: it calls no other service, and only verifies tokens.
  const readiness = watchReadiness({ config, pool, env, log, metrics, pace: startup });
  return serve({
    app: createHttpApp({
      ...{ log, metrics, routes: behaviour.routes(platformRoutes(createRouteOptions(base))) },
      trustedProxies: config.TRUSTED_PROXIES,
      corsOrigins: config.CORS_ORIGINS,
      bodyLimit: config.BODY_LIMIT,
    }),
    ...{ host: config.HOST, port: config.PORT, metrics, metricsPort: config.METRICS_PORT, log },
    readiness: readiness.conditions,
    drainDeadline: config.DRAIN_DEADLINE,
    drainDelay: config.DRAIN_DELAY,
    async close() {
      readiness.stop();
      await worker.close();
      mailer.close();
      await tenantCode.close();
      await endPools([pool, jobPool]);
    },
  });
}

/** The objects that the functions below use. */
interface Base extends StoreOptions, ReturnType<typeof createStores> {
  log: Logger;
  clock: Clock;
  metrics: Metrics;
  tenantCode: TenantCode;
  /** Runs the statements of jobs. */
  jobPool: pg.Pool;
  /** Runs the statements of requests. */
  tenantPool: TenantPool;
  acceptEvent: AcceptEvent;
}

function createJobs(base: Base): PlatformJobs {
  const { jobPool: pool, clock, log, metrics, mailer } = base;
  const { urns, tenantStore, directory, events, deliveries, typesOf, senderOf } = createStores({ ...base, pool });
  const options = {
    ...{ pool, clock, log, metrics, mailer, typesOf, senderOf },
    render: base.behaviour.render(base.tenantCode.render),
    subscriberUrn: urns.subscriber,
    async tenantShown(id: string) {
      const [tenant] = await tenantStore.find({ id });
      return { id: urns.tenant(id), name: tenant?.name ?? '' };
    },
    managementUrl: async () => (await directory.find(platformNamespace, 'subscriber-app'))?.url ?? '',
  };
  const jobs = base.behaviour.jobs(options, createDeliveryJobs(options));
  return createPlatformJobs({
    ...{ jobs, quarantine: createJobQuarantine({ pool, clock, log }), events, deliveries, clock, log },
    perTenant: Math.max(1, base.config.WORKER_CONCURRENCY - 1),
  });
}

function createRouteOptions(base: Base): PlatformRoutesOptions {
  const { config, tenantPool, clock, log, metrics, urns, tenants, tenantCode, mailer } = base;
  const { configuration, consumed, typesOf, senderOf } = createStores(base, tenantPool.of);
  const eventsOf = (tenant: string) => createEventStore(tenantPool.of(tenant), base.behaviour.eventKey);
  const accessUrl = config.ACCESS_SERVICE_URL;
  const accessPublicUrl = config.ACCESS_SERVICE_PUBLIC_URL ?? accessUrl;
  const signingKeys = createSigningKeys({ urlOf: createKeysUrl(accessUrl, config.TENANT_ISSUERS), log, metrics });
  // Each service has its own audience and its own verifier. Only the verifier of a service returns the roles of that
  // service without the service's name as a prefix.
  const verifierOf = (service: string) =>
    createBearerVerifier({
      ...{ signingKeys, accessPublicUrl, tenantIssuers: config.TENANT_ISSUERS, tenants, clock },
      clientId: urns.service(service),
    });
  const bearerOf = (service: string) => bearer(verifierOf(service), [urns.service(service)]);
  const verifier = verifierOf('configuration-service');
  const limits = createRateLimits({ log, clock, metrics });
  return {
    about: { checks: createHealthChecks(config), clock },
    directory: { store: base.directory, tenants, urnPrefix: config.URN_PREFIX },
    tenants: { bearer: bearerOf('tenant-service'), store: base.tenantStore, urns },
    configuration: {
      guards: createConfigurationGuards({
        ...{ verifier, tenants, urns, definitionOf: configuration.definition },
        anonymousReads: limits.local(anonymousReads),
      }),
      budget: createReadBudget(clock),
      store: base.behaviour.configurationReads(limitSearches(configuration, base.metrics)),
      changes: createChanges(base),
      urnOf: urns.configuration,
    },
    events: {
      ...{ bearer: bearerOf('event-service'), tenants, validate: tenantCode.validate },
      accept: (event) => base.acceptEvent(eventsOf(event.tenant), event),
      payloadSchema: (tenant, { namespace, name }) =>
        consumed.memberText(tenant, eventsHome, payloadSchemaPath(namespace, name)),
    },
    notifications: {
      ...{ bearer: bearerOf('notification-service'), tenant: callTenant(tenants), urns },
      ...{ typesOf, senderOf, log },
      sendMail: (tenant, mail) => mailer.send(tenant, mail, 'code'),
      subscribers: storeOf(createSubscriberStore, tenantPool.of),
      pendingNotices: (tenant, id) => base.behaviour.pendingNotices(tenantPool.of(tenant))(tenant, id),
      codeChannels: base.behaviour.codeChannels,
      subscriptions: storeOf(createSubscriptionStore, tenantPool.of),
      subscribing: createSubscribing({ tenantPool, clock, findOrCreate: base.behaviour.findOrCreate }),
      codeLimit: limits.local(codeLimit),
      codes: createCodes({ tenantPool, key: config.CODE_KEY, clock, workOnce: base.behaviour.codesWorkOnce }),
    },
  };
}

/** Every check tests only the database, because the services of this process depend on nothing else. */
function createHealthChecks({ DATABASE_URL }: PlatformServerConfig) {
  const db = () => canConnect(DATABASE_URL);
  return { db, directory: db, tenant: db, configuration: db, notification: db, event: db };
}

function createChanges({
  tenantPool,
  clock,
  metrics,
  tenantCode,
  config,
  urns,
  senders,
  behaviour,
  acceptEvent,
}: Base): ConfigurationChanges {
  const options: ChangeOptions = {
    ...{
      tenantPool,
      clock,
      metrics,
      code: tenantCode,
      builtIn,
      largest: 2 * config.BODY_LIMIT,
      urnOf: urns.configuration,
    },
    largestTenant: config.TENANT_CONFIGURATION_LIMIT,
    async refuse({ scope, namespace, name }, value, before) {
      if (scope === coreScope || namespace !== notificationsHome.namespace || name !== notificationsHome.name) return;
      return senders.refuse(scope, value, before);
    },
    async recordEvent(transaction, event) {
      await acceptEvent(createEventStore(transaction), event, { isReserved: true });
    },
  };
  return behaviour.changes(options, createConfigurationChanges(options));
}
