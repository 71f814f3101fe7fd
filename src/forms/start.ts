// Starts a form service from its configuration: creates the platform clients, the database pools, the outbox dispatcher
// and the services of the routes, then listens.
import { platformHealthChecks } from '../platform/health-checks.ts';
import { createPlatform, type Platform } from '../platform/platform.ts';
import { bearer, callTenant, callTenantOrAll } from '../service/auth/bearer-guards.ts';
import { createBearerVerifier } from '../service/auth/identity.ts';
import { createSigningKeys } from '../service/auth/signing-keys.ts';
import { createKeysUrl } from '../service/auth/tenant-issuers.ts';
import { type Clock, systemClock } from '../service/clock.ts';
import { createHttpApp } from '../service/http/http-app.ts';
import { createRateLimits } from '../service/limits/rate-limit.ts';
import type { Logger } from '../service/operations/log.ts';
import { createMetrics, type Metrics } from '../service/operations/metrics.ts';
import { createOwnListener } from '../service/operations/own-listener.ts';
import { type PoolWatchPace, watchReadiness } from '../service/operations/process-readiness.ts';
import { createRefusals, type Refusals } from '../service/operations/refusals.ts';
import { type RunningService, serve } from '../service/operations/serve.ts';
import type { StartupPace } from '../service/operations/startup-check.ts';
import { endPools } from '../service/postgres/end-pools.ts';
import { canConnect } from '../service/postgres/fresh-connection.ts';
import { migrate } from '../service/postgres/migrate.ts';
import type { SharedPool } from '../service/postgres/shared-pool.ts';
import { createUrns, type Urns } from '../service/urn.ts';
import { startAddressIndex } from './addresses/index-walk.ts';
import { type FormsRoutesOptions, formsRoutes } from './app.ts';
import { createIntakeApplication, noticeLinksOf } from './apply/intake-application.ts';
import { presentNoticeProblem } from './apply/notice-page.ts';
import { createCodeHashes } from './codes/code.ts';
import { createCodeMetrics } from './codes/code-metrics.ts';
import { createCodeStore } from './codes/store.ts';
import { createVerification } from './codes/verification.ts';
import type { FormsConfig } from './config.ts';
import { createDatabaseMetrics } from './database-metrics.ts';
import { createSchemaValidator, type SchemaValidator } from './definitions/schema-validator.ts';
import { createDefinitionServices } from './definitions/services.ts';
import { createDefinitionSource, type DefinitionSource } from './definitions/source.ts';
import { createExpiryDates, createFindPolicy, type FindPolicy } from './expiry/dates.ts';
import { formMigrations } from './expiry/migrations.ts';
import { createFormAccess } from './forms/access.ts';
import { creationLimits } from './forms/creation-limits.ts';
import { createCreationStore } from './forms/creation-store.ts';
import { createDataStore } from './forms/data-store.ts';
import { createFormMetrics } from './forms/form-metrics.ts';
import { createPseudonyms } from './forms/history.ts';
import { createFindResponse } from './forms/idempotency.ts';
import { createFormList } from './forms/list-store.ts';
import { createDataBody } from './forms/schema.ts';
import { createFormStore } from './forms/store.ts';
import { createNoticeMetrics } from './notices/metrics.ts';
import { createOperationsServices } from './operations/services.ts';
import { createDelivery } from './outbox/delivery.ts';
import { type Dispatcher, type DispatcherPace, startDispatcher } from './outbox/dispatcher.ts';
import { createFileService } from './outbox/files.ts';
import { createOutboxMetrics } from './outbox/metrics.ts';
import { createOutboxStore } from './outbox/store.ts';
import { createSubscribeNow, type SubscribeNow } from './outbox/subscribe-now.ts';
import { requirePages } from './pages/built-pages.ts';
import { openPools, type Pools, shareRequestPool } from './pools.ts';
import { createFormsQuarantine } from './quarantine/store.ts';
import { createRegisterChanges } from './registers/changes.ts';
import { createEntryEdits } from './registers/entry-edits.ts';
import { createRegisterGuards } from './registers/policy.ts';
import { createRegisterReferences } from './registers/references.ts';
import { createRegisterLock } from './registers/register-lock.ts';
import { createRegisterStore } from './registers/store.ts';
import { registered } from './registration.ts';
import { startTenantStorage } from './storage/measurements.ts';

export const migrationsDirectory = formMigrations.directory;

