// Builds the catalogue of clients, their registrations, and the background work for both.
import type pg from 'pg';
import type { Dispatcher } from 'undici';
import { maintainedClients } from '../../service/clients/client-rules.ts';
import { redirectUriRules } from '../../service/clients/redirect-uri.ts';
import type { Foundation } from '../foundation.ts';
import { createBackgroundTasks } from './background-tasks.ts';
import { createClientCatalog } from './catalog.ts';
import { createLeftoverClients } from './leftover-clients.ts';
import { writeMaintainedClient } from './maintained-client.ts';
import { createProvidedClients } from './provided-clients.ts';
import { createProviderRegistration } from './provider-registration.ts';
import { createRegistrar } from './registrar.ts';
import { createRegistrationStore } from './registration-store.ts';
import { startUpkeep, type UpkeepPace } from './upkeep.ts';

export interface ClientsOptions extends Foundation {
  /** HTTP agent for calls to the identity provider. */
  agent: Dispatcher;
  /** Connections for changes of registrations, which hold one during calls to the identity provider. */
  changePool: pg.Pool;
  pace: Partial<UpkeepPace> | undefined;
}

export type Clients = ReturnType<typeof startClients>;

export function startClients(options: ClientsOptions) {
  const { config, platform, log, clock, addresses, pool } = options;
  const { configuration, events } = platform;
  const catalog = createClientCatalog({ ...options, configuration, redirectUriRules: redirectUriRules(config) });
  const timeout = config.PLATFORM_TIMEOUT;
  const provider = createProviderRegistration({ ...options, timeout });
  const { mappedIssuer } = addresses;
  const store = createRegistrationStore({ ...options, mappedIssuer });
  const leftovers = createLeftoverClients(pool);
  const upkeep = startUpkeep({ ...options, provider, events, leftovers });
  const background = createBackgroundTasks(log);
  const publicUrl = config.PUBLIC_URL;
  const registrar = createRegistrar({
    ...{ store, leftovers, provider, background, mappedIssuer, publicUrl, clock, log },
    changed: upkeep.nudge,
  });
  const provided = createProvidedClients({ ...options, store, timeout, changed: upkeep.nudge });
  for (const client of maintainedClients(config, options.urns)) {
    const write = () => writeMaintainedClient(client, { configuration, log });
    background.untilDone({ task: 'write core client', client: client.id }, write, { lastTry: false });
  }
  return {
    catalog,
    registrations: store,
    leftovers,
    registrar,
    provided,
    /** Ends the background work. */
    async close(): Promise<void> {
      await Promise.all([upkeep.stop(), background.close()]);
    },
  };
}
