// Starts a form service from its configuration: database, platform clients, the relay of the outbox, and the port.

import { createPlatform, type Platform } from '../platform/platform.ts';
import { type Clock, systemClock } from '../service/clock.ts';
import type { Logger } from '../service/operations/log.ts';
import { createMetrics, type Metrics } from '../service/operations/metrics.ts';
import { watchReadiness } from '../service/operations/process-readiness.ts';
import { type RunningService, serve } from '../service/operations/serve.ts';
import type { StartupPace } from '../service/operations/startup-check.ts';
import { migrate } from '../service/postgres/migrate.ts';
import { createPool } from '../service/postgres/postgres.ts';
import { unsharedPool } from '../service/postgres/shared-pool.ts';
import { registerQuarantineMetrics } from '../service/quarantine/quarantine-metrics.ts';
import { createUrns, type Urns } from '../service/urn.ts';
import { createFormsApp, requestPoolName } from './app.ts';
import type { FormsConfig } from './config.ts';
import { createSchemaValidator } from './definitions/schema-validator.ts';
import { createDefinitionSource, type DefinitionSource } from './definitions/source.ts';
import { registerRunMetrics } from './expiry/metrics.ts';
import { formMigrations } from './expiry/migrations.ts';
import { createDelivery } from './outbox/delivery.ts';
import { createFileService } from './outbox/files.ts';
import { createOutboxMetrics } from './outbox/metrics.ts';
import { type Relay, type RelayPace, startRelay } from './outbox/relay.ts';
import { createOutboxStore } from './outbox/store.ts';
import { createFormsQuarantine } from './quarantine/store.ts';
import { registerConnections, registerPoolName } from './registers/turns.ts';
import { registered } from './registration.ts';

export const migrationsDirectory = formMigrations.directory;

export interface StartOptions {
  config: FormsConfig;
  log: Logger;
  /** Where `DIR_…` overrides of the directory are read from. */
  env: NodeJS.ProcessEnv;
  clock?: Clock;
  /** Times of the relay, where they should differ. */
  pace?: Partial<RelayPace>;
  /** Times of the checks before the first readiness, where they should differ. */
  startup?: Partial<StartupPace>;
}

/** Throws ConfigError for an unusable `DIR_…` override. */
export async function startForms({
  config,
  log,
  env,
  clock = systemClock,
  pace,
  startup,
}: StartOptions): Promise<RunningService> {
  const metrics = createMetrics();
  const urns = createUrns(config.URN_PREFIX);
  const platform = createPlatform({ config, service: 'form-service', urns, metrics, log, clock, env });
  await migrate({ url: config.DATABASE_URL, ...formMigrations, log });
  const database = { url: config.DATABASE_URL, log, metrics };
  const pool = createPool({ ...database, name: requestPoolName, size: config.DATABASE_POOL_SIZE });
  // A relay with connections of its own: a flood of requests must not hold up the events, nor the other way round.
  const relayPool = createPool({ ...database, name: 'outbox', size: 3 });
  const registerPool = createPool({ ...database, name: registerPoolName, size: registerConnections });
  const validator = createSchemaValidator({ metrics, log, clock });
  const definitions = createDefinitionSource(platform.configuration);
  const relay = createRelay({ config, pool: relayPool, platform, definitions, urns, metrics, log, clock, pace });
  registerRunMetrics({ metrics, pool: relayPool, clock });
  registerQuarantineMetrics(metrics, createFormsQuarantine({ pool: unsharedPool(relayPool), clock }));
  platform.register(registered);
  void platform.preload();
  const readiness = watchReadiness({ config, pool, account: platform.account, log, metrics, pace: startup });
  const parts = { config, pool, registerPool, platform, definitions, validator, urns, log, metrics, clock };
  return serve({
    app: createFormsApp({ ...parts, changed: relay.nudge }),
    host: config.HOST,
    port: config.PORT,
    metrics,
    metricsPort: config.METRICS_PORT,
    readiness: readiness.conditions,
    drainDeadline: config.DRAIN_DEADLINE,
    drainDelay: config.DRAIN_DELAY,
    log,
    async close() {
      readiness.stop();
      await relay.stop();
      await Promise.all([validator.close(), platform.close(), pool.end(), relayPool.end(), registerPool.end()]);
    },
  });
}

interface RelayParts extends Required<Omit<StartOptions, 'pace' | 'env' | 'startup'>> {
  pool: ReturnType<typeof createPool>;
  platform: Platform;
  definitions: DefinitionSource;
  urns: Urns;
  metrics: Metrics;
  pace: Partial<RelayPace> | undefined;
}

function createRelay({ config, pool, platform, definitions, urns, metrics, log, clock, pace }: RelayParts): Relay {
  const deleteFiles = config.DELETE_FILES;
  const store = createOutboxStore({ pool, removalDelay: config.SUBSCRIBER_REMOVAL_DELAY, deleteFiles });
  const { events, notifications } = platform;
  const files = deleteFiles ? createFileService(platform.client('files', urns.service('file-service:v1'))) : undefined;
  return startRelay({
    store,
    deliver: createDelivery({ events, notifications, files, definitions, readData: store.readData, urns }),
    metrics: createOutboxMetrics({ metrics, store, clock }),
    clock,
    log,
    callTimeout: config.PLATFORM_TIMEOUT,
    pace,
  });
}
