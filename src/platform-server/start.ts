// Starts a platform server from its configuration: database, jobs, and the port it listens on.
import { join } from 'node:path';
import { type Clock, systemClock } from '../service/clock.ts';
import type { Logger } from '../service/operations/log.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { watchReadiness } from '../service/operations/process-readiness.ts';
import { type RunningService, serve } from '../service/operations/serve.ts';
import type { StartupPace } from '../service/operations/startup-check.ts';
import { migrate } from '../service/postgres/migrate.ts';
import { createPool } from '../service/postgres/postgres.ts';
import { registerQuarantineMetrics } from '../service/quarantine/quarantine-metrics.ts';
import { createUrns } from '../service/urn.ts';
import { createPlatformApp } from './app.ts';
import type { PlatformServerConfig } from './config.ts';
import { createEventStore } from './events/store.ts';
import { createPlatformJobs } from './jobs.ts';
import { createMailer } from './mail.ts';
import { createDeliveryStore } from './notifications/deliveries-store.ts';
import { createNoticeQuarantine } from './notifications/job-quarantine.ts';
import { registerQueueMetrics } from './queue-metrics.ts';
import { applySeed, readSeed } from './seed.ts';
import { createTenantCode } from './tenant-code.ts';
import { migrateJobs, startWorker } from './worker.ts';

export const migrationsDirectory = join(import.meta.dirname, 'migrations');

/** `clock` is the product's time; retries of jobs go by the database's. Throws ConfigError for an unusable seed. */
export async function startPlatformServer(options: {
  config: PlatformServerConfig;
  log: Logger;
  clock?: Clock;
  /** Times of the checks before the first readiness, where they should differ. */
  startup?: Partial<StartupPace>;
}): Promise<RunningService> {
  const { config, log, clock = systemClock, startup: pace } = options;
  const seed = config.SEED_FILE === undefined ? undefined : await readSeed(config.SEED_FILE);
  const metrics = createMetrics();
  await migrate({ url: config.DATABASE_URL, directory: migrationsDirectory, log });
  const pool = createPool({
    url: config.DATABASE_URL,
    name: 'requests',
    size: config.DATABASE_POOL_SIZE,
    log,
    metrics,
  });
  // Jobs have connections of their own: a flood of requests must not hold up the mail, nor the other way round.
  const jobConnections = config.WORKER_CONCURRENCY + 3;
  const jobPool = createPool({ url: config.DATABASE_URL, name: 'jobs', size: jobConnections, log, metrics });
  await migrateJobs(jobPool, log);
  if (seed) await applySeed(pool, seed);

  const mailer = createMailer({ url: config.SMTP_URL, from: config.MAIL_FROM, metrics });
  // A tenant whose templates are slow leaves one of the job slots to the others.
  const tenantCode = createTenantCode({ metrics, rendersPerTenant: Math.max(1, config.WORKER_CONCURRENCY - 1) });
  const urns = createUrns(config.URN_PREFIX);
  const jobs = createPlatformJobs({ pool, urns, mailer, tenantCode, clock, log, metrics });
  registerQueueMetrics(metrics, clock, {
    events: createEventStore(pool).waiting,
    deliveries: createDeliveryStore(pool).waiting,
  });
  registerQuarantineMetrics(metrics, createNoticeQuarantine(pool));
  const worker = await startWorker({
    ...jobs,
    pool: jobPool,
    log,
    concurrency: config.WORKER_CONCURRENCY,
    staleAfter: config.WORKER_STALE_AFTER,
  });
  // It has no account of its own: it calls nobody, and only verifies tokens.
  const readiness = watchReadiness({ config, pool, log, metrics, pace });
  return serve({
    app: createPlatformApp({ config, pool, mailer, tenantCode, log, metrics, clock }),
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
      await worker.close();
      mailer.close();
      await tenantCode.close();
      await Promise.all([pool.end(), jobPool.end()]);
    },
  });
}
