// Builds everything about clients in one process: their catalogue, their registrations, and the background work for both.
import type pg from 'pg';
import type { Dispatcher } from 'undici';
import type { Platform } from '../../platform/platform.ts';
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { registerQuarantineMetrics } from '../../service/quarantine/quarantine-store.ts';
import type { Urns } from '../../service/urn.ts';
import type { AccessAddresses } from '../access-addresses.ts';
import type { TokenHandlerConfig } from '../config.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { createAccessRegistration } from './access-registration.ts';
import { writeBuilderPreview } from './builder-preview.ts';
import { type ClientCatalog, createClientCatalog } from './catalog.ts';
import { createLeftoverQuarantine, tidyLeftoverQuarantine } from './leftover-quarantine.ts';
import { createLeftoverStore } from './leftover-store.ts';
import { createPersistence } from './persistence.ts';
import { createRegistrar, type Registrar } from './registrar.ts';
import { createRegistrationStore, type RegistrationStore } from './registration-store.ts';
import { startUpkeep, type Upkeep, type UpkeepPace } from './upkeep.ts';

export interface ClientsOptions {
  config: TokenHandlerConfig;
  platform: Pick<Platform, 'configuration' | 'events'>;
  addresses: AccessAddresses;
  /** For calls to the identity provider. */
  agent: Dispatcher;
  pool: pg.Pool;
  /** A change of a registration holds its connection during calls to the identity provider. */
  changePool: pg.Pool;
  keys: KeyRing;
  urns: Urns;
  clock: Clock;
  pace: Partial<UpkeepPace> | undefined;
  log: Logger;
  metrics: Metrics;
}

export interface Clients {
  catalog: ClientCatalog;
  registrations: RegistrationStore;
  registrar: Registrar;
  /** Ends the background work. */
  close(): Promise<void>;
}

export function startClients(options: ClientsOptions): Clients {
  const { config, platform, addresses, agent, pool, changePool, keys, urns, clock, log, metrics } = options;
  const { configuration } = platform;
  const allowInsecureRedirectUris = config.ALLOW_INSECURE_REDIRECT_URIS;
  const catalog = createClientCatalog({ configuration, urns, allowInsecureRedirectUris, log, metrics });
  const access = createAccessRegistration({ addresses, agent, metrics, timeout: config.PLATFORM_TIMEOUT });
  const registrations = createRegistrationStore({ pool, changePool, keys });
  const upkeep = startLeftoverUpkeep(options, access);
  const persistence = createPersistence({ log });
  const registrar = createRegistrar({
    store: registrations,
    access,
    persistence,
    publicUrl: config.PUBLIC_URL,
    clock,
    changed: upkeep.nudge,
  });
  const builderUrl = config.BUILDER_APP_URL;
  const preview = builderUrl === undefined ? undefined : writeBuilderPreview({ builderUrl, configuration, urns, log });
  return {
    catalog,
    registrations,
    registrar,
    async close() {
      preview?.stop();
      await Promise.all([upkeep.stop(), persistence.close(), preview?.done]);
    },
  };
}

/** Retries deletions at the identity provider that failed. */
function startLeftoverUpkeep(options: ClientsOptions, access: ReturnType<typeof createAccessRegistration>): Upkeep {
  const { platform, pool, keys, clock, log, metrics, pace } = options;
  const { events } = platform;
  const store = createLeftoverStore({ pool, keys });
  const quarantine = createLeftoverQuarantine({ pool, clock });
  registerQuarantineMetrics(metrics, quarantine);
  const tidy = () => tidyLeftoverQuarantine(pool);
  return startUpkeep({
    store,
    quarantine: { release: quarantine.release, tidy },
    access,
    events,
    clock,
    log,
    metrics,
    pace,
  });
}
