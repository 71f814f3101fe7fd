// Creates the stores and the other objects that several services of the platform server share.
import type pg from 'pg';
import type { Queryable } from '../service/postgres/postgres.ts';
import { createUrns, type Urns } from '../service/urn.ts';
import type { Behaviour } from './behaviour.ts';
import type { PlatformServerConfig } from './config.ts';
import type { ConfigurationKey, Scope } from './configuration/configuration.ts';
import { createConfigurationStore } from './configuration/store.ts';
import { createDirectoryStore } from './directory/store.ts';
import { createEventStore } from './events/store.ts';
import type { Mailer } from './mail.ts';
import { createDeliveryStore } from './notifications/deliveries-store.ts';
import { createSenderPolicy } from './notifications/sender.ts';
import { createNotificationSettings, type SettingsCache } from './notifications/settings.ts';
import { storeOf } from './tenant-pool.ts';
import { createOwnTenants, createTenantStore } from './tenants/store.ts';

export interface StoreOptions {
  config: PlatformServerConfig;
  pool: pg.Pool;
  mailer: Mailer;
  behaviour: Behaviour;
  settingsCache: SettingsCache;
}

/** `databaseOf` returns the database that runs the statements about the configuration of a tenant. */
export function createStores(
  { config, pool, mailer, behaviour, settingsCache }: StoreOptions,
  databaseOf: (tenant: string) => Queryable = () => pool,
) {
  const urns: Urns = createUrns(config.URN_PREFIX);
  const configuration = storeOf(createConfigurationStore, (of: Scope | ConfigurationKey) =>
    databaseOf(typeof of === 'string' ? of : of.scope),
  );
  const tenantStore = createTenantStore(pool);
  const senders = createSenderPolicy({ operator: mailer.address, domainsOf: tenantStore.mailDomains });
  const consumed = behaviour.consumerReads(configuration);
  const settingsOf = createNotificationSettings(settingsCache, consumed);
  return {
    ...{ urns, configuration, consumed, tenantStore, senders },
    tenants: createOwnTenants(tenantStore, urns),
    directory: createDirectoryStore(pool),
    events: createEventStore(pool, behaviour.eventKey),
    deliveries: createDeliveryStore(pool),
    typesOf: async (tenant: string) => (await settingsOf(tenant)).types,
    senderOf: async (tenant: string) => senders.senderOf(tenant, (await settingsOf(tenant)).sender),
  };
}
