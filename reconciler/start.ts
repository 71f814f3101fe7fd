// Creates the objects of one run from its configuration (platform clients, database pool, draft expiry and the sync of
// core clients), and performs the run.
import { formMigrations } from '../src/forms/expiry/migrations.ts';
import { createRetentionReader } from '../src/forms/expiry/retention.ts';
import { expiryStore } from '../src/forms/expiry/store.ts';
import { memoryBudget } from '../src/platform/document-budget.ts';
import { createPlatform } from '../src/platform/platform.ts';
import { maintainedClients } from '../src/service/clients/client-rules.ts';
import { redirectUriRules } from '../src/service/clients/redirect-uri.ts';
import { type Clock, systemClock } from '../src/service/clock.ts';
import type { Logger } from '../src/service/operations/log.ts';
import { createMetrics } from '../src/service/operations/metrics.ts';
import { migrate, requireSchema } from '../src/service/postgres/migrate.ts';
import { createPool } from '../src/service/postgres/postgres.ts';
import { createUrns } from '../src/service/urn.ts';
import type { ClockCheck } from './clock-check.ts';
import { type ReconcilerConfig, runConnections } from './config.ts';
import { findCluster } from './core-clients/cluster.ts';
import { openRefusals } from './core-clients/refusals.ts';
import { createClientSync } from './core-clients/sync.ts';
import type { RunArguments } from './options.ts';
import { createProgress } from './progress.ts';
import { type RunResult, run } from './run.ts';

export interface ReconcilerOptions {
  config: ReconcilerConfig;
  arguments: Pick<RunArguments, 'only' | 'dryRun' | 'allowPrune'>;
  log: Logger;
  /** The environment variables. The client of the directory reads its `DIR_…` overrides from them. */
  env: NodeJS.ProcessEnv;
  /** If this signal is aborted, the run ends after the current batch. */
  signal: AbortSignal;
  /** Writes progress to the terminal. Undefined if the output is not a terminal. */
  terminal?: ((text: string) => void) | undefined;
  clock?: Clock;
  clockTolerance?: ClockCheck['clockTolerance'];
}

/** Performs one run, then closes all connections. Rejects with ConfigError, or if the database cannot be migrated. */
export async function reconcile(options: ReconcilerOptions): Promise<RunResult> {
  const { config, log, env, signal, clock = systemClock } = options;
  const metrics = createMetrics();
  const urns = createUrns(config.URN_PREFIX);
  // The run uses the account of the form service, unless CLIENT_ID names another account.
  const platform = createPlatform({
    config,
    service: 'form-service',
    urns,
    metrics,
    log,
    clock,
    env,
    documents: memoryBudget,
  });
  const { configuration, tenants, directory } = platform;
  const pool = createPool({ url: config.DATABASE_URL, size: runConnections, name: 'reconciler', log, metrics });
  const defaults = {
    warnBefore: config.WARN_BEFORE,
    lockAfter: config.LOCK_AFTER,
    deleteAfter: config.DELETE_AFTER,
  };
  const clients = createClientSync({
    ...{ configuration, tenants, directory, urns, clock, log },
    maintained: maintainedClients(config, urns),
    redirectUriRules: redirectUriRules(config),
    findCluster:
      config.CORE_CLIENTS === 'off'
        ? undefined
        : () => findCluster({ env, namespace: config.NAMESPACE, timeout: config.PLATFORM_TIMEOUT }),
    owner: config.CORE_CLIENTS_OWNER,
    openRefusals: () => openRefusals({ pool, clock, log }),
  });
  try {
    const { directory } = formMigrations;
    const { dryRun } = options.arguments;
    const owner = 'the form service';
    await requireSchema({ url: config.DATABASE_URL, directory, owner, mustBeCurrent: dryRun, log });
    // If the database cannot be reached, the migration fails immediately instead of waiting, because the next run can
    // do the work.
    if (!dryRun) await migrate({ url: config.DATABASE_URL, ...formMigrations, patience: 0, log });
    return await run({
      ...{ arguments: options.arguments, clock, log, pool, signal, clients, defaults },
      store: expiryStore,
      readRetentions: createRetentionReader({ configuration, defaults }),
      checks: { notifications: platform.notifications, urns },
      batchSize: config.BATCH_SIZE,
      leaseDuration: config.LEASE_DURATION,
      clockTolerance: options.clockTolerance,
      progress: createProgress({ clock, log, terminal: options.terminal }),
    });
  } finally {
    await Promise.all([pool.end(), platform.close()]);
  }
}
