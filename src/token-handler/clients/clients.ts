// Builds the catalogue of clients, their registrations, and the background work for both.
import type pg from 'pg';
import type { HttpAgent } from '../../platform/http-agent.ts';
import { maintainedClients } from '../../service/clients/client-rules.ts';
import { redirectUriRules } from '../../service/clients/redirect-uri.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createSharedPool } from '../../service/postgres/shared-pool.ts';
import type { Foundation } from '../foundation.ts';
import { createBackgroundTasks } from './background-tasks.ts';
import { createClientCatalog } from './catalog.ts';
import { createRegistrationMetrics } from './client-metrics.ts';
import { createLeftoverClients } from './leftover-clients.ts';
import { writeMaintainedClient } from './maintained-client.ts';
import { createProvidedClients } from './provided-clients.ts';
import { createProviderRegistration } from './provider-registration.ts';
import { createRegistrar } from './registrar.ts';
import { createRegistrationStore } from './registration-store.ts';
import { startUpkeep } from './upkeep.ts';
import type { UpkeepPace } from './upkeep-pace.ts';

export interface ClientsOptions extends Foundation {
  /** HTTP agent for calls to the identity provider. */
  agent: HttpAgent;
  /** Connections for changes to registrations. A change holds a connection while it calls the identity provider. */
  changePool: pg.Pool;
  pace: Partial<UpkeepPace> | undefined;
}

export type Clients = ReturnType<typeof startClients>;

/** Number of connections in the pool for changes to registrations. */
export const changeConnections = 4;

type Pools = Pick<ClientsOptions, 'pool' | 'changePool' | 'metrics'> & {
  config: Pick<ClientsOptions['config'], 'DATABASE_POOL_SIZE'>;
};

/** Prevents one tenant from taking all connections of a pool (decision 0032). */
export function sharePools({ config, pool, changePool, metrics }: Pools) {
  const busy = 'Too many requests of this tenant are running.';
  const locked = 'The registration is being changed by another request.';
  const common = { details: { busy, locked }, metrics };
  const size = config.DATABASE_POOL_SIZE;
  return {
    // A sign-in holds its connection only briefly, because it waits for no lock. A single client may therefore use all
    // connections that its tenant may use.
    pool: createSharedPool({ ...common, pool, size, name: 'requests', perMember: size }),
    changePool: createSharedPool({ ...common, pool: changePool, size: changeConnections, name: 'registrations' }),
  };
}

export function startClients(options: ClientsOptions) {
  const { config, platform, log, clock, addresses } = options;
  const { configuration, events } = platform;
  const catalog = createClientCatalog({ ...options, configuration, redirectUriRules: redirectUriRules(config) });
  const { PLATFORM_TIMEOUT: timeout, TENANT_REGISTRATION_LIMIT: mostOfTenant } = config;
  const provider = createProviderRegistration({ ...options, timeout });
  const { mappedIssuer } = addresses;
  const pools = sharePools(options);
  const store = createRegistrationStore({ ...options, ...pools, mappedIssuer, mostOfTenant });
  const leftovers = createLeftoverClients(pools.pool);
  const upkeep = startUpkeep({ ...options, provider, events, leftovers, timeout });
  const background = createBackgroundTasks(log);
  const publicUrl = config.PUBLIC_URL;
  const registrar = createRegistrar({
    ...{ store, leftovers, provider, background, mappedIssuer, publicUrl, clock, log },
    changed: upkeep.nudge,
  });
  const provided = createProvidedClients({ ...options, store, timeout, changed: upkeep.nudge });
  const counted = countRegistrations(options.metrics);
  for (const client of maintainedClients(config, options.urns)) {
    const write = () => writeMaintainedClient(client, { configuration, log });
    background.untilDone({ task: 'write core client', client: client.id }, write, { lastTry: false });
  }
  return {
    catalog,
    registrations: store,
    leftovers,
    registrar: { ...registrar, register: counted(registrar.register) },
    provided: { register: counted(provided.register) },
    /** Ends upkeep and the background tasks. */
    async close(): Promise<void> {
      await Promise.all([upkeep.stop(), background.close()]);
    },
  };
}

/** Returns a function that wraps `register` and counts its outcomes. */
function countRegistrations({ registry }: Pick<Metrics, 'registry'>) {
  const { registrations } = createRegistrationMetrics({ registry });
  return <R>(register: (request: R) => Promise<void>) =>
    async (request: R): Promise<void> => {
      try {
        await register(request);
        registrations.inc({ outcome: 'registered' });
      } catch (error) {
        registrations.inc({ outcome: error instanceof Problem && error.status < 500 ? 'refused' : 'failed' });
        throw error;
      }
    };
}