export interface StartOptions {
  config: FormsConfig;
  log: Logger;
  /** The environment. The directory reads its `DIR_…` overrides from it. */
  env: NodeJS.ProcessEnv;
  clock?: Clock;
  /** Overrides the outbox dispatcher's intervals. */
  pace?: Partial<DispatcherPace>;
  /** Overrides the intervals of the checks before the service is first ready. */
  startup?: Partial<StartupPace>;
  /** Overrides the intervals at which the connection pool is checked. */
  poolWatch?: PoolWatchPace;
}

/** Throws ConfigError for an invalid `DIR_…` override, or if a configured page was not built. */
export async function startForms(options: StartOptions): Promise<RunningService> {
  const { config, log, env, clock = systemClock, pace, startup, poolWatch } = options;
  requirePages(config.PAGES);
  const metrics = createMetrics('form-service');
  const urns = createUrns(config.URN_PREFIX);
  const platform = createPlatform({ config, service: 'form-service', urns, metrics, log, clock, env });
  await migrate({ url: config.DATABASE_URL, ...formMigrations, log });
  const pools = openPools({ config, log, metrics });
  const validator = createSchemaValidator({ metrics, log, clock, urnPrefix: urns.prefix });
  const definitions = createDefinitionSource(platform.configuration);
  const addresses = startAddressIndex({ secret: config.CODE_KEY, pool: pools.outbox, clock, log, metrics });
  const storage = startTenantStorage({ limit: config.TENANT_STORAGE_LIMIT, pool: pools.outbox, clock, log, metrics });
  const findPolicy = createFindPolicy({ db: pools.requests, definitions, clock });
  const refusals = createRefusals(clock);
  const base: Base = {
    ...{ config, log, clock, metrics, urns, platform, pools, validator, definitions, findPolicy, refusals, addresses },
    storage,
  };
  const outbox = startOutbox(base, pace);
  createDatabaseMetrics({ metrics, pool: pools.outbox, clock });
  platform.register(registered);
  void platform.preload();
  const ownCalls = createOwnListener();
  const pool = shareRequestPool(base);
  const apply = createIntakeApplication({ ...base, pool, ownUrl: ownCalls.url });
  const readiness = watchReadiness({
    env,
    ...{ config, log, metrics, pool: pools.requests, account: platform.account, pace: startup, watch: poolWatch },
  });
  const app = createHttpApp({
    ...{ log, metrics, refusals, presentProblem: presentNoticeProblem },
    routes: formsRoutes({ ...createRouteOptions(base, pool, outbox), apply: apply?.routes }),
    trustedProxies: config.TRUSTED_PROXIES,
    corsOrigins: config.CORS_ORIGINS,
    bodyLimit: config.BODY_LIMIT,
  });
  if (apply && config.APPLY_API_URL === undefined) await ownCalls.listen(app);
  return serve({
    ...{ app, host: config.HOST, port: config.PORT, metrics, metricsPort: config.METRICS_PORT },
    readiness: readiness.conditions,
    drainDeadline: config.DRAIN_DEADLINE,
    drainDelay: config.DRAIN_DELAY,
    log,
    async close() {
      readiness.stop();
      await Promise.all([outbox.stop(), addresses.stop(), storage.stop(), ownCalls.close()]);
      await apply?.api.close();
      await Promise.all([validator.close(), platform.close(), endPools(Object.values(pools))]);
    },
  });
}

/** The objects that the functions below use. */
interface Base {
  config: FormsConfig;
  log: Logger;
  clock: Clock;
  metrics: Metrics;
  urns: Urns;
  platform: Platform;
  pools: Pools;
  validator: SchemaValidator;
  definitions: DefinitionSource;
  findPolicy: FindPolicy;
  refusals: Refusals;
  addresses: ReturnType<typeof startAddressIndex>;
  storage: ReturnType<typeof startTenantStorage>;
}

interface Outbox extends Dispatcher {
  subscribeNow: SubscribeNow;
}

