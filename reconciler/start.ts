// Puts a run together from its configuration: database, platform clients, what expires drafts and what keeps core
// clients. It starts nothing until it is told to run.
import type pg from 'pg';
import { formMigrations } from '../src/forms/expiry/migrations.ts';
import { createPurgeStore } from '../src/forms/expiry/purge-store.ts';
import { createRetentionReader } from '../src/forms/expiry/retention.ts';
import { createExpiryStore } from '../src/forms/expiry/store.ts';
import { createPlatform, type Platform } from '../src/platform/platform.ts';
import { type Clock, systemClock } from '../src/service/clock.ts';
import type { Logger } from '../src/service/operations/log.ts';
import { createMetrics } from '../src/service/operations/metrics.ts';
import { migrate } from '../src/service/postgres/migrate.ts';
import { createPool } from '../src/service/postgres/postgres.ts';
import { createUrns } from '../src/service/urn.ts';
import type { ReconcilerConfig } from './config.ts';
import { findCluster } from './core-clients/cluster.ts';
import { createRefusalBook } from './core-clients/refusals.ts';
import { type ClientSync, createClientSync } from './core-clients/sync.ts';
import type { RunArguments } from './options.ts';
import { createProgress } from './progress.ts';
import { type RunResult, run } from './run.ts';

export interface ReconcilerOptions {
  config: ReconcilerConfig;
  arguments: Pick<RunArguments, 'only' | 'dryRun' | 'allowPrune'>;
  log: Logger;
  /** Where `DIR_…` overrides of the directory are read from. */
  env: NodeJS.ProcessEnv;
  /** Aborted when the run is to end after its batch. */
  signal: AbortSignal;
  /** Writes progress to a terminal, where there is one. */
  terminal?: ((text: string) => void) | undefined;
  clock?: Clock;
}

/** One run and everything closed after it. Rejects when the database cannot be migrated, or with ConfigError. */
export async function reconcile(options: ReconcilerOptions): Promise<RunResult> {
  const { config, log, env, clock = systemClock } = options;
  const metrics = createMetrics();
  const urns = createUrns(config.URN_PREFIX);
  // The account is the form service's, unless CLIENT_ID says otherwise.
  const platform = createPlatform({ config, service: 'form-service', urns, metrics, log, clock, env });
  // One for batches, one for the heartbeat of the turn.
  const pool = createPool({ url: config.DATABASE_URL, size: 2, log, metrics });
  const defaults = {
    warnBefore: config.WARN_BEFORE,
    lockAfter: config.LOCK_AFTER,
    deleteAfter: config.DELETE_AFTER,
  };
  try {
    if (!options.arguments.dryRun) await migrate({ url: config.DATABASE_URL, ...formMigrations, log });
    return await run({
      ...options,
      clock,
      pool,
      store: createExpiryStore(),
      purge: createPurgeStore(),
      readRetentions: createRetentionReader({ configuration: platform.configuration, defaults }),
      defaults,
      batchSize: config.BATCH_SIZE,
      lease: config.TURN_LEASE,
      clients: createClients(options, { platform, pool, clock }),
      progress: createProgress({ clock, log, terminal: options.terminal }),
    });
  } finally {
    await Promise.all([pool.end(), platform.close()]);
  }
}

function createClients(
  { config, log, env }: ReconcilerOptions,
  { platform, pool, clock }: { platform: Platform; pool: pg.Pool; clock: Clock },
): ClientSync {
  return createClientSync({
    configuration: platform.configuration,
    urns: createUrns(config.URN_PREFIX),
    builderUrl: config.BUILDER_APP_URL,
    allowInsecureRedirectUris: config.ALLOW_INSECURE_REDIRECT_URIS,
    findCluster: async () => {
      if (config.CORE_CLIENTS === 'off') return undefined;
      return findCluster({ env, namespace: config.NAMESPACE, timeout: config.PLATFORM_TIMEOUT });
    },
    owner: config.CORE_CLIENTS_OWNER,
    refusalBook: createRefusalBook({ pool, clock, log }),
    clock,
    log,
  });
}
