// Puts the services together: one table of routes, and the jobs that belong to them. What one noun needs of another is
// handed over here, so that no noun's store knows another's.
import type { Express } from 'express';
import type pg from 'pg';
import { createBearerVerifier } from '../service/auth/identity.ts';
import type { Clock } from '../service/clock.ts';
import { createHttpApp, type Route } from '../service/http/http-app.ts';
import { createOpenApi, documentRoutes } from '../service/openapi/openapi.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import { createUrns, type Urns } from '../service/urn.ts';
import { createCodes } from './codes/codes.ts';
import type { PlatformServerConfig } from './config.ts';
import { createConfigurationChanges } from './configuration/changes.ts';
import { coreScope } from './configuration/configuration.ts';
import { definitionsSchema, schemasOfDefinitions } from './configuration/definition.ts';
import { createConfigurationGuards } from './configuration/policy.ts';
import { configurationReadRoutes, configurationWriteRoutes } from './configuration/routes.ts';
import { type ConfigurationStore, createConfigurationStore } from './configuration/store.ts';
import { directoryRoutes } from './directory/routes.ts';
import { createDirectoryStore } from './directory/store.ts';
import { eventDefinitionsSchema, schemasOfEvents } from './events/event.ts';
import { eventRoutes } from './events/routes.ts';
import { createEventStore } from './events/store.ts';
import type { Mailer } from './mail.ts';
import { notificationTypes, notificationTypesSchema, templatesIn } from './notifications/notification-type.ts';
import { subscriptionRoutes } from './notifications/routes.ts';
import { createSenderPolicy } from './notifications/sender.ts';
import { subscriberRoutes } from './notifications/subscriber-routes.ts';
import { createSubscriberStore } from './notifications/subscribers-store.ts';
import { createSubscribing } from './notifications/subscribing.ts';
import { createSubscriptionStore } from './notifications/subscriptions-store.ts';
import { rootRoutes } from './root-routes.ts';
import type { TenantCode } from './tenant-code.ts';
import { tenantRoutes } from './tenants/routes.ts';
import { createOwnTenants, createTenantStore } from './tenants/store.ts';

export interface PlatformAppOptions {
  config: PlatformServerConfig;
  pool: pg.Pool;
  mailer: Mailer;
  tenantCode: TenantCode;
  log: Logger;
  metrics: Metrics;
  clock: Clock;
}

export const notificationsHome = { namespace: 'platform', name: 'notification-service' };
const eventsHome = { namespace: 'platform', name: 'event-service' };

/** Definitions that nobody's definition can replace: what this process itself reads from configuration. */
const builtIn = {
  'platform:configuration-service': { schema: definitionsSchema, findCode: schemasOfDefinitions },
  'platform:event-service': { schema: eventDefinitionsSchema, findCode: schemasOfEvents },
  'platform:notification-service': { schema: notificationTypesSchema, findCode: templatesIn },
};

export function platformRoutes(options: PlatformAppOptions): Route[] {
  const { config, pool, log, metrics, clock } = options;
  const urns = createUrns(config.URN_PREFIX);
  const tenantStore = createTenantStore(pool);
  const tenants = createOwnTenants(tenantStore, urns);
  const configuration = createConfigurationStore(pool);
  const accessUrl = config.ACCESS_SERVICE_URL;
  const accessPublicUrl = config.ACCESS_SERVICE_PUBLIC_URL ?? accessUrl;
  // Each service is an audience of its own, and its roles are bare to itself only.
  const verifierOf = (service: string) =>
    createBearerVerifier({ accessUrl, accessPublicUrl, tenants, clientId: urns.service(service), log, metrics, clock });

  return [
    ...rootRoutes({ databaseUrl: config.DATABASE_URL, clock }),
    ...directoryRoutes({ store: createDirectoryStore(pool), tenants, urnPrefix: config.URN_PREFIX }),
    ...tenantRoutes({ verifier: verifierOf('tenant-service'), store: tenantStore, urns }),
    ...configurationRoutes(
      { ...options, urns, configuration },
      {
        verifier: verifierOf('configuration-service'),
        tenants,
      },
    ),
    ...eventRoutes({
      verifier: verifierOf('event-service'),
      tenants,
      store: createEventStore(pool),
      urns,
      clock,
      validate: options.tenantCode.validate,
      definitions: (tenant, namespace) => configuration.members(tenant, eventsHome, [namespace]),
    }),
    ...notificationRoutes(
      { ...options, urns, configuration },
      {
        verifier: verifierOf('notification-service'),
        tenants,
      },
    ),
  ];
}

interface Parts extends PlatformAppOptions {
  urns: Urns;
  configuration: ConfigurationStore;
}

type Identity = Pick<Parameters<typeof createConfigurationGuards>[0], 'verifier' | 'tenants'>;

function configurationRoutes(parts: Parts, identity: Identity): Route[] {
  const { pool, clock, urns, configuration, tenantCode, config, mailer } = parts;
  const guards = createConfigurationGuards({ ...identity, urns, definitionOf: configuration.definition });
  const changes = createConfigurationChanges({
    pool,
    clock,
    code: tenantCode,
    builtIn,
    largest: 2 * config.BODY_LIMIT,
    urnOf: urns.configuration,
    async refuse({ scope, namespace, name }, value, before) {
      if (scope === coreScope || namespace !== notificationsHome.namespace || name !== notificationsHome.name) return;
      const { mailDomains } = createTenantStore(pool);
      return createSenderPolicy({ domain: mailer.domain, domainsOf: mailDomains }).refuse(scope, value, before);
    },
    async recordEvent(transaction, event) {
      await createEventStore(transaction).accept(event, clock());
    },
  });
  const options = { guards, store: configuration, changes, urnOf: urns.configuration };
  return [...configurationReadRoutes(options), ...configurationWriteRoutes(options)];
}

function notificationRoutes(parts: Parts, identity: Identity): Route[] {
  const { pool, clock, urns, configuration } = parts;
  const senders = createSenderPolicy({
    domain: parts.mailer.domain,
    domainsOf: createTenantStore(pool).mailDomains,
  });
  const common = {
    ...identity,
    urns,
    subscribers: createSubscriberStore(pool),
    subscribing: createSubscribing({ pool, clock }),
  };
  return [
    ...subscriptionRoutes({
      ...common,
      subscriptions: createSubscriptionStore(pool),
      typesOf: async (tenant) => notificationTypes(await configuration.latestOfBoth(tenant, notificationsHome)),
    }),
    ...subscriberRoutes({
      ...common,
      codes: createCodes({ pool, key: parts.config.CODE_KEY, clock }),
      sendMail: parts.mailer.send,
      senderOf: async (tenant) =>
        senders.senderOf(tenant, (await configuration.latestOfBoth(tenant, notificationsHome)).tenant),
    }),
  ];
}

export function createPlatformApp(options: PlatformAppOptions): Express {
  const { config, log, metrics } = options;
  const routes = platformRoutes(options);
  const title = 'Platform server';
  const description = 'Configuration, directory, tenants, notifications and events for clusters that have none.';
  const document = () => createOpenApi({ title, version: '1', description, routes });
  return createHttpApp({
    log,
    metrics,
    routes,
    trustedProxies: config.TRUSTED_PROXIES,
    corsOrigins: config.CORS_ORIGINS,
    bodyLimit: config.BODY_LIMIT,
    extend: (app) => void app.use(documentRoutes(document)),
  });
}