function startOutbox(base: Base, pace: Partial<DispatcherPace> | undefined): Outbox {
  const { config, pools, platform, definitions, urns, metrics, log, clock } = base;
  const { DELETE_FILES: deleteFiles, SUBSCRIBER_REMOVAL_DELAY: removalDelay } = config;
  const store = createOutboxStore({ pool: pools.outbox, removalDelay, noticeTime: config.NOTICE_TIME, deleteFiles });
  const { events, notifications } = platform;
  const files = deleteFiles ? createFileService(platform.client('files', urns.service('file-service:v1'))) : undefined;
  const deliver = createDelivery({
    ...{ events, notifications, files, definitions, readData: store.readData, urns, clock },
    ...{ links: noticeLinksOf(config), fileTime: config.PLATFORM_TIMEOUT },
    recheck: Math.max(removalDelay / 15, 100),
  });
  const common = { store, deliver, clock, callTimeout: config.PLATFORM_TIMEOUT };
  const dispatcher = startDispatcher({
    ...{ ...common, log, pace },
    metrics: createOutboxMetrics({ registry: metrics.registry, store, clock }),
  });
  return { ...dispatcher, subscribeNow: createSubscribeNow(common) };
}

function createRouteOptions(base: Base, pool: SharedPool, outbox: Outbox): Omit<FormsRoutesOptions, 'apply'> {
  const { config, platform, urns, log, metrics, clock } = base;
  // Wakes the outbox dispatcher. Called after each commit that wrote to the outbox.
  const changed = outbox.nudge;
  const { tenants } = platform;
  const { ACCESS_SERVICE_URL: accessUrl, TENANT_ISSUERS: tenantIssuers } = config;
  const accessPublicUrl = config.ACCESS_SERVICE_PUBLIC_URL ?? accessUrl;
  const clientId = urns.service('form-service');
  const signingKeys = createSigningKeys({ urlOf: createKeysUrl(accessUrl, tenantIssuers), log, metrics });
  const verifier = createBearerVerifier({ signingKeys, accessPublicUrl, tenantIssuers, tenants, clientId, clock });
  const ownBearer = bearer(verifier, [clientId]);
  const tenantOrAll = callTenantOrAll(tenants);
  const store = createRegisterStore(platform.configuration);
  const hold = createRegisterLock({ pool: base.pools.registers, metrics, stepMs: config.PLATFORM_TIMEOUT });
  const limits = createRateLimits({ log, clock, metrics });
  const { ANONYMOUS_READ_LIMIT: most, ANONYMOUS_READ_WINDOW: window } = config;
  const anonymousReads = limits.local({ name: 'anonymous-reads', most, window });
  const guards = createRegisterGuards({ verifier, tenants, urns, anonymousReads });
  return {
    about: {
      checks: {
        ...platformHealthChecks(base, ['platform', 'form-service']),
        db: () => canConnect(config.DATABASE_URL),
      },
      clock,
    },
    forms: {
      ...{ bearer: ownBearer, tenant: callTenant(tenants), changed, ...creationLimits(limits) },
      ...createFormServices(base, pool, outbox),
    },
    definitions: { ...guards, ...createDefinitionServices({ ...base, configuration: platform.configuration, limits }) },
    operations: { bearer: ownBearer, tenantOrAll, ...createOperationsServices({ ...base, pool }) },
    pages: { pages: config.PAGES },
    quarantine: {
      ...{ bearer: ownBearer, tenantOrAll, changed },
      quarantine: createFormsQuarantine({ pool, clock }),
    },
    registers: {
      ...guards,
      ...{ store, urns, changes: createRegisterChanges({ store, hold }), edits: createEntryEdits({ store, hold }) },
      references: createRegisterReferences({ configuration: platform.configuration, store, urns, metrics }),
    },
  };
}

function createFormServices(base: Base, pool: SharedPool, { subscribeNow }: Outbox) {
  const { config, validator, urns, metrics, clock, log, addresses, storage } = base;
  const { notifications } = base.platform;
  const counts = { onTransition: createFormMetrics(metrics), onSuppressed: createNoticeMetrics(metrics) };
  const forms = createFormStore(pool, counts);
  const [codes, hashes] = [createCodeStore(pool), createCodeHashes(config.CODE_KEY)];
  return {
    forms,
    formData: createDataStore(pool),
    creation: createCreationStore(pool, counts),
    list: createFormList(pool),
    expiryDates: createExpiryDates(base.findPolicy),
    access: createFormAccess({ forms, definitions: base.definitions, clock }),
    findResponse: createFindResponse(pool),
    verification: createVerification({
      ...{ store: codes, hashes, notifications, subscribeNow, clock },
      ...{ codeLifetime: config.CODE_LIFETIME, channels: config.CODE_CHANNELS },
      count: createCodeMetrics(metrics),
    }),
    dataBody: createDataBody(urns.prefix),
    secret: config.CODE_KEY,
    pseudonyms: createPseudonyms(config.CODE_KEY),
    ...{ codes, hashes, validator, clock, log, addresses, storage },
  };
}
